"""What a log folder can show of itself at a start: since which registration of its broker it has lost nothing."""

import random
import shutil
from pathlib import Path

import pytest

from harness.logs import TOPIC_ID, TP, HandClock, append, config
from moldau.config import TopicConfig
from moldau.errors import KafkaError
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.identity import RUNNING
from moldau.runtime import RealDisk, Runtime
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import DiskFault, Faults


class Machine(RealDisk):
    boots = 1

    def boot_id(self) -> str:
        return f"boot {self.boots}" if self.boots else ""


def config_of(_: str) -> TopicConfig:
    return config()


def opened(path: Path, machine: Machine) -> LogFolder:
    folder = LogFolder(path, Runtime(clock=HandClock(), disk=machine))
    folder.load({"flights": TOPIC_ID}, config_of)
    return folder


def test_a_new_folder_shows_nothing(tmp_path: Path) -> None:
    folder = opened(tmp_path, Machine())
    assert folder.kept_since == -1
    folder.close()
    again = opened(tmp_path, Machine())
    assert again.kept_since == -1, "it was in no cluster"
    assert not (tmp_path / RUNNING).exists()
    again.close()


def test_a_clean_stop_shows_its_registration_also_after_a_power_loss(tmp_path: Path) -> None:
    machine = Machine()
    folder = opened(tmp_path, machine)
    folder.note_running(17)
    folder.close(broker_epoch=17)
    machine.boots = 2
    again = opened(tmp_path, machine)
    assert again.kept_since == 17
    again.close()
    assert opened(tmp_path, machine).kept_since == 17, "a start that registered nowhere"


@pytest.mark.parametrize(("boots", "kept"), [(1, 17), (2, -1), (0, -1)])
def test_a_kill_has_lost_nothing_if_the_machine_has_run_on(tmp_path: Path, boots: int, kept: int) -> None:
    machine = Machine()
    folder = opened(tmp_path, machine)
    folder.note_running(3)
    folder.note_running(17)
    folder.close(clean=False)
    machine.boots = boots
    again = opened(tmp_path, machine)
    assert again.kept_since == kept
    again.close(clean=False)


@pytest.mark.parametrize("way", ["elsewhere", "put back", "over itself"])
def test_a_copy_shows_nothing_for_it_may_lack_what_was_appended_since(tmp_path: Path, way: str) -> None:
    machine, path, copy = Machine(), tmp_path / "data", tmp_path / "copy"
    folder = opened(path, machine)
    folder.note_running(17)
    shutil.copytree(path, copy)
    folder.close(clean=False)
    if way == "put back":
        shutil.rmtree(path)
        copy.rename(path)
    elif way == "over itself":
        shutil.copytree(copy, path, dirs_exist_ok=True)
    again = opened(copy if way == "elsewhere" else path, machine)
    assert again.kept_since == -1
    again.close(clean=False)


def test_a_folder_that_was_renamed_is_no_copy(tmp_path: Path) -> None:
    machine = Machine()
    folder = opened(tmp_path / "data", machine)
    folder.note_running(17)
    folder.close(clean=False)
    again = opened((tmp_path / "data").rename(tmp_path / "other"), machine)
    assert again.kept_since == 17
    again.close(clean=False)


@pytest.mark.parametrize(
    "text", ["", "{", '{"brokerEpoch": 17}', '["boot 1"]', '{"bootId":"boot 1","brokerEpoch":"x"}']
)
def test_what_cannot_be_read_shows_nothing(tmp_path: Path, text: str) -> None:
    opened(tmp_path, Machine()).close(clean=False)
    (tmp_path / RUNNING).write_text(text)
    assert opened(tmp_path, Machine()).kept_since == -1


def test_a_log_that_ends_below_its_watermark_has_lost_records(tmp_path: Path) -> None:
    machine = Machine()
    folder = opened(tmp_path, machine)
    append(folder.create(TP, TOPIC_ID, config()), 5)
    folder.note_running(17)
    folder.checkpoint_high_watermarks({TP: 5})
    folder.close(clean=False)
    [segment] = (tmp_path / str(TP)).glob("*.log")
    whole = segment.read_bytes()
    again = opened(tmp_path, machine)
    assert again.kept_since == 17
    again.close(clean=False)
    segment.write_bytes(whole[:-10])
    cut = opened(tmp_path, machine)
    assert cut.logs[TP].log_end_offset < 5
    assert cut.kept_since == -1
    cut.close(clean=False)


def test_the_simulated_machine_boots_anew_after_a_power_loss_only() -> None:
    disk = SimulatedDisk()
    first = disk.boot_id()
    disk = disk.after_kill()
    assert disk.boot_id() == first
    disk = disk.after_crash(random.Random(1))
    assert disk.boot_id() != first
    assert RealDisk().boot_id() == RealDisk().boot_id()


def test_a_kill_during_the_first_start_after_a_clean_stop_and_a_reboot_has_lost_nothing(tmp_path: Path) -> None:
    machine = Machine()
    folder = opened(tmp_path, machine)
    folder.note_running(17)
    folder.close(broker_epoch=17)
    machine.boots = 2
    opened(tmp_path, machine).close(clean=False)  # SIGKILL before the broker has registered
    assert opened(tmp_path, machine).kept_since == 17


def test_a_folder_that_failed_to_flush_does_not_show_that_it_has_lost_nothing() -> None:
    faults = Faults(random.Random(3))
    disk = SimulatedDisk(faults=faults)
    runtime = Runtime(clock=HandClock(), disk=disk)
    folder = LogFolder(Path("/log"), runtime)
    folder.load({TP.topic: TOPIC_ID}, config_of)
    log = folder.create(TP, TOPIC_ID, config())
    folder.note_running(17)
    append(log, 5)
    faults.plan[faults.calls + 1] = DiskFault.IO_ERROR
    with pytest.raises(KafkaError):
        log.flush()
    assert folder.failed is not None and faults.met
    folder.close()
    again = LogFolder(Path("/log"), Runtime(clock=HandClock(), disk=disk.after_kill()))
    again.load({TP.topic: TOPIC_ID}, config_of)
    assert again.kept_since == -1
