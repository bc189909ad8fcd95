"""Topics come from another broker's folder into ours, and power may fail at any call of it."""

import random
from pathlib import Path

import pytest

from harness.logs import HandClock, append, read_all
from moldau.config import TopicConfig
from moldau.errors import StorageError
from moldau.files.adoption import Adopted, Intake
from moldau.files.foreign import ForeignTopic, refusal, survey
from moldau.log import checkpoints
from moldau.log.folders.folder import LogFolder
from moldau.names import TopicPartition
from moldau.records.rows import Record
from moldau.runtime import Disk, Runtime
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import DiskFault, Faults, PowerLoss
from tests.files.inspection.filled import BOOKINGS, FLIGHTS, HOLLOW, IDS, RECORDS, SMALL, fill

THEIRS, OURS = Path("/theirs"), Path("/ours")
CRASHES = 60
TPS = (FLIGHTS, BOOKINGS, HOLLOW)


def runtime_of(disk: Disk) -> Runtime:
    return Runtime(clock=HandClock(), disk=disk)


def foreign(*, clean: bool = True) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_folder(Path("/"))
    fill(THEIRS, clean=clean, runtime=runtime_of(disk))
    disk = disk.after_kill()
    for tp in TPS:  # what they left has long been on the disk
        for name in disk.list(THEIRS / str(tp)):
            disk.open(THEIRS / str(tp) / name).flush()
        disk.sync_folder(THEIRS / str(tp))
    return disk


def topics(disk: Disk) -> dict[str, ForeignTopic]:
    found = survey(disk, [THEIRS]).topics
    for topic in found.values():
        assert refusal(disk, topic) is None
    return found


def take_in(disk: Disk, known: dict[str, dict[int, Adopted]]) -> None:
    """As the command does; `known` stands for the metadata, which lasts at once."""
    with Intake(runtime_of(disk), OURS) as intake:
        for name, topic in sorted(topics(disk).items()):
            if name in known:
                continue
            assert intake.in_the_way(topic) is None
            ready = intake.current(topic) or intake.stage(topic, SMALL)
            intake.place(name, ready)
            known[name] = dict(ready.partitions)
            intake.forget(name)


def config_of(_: str) -> TopicConfig:
    return SMALL


def served(disk: Disk, known: dict[str, dict[int, Adopted]]) -> dict[TopicPartition, list[Record]]:
    """What a broker would serve that knows these topics."""
    folder = LogFolder(OURS, runtime_of(disk))
    folder.load({name: IDS[name] for name in known}, config_of)
    found = {tp: read_all(log) for tp, log in folder.logs.items()}
    folder.close(clean=False)
    return found


def originals(disk: Disk) -> dict[TopicPartition, list[Record]]:
    folder = LogFolder(THEIRS, runtime_of(disk))
    folder.load(IDS, config_of)
    return {tp: read_all(log) for tp, log in folder.logs.items()}


def test_every_record_is_served_and_what_the_metadata_needs_is_known() -> None:
    disk = foreign()
    known: dict[str, dict[int, Adopted]] = {}
    take_in(disk, known)
    assert served(disk.fork(), known) == originals(disk.fork())
    assert known["flights"][0] == Adopted(RECORDS, 0, 3, 70)
    assert known["hollow"][0] == Adopted(0, 0, -1, -1)
    assert known["bookings"][0].producer_id_max == 6
    points = checkpoints.read_offsets(disk, OURS / checkpoints.RECOVERY_POINTS)
    assert points == {tp: known[tp.topic][0].end for tp in TPS}
    assert checkpoints.read_offsets(disk, OURS / checkpoints.HIGH_WATERMARKS) == points
    assert not [name for name in disk.list(OURS) if name.endswith(".tmp")]


def test_what_was_compacted_is_known_to_be() -> None:
    disk = foreign()
    there = {FLIGHTS: 40, BOOKINGS: 0, TopicPartition("absent", 0): 3}
    checkpoints.write_offsets(disk, THEIRS / checkpoints.CLEANER_OFFSETS, there)
    known: dict[str, dict[int, Adopted]] = {}
    take_in(disk, known)
    cleaned = checkpoints.read_offsets(disk, OURS / checkpoints.CLEANER_OFFSETS)
    assert cleaned == {FLIGHTS: 40, BOOKINGS: 0}
    assert known["hollow"][0].cleaned == -1


def test_what_an_unclean_stop_left_is_recovered_in_the_copy_and_left_as_it_is_at_home() -> None:
    disk = foreign(clean=False)
    path = THEIRS / "flights-0" / max(name for name in disk.list(THEIRS / "flights-0") if name.endswith(".log"))
    file = disk.open(path)
    file.truncate(file.size() - 7)
    before = {name: disk.size(THEIRS / "flights-0" / name) for name in disk.list(THEIRS / "flights-0")}
    known: dict[str, dict[int, Adopted]] = {}
    take_in(disk, known)
    assert known["flights"][0].end == RECORDS + 5
    assert len(served(disk.fork(), known)[FLIGHTS]) == RECORDS + 5
    assert before == {name: disk.size(THEIRS / "flights-0" / name) for name in disk.list(THEIRS / "flights-0")}


def test_power_may_fail_at_any_call_and_each_topic_is_there_wholly_or_unknown() -> None:
    whole = foreign()
    wanted = originals(whole.fork())
    chance = random.Random(11)

    def one(plan: dict[int, DiskFault]) -> tuple[SimulatedDisk, Faults]:
        disk, faults = whole.fork(), Faults(chance)
        disk.faults, faults.plan = faults, plan
        return disk, faults

    counting, counted = one({})
    take_in(counting, {})
    for number in sorted(chance.sample(range(1, counted.calls + 1), CRASHES)):
        (disk, faults), known = one({number: DiskFault.POWER_LOSS}), dict[str, dict[int, Adopted]]()
        with pytest.raises(PowerLoss):
            take_in(disk, known)
        crashed = disk.after_crash(chance)
        crashed.faults = None
        assert served(crashed.fork(), known) == {tp: wanted[tp] for tp in TPS if tp.topic in known}, faults.met
        take_in(crashed, known)
        assert served(crashed.after_crash(chance), known) == wanted, faults.met


def test_a_folder_that_nobody_knows_is_in_the_way() -> None:
    disk = foreign()
    folder = LogFolder(OURS, runtime_of(disk))
    append(folder.create(FLIGHTS, IDS["flights"], SMALL), 3)
    folder.close()
    with Intake(runtime_of(disk), OURS) as intake:
        found = topics(disk)
        assert intake.in_the_way(found["flights"]) == OURS / "flights-0"
        assert intake.in_the_way(found["hollow"]) is None


def test_a_copy_of_what_has_changed_since_is_made_anew() -> None:
    disk = foreign()
    with Intake(runtime_of(disk), OURS) as intake:
        topic = topics(disk)["flights"]
        intake.place("flights", intake.stage(topic, SMALL))
    folder = LogFolder(THEIRS, runtime_of(disk))
    folder.load(IDS, config_of)
    append(folder.logs[FLIGHTS], 4, leader_epoch=3)
    folder.close()
    known: dict[str, dict[int, Adopted]] = {}
    take_in(disk, known)
    assert known["flights"][0].end == RECORDS + 4
    assert served(disk.fork(), known) == originals(disk.fork())


def test_what_is_not_as_we_left_it_is_a_sentence() -> None:
    disk = foreign()
    with Intake(runtime_of(disk), OURS) as intake:
        ready = intake.stage(topics(disk)["flights"], SMALL)
        [said] = [OURS / name for name in disk.list(OURS) if name.endswith(".tmp") and name.count("-") == 1]
        sound = checkpoints.read_whole(disk, said)
        assert sound is not None
        for wrong in (b"{", b"\xff", b"[]", sound.replace(b"end", b"and")):
            checkpoints.replace_file(disk, said, wrong)
            with pytest.raises(StorageError, match="was not written by an adoption"):
                intake.ready("flights")
        checkpoints.replace_file(disk, said, sound)
        assert intake.ready("flights") == ready
        checkpoints.replace_file(disk, OURS / checkpoints.HIGH_WATERMARKS, b"what")
        with pytest.raises(StorageError, match="start and stop Moldau's broker once"):
            intake.place("flights", ready)
