import asyncio
import random
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness.logs import NOW_MS, HandClock, config, read_all
from moldau.config import BrokerConfig, broker_config
from moldau.log import truncation
from moldau.log.compaction import cleaner as module
from moldau.log.compaction.cleaner import Candidate, Cleaner
from moldau.log.compaction.dirtiness import Dirt
from moldau.log.folders.folder import LogFolder
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.runtime import Runtime
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import DiskCall, DiskFault, Faults
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.network import Network
from tests.log.compaction.compacting import COMPACTED, put

T = TypeVar("T")
ROOT = Path("/data")
CHECKPOINT = ROOT / "cleaner-offset-checkpoint"
SETTINGS, _ = broker_config({})
LOOPS: list[SimulatedLoop] = []


@pytest.fixture(autouse=True)
def _loops_are_closed() -> Iterator[None]:
    yield
    while LOOPS:
        LOOPS.pop().close()


class Place:
    """A log folder on a simulated disk, its logs, and a cleaner in virtual time."""

    def __init__(self, disk: SimulatedDisk | None = None, **settings: Any) -> None:
        self.disk = disk or SimulatedDisk()
        self.clock = HandClock()
        self.runtime = Runtime(clock=self.clock, disk=self.disk)
        self.folder = LogFolder(ROOT, self.runtime)
        self.settings: BrokerConfig = replace(SETTINGS, **settings)
        self.cleaner = Cleaner(self.candidates, lambda: self.settings, self.runtime)
        self.loop = SimulatedLoop(Network(random.Random(1)))
        LOOPS.append(self.loop)

    def candidates(self) -> list[Candidate]:
        return [Candidate(log, log.log_end_offset) for log in self.folder.logs.values()]

    def log(self, topic: str = "flights", batches: int = 30, **settings: Any) -> Log:
        """A new log with several segments of records of one key."""
        tp = TopicPartition(topic, 0)
        log = self.folder.create(tp, uuid.uuid4(), config(**{**COMPACTED, **settings}))
        fill(log, batches)
        return log

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(self.loop.create_task(work))

    def clean(self) -> bool:
        return self.run(self.cleaner.clean_dirtiest())

    def checkpoint(self) -> list[str]:
        return self.disk.open(CHECKPOINT).read(10_000, 0).decode().splitlines()[2:]

    def during(self, which: Callable[[DiskCall], bool], what: Callable[[], None]) -> None:
        """Do something before the first call of the disk that is meant."""
        faults = self.disk.faults = Faults(random.Random(1))

        def watch(call: DiskCall) -> None:
            if which(call):
                faults.watch = None
                what()

        faults.watch = watch


def fill(log: Log, batches: int = 30) -> None:
    for number in range(batches):
        put(log, ("a", f"{number}" * 30))


def is_cleaned(log: Log) -> bool:
    return len([record for record in read_all(log) if record.offset < log.active_segment.base_offset]) <= 1


def written_cleaned(call: DiskCall) -> bool:
    return call.name == "write" and call.path.name.endswith(".log.cleaned")


def test_the_dirtiest_log_comes_first() -> None:
    place = Place()
    first, second = place.log("first"), place.log("second")
    assert place.clean() and is_cleaned(first) and not is_cleaned(second)
    assert place.clean() and is_cleaned(second)
    assert not place.clean()
    fill(first, 20)
    fill(second, 60)
    assert place.clean() and is_cleaned(second) and not is_cleaned(first)


def test_only_logs_that_compact_are_cleaned() -> None:
    place = Place()
    log = place.log(cleanup_policy=("delete",))
    assert not place.clean()
    log.config = config(**{**COMPACTED, "cleanup_policy": ("compact", "delete")})
    assert place.clean()


def test_a_log_is_clean_up_to_where_the_checkpoint_says_after_a_restart_too() -> None:
    place = Place()
    log = place.log()
    base = log.active_segment.base_offset
    assert place.clean()
    assert place.checkpoint() == [f"flights 0 {base}"]
    again = Place(place.disk.after_kill())
    again.folder.load({"flights": log.topic_id or uuid.UUID(int=0)}, lambda _: log.config)
    assert not again.clean()
    fill(again.folder.logs[log.tp])
    assert again.clean()
    assert again.checkpoint() == [f"flights 0 {again.folder.logs[log.tp].active_segment.base_offset}"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0\n1\nflights 0 10000\n", "at offset 10000 does not fit the log"),
        ("0\n1\nflights 0 -3\n", "at offset -3 does not fit the log"),
        ("0\n2\nflights 0 10\n", "compacted logs are cleaned from their start"),
        ("\xff", "compacted logs are cleaned from their start"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_begun_anew(text: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    log = place.log()
    file = place.disk.open(CHECKPOINT, create=True)
    file.write(text.encode("latin-1"), 0)
    assert place.clean() and is_cleaned(log)
    assert said in caplog.text
    assert place.checkpoint() == [f"flights 0 {log.active_segment.base_offset}"]


def test_what_a_truncation_has_cut_off_is_dirty_when_other_records_are_there() -> None:
    """Else a record that a tombstone in that part deletes would stay, and be back once the tombstone has gone."""
    place = Place()
    log = place.log(batches=0)
    put(log, ("k", "old"))
    fill(log)
    assert place.clean()
    truncation.truncate_to(log, 5, 0, NOW_MS)
    put(log, ("k", None))
    fill(log, 60)
    assert int(place.checkpoint()[0].split()[-1]) < log.active_segment.base_offset
    assert place.clean()
    assert [(record.offset, record.value) for record in read_all(log) if record.key == b"k"] == [(1, None)]
    assert place.checkpoint() == [f"flights 0 {log.active_segment.base_offset}"]


def test_a_log_that_was_truncated_since_it_was_chosen_is_looked_at_again() -> None:
    place = Place()
    log = place.log()
    chosen = place.run(place.cleaner._choose())
    assert chosen is not None and chosen[0] is log

    async def choose() -> tuple[Log, Dirt]:
        truncation.truncate_to(log, 20, 0, NOW_MS)
        return chosen

    log.flush()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place.cleaner, "_choose", choose)
        assert place.clean() and not is_cleaned(log)
    fill(log)
    assert place.clean() and is_cleaned(log)


def test_a_topic_made_again_is_dirty_from_its_start() -> None:
    place = Place()
    log = place.log()
    assert place.clean()
    place.folder.delete(log.tp, NOW_MS)
    log = place.log()
    assert place.clean() and is_cleaned(log)


def test_what_belongs_to_no_log_leaves_the_checkpoint() -> None:
    place = Place()
    first, second = place.log("first"), place.log("second")
    assert place.clean() and place.clean()
    place.folder.delete(first.tp, NOW_MS)
    assert not place.clean()
    assert place.checkpoint() == [f"second 0 {second.active_segment.base_offset}"]


def test_what_is_written_of_an_earlier_topic_is_not_taken_for_that_of_a_new_one() -> None:
    """The topic went and came again while nobody cleaned, and the broker was killed in between."""
    place = Place()
    log = place.log(batches=60)
    assert place.clean()
    place.folder.delete(log.tp, NOW_MS)
    again = Place(place.disk.after_kill())
    again.folder.load({}, lambda _: log.config)
    assert not again.clean()
    log = again.log(batches=80)
    assert again.clean() and is_cleaned(log)


def test_the_active_segment_is_closed_when_its_first_record_has_waited_too_long() -> None:
    place = Place()
    log = place.log(batches=3, max_compaction_lag_ms=5000, min_cleanable_dirty_ratio=1.0)
    place.clock.ms = NOW_MS + 5000
    assert not place.clean()
    place.clock.ms += 1
    assert place.clean()
    assert len(log.segments) == 2 and is_cleaned(log)


def test_everything_is_flushed_before_an_earlier_record_goes() -> None:
    """The active segment as well: a marker there says which of the earlier records do not count."""
    place = Place()
    log = place.log()
    log.flush_closed()
    flushed: list[int] = []
    place.during(written_cleaned, lambda: flushed.append(log.recovery_point))
    assert place.clean()
    assert flushed == [30]


@pytest.mark.parametrize("turns", range(0, 90, 3))
def test_a_topic_deleted_at_any_step_takes_nothing_with_it(turns: int, caplog: pytest.LogCaptureFixture) -> None:
    place = Place(log_cleaner_io_buffer_size=0)
    log, other = place.log(batches=300, segment_bytes=10_000), place.log("other", batches=2)

    async def deleted() -> None:
        cleaning = asyncio.ensure_future(place.cleaner.clean_dirtiest())
        for _ in range(turns):
            await asyncio.sleep(0)
        place.folder.delete(log.tp, NOW_MS)
        await cleaning

    place.run(deleted())
    assert log.offline and not log.cleaning and not other.offline and place.folder.failed is None
    assert not caplog.records
    assert put(other, ("a", "b")) == 2


def test_a_log_that_is_no_longer_to_be_compacted_is_left_in_the_middle() -> None:
    place = Place()
    log = place.log()
    deletes = config(**{**COMPACTED, "cleanup_policy": ("delete",)})
    place.during(written_cleaned, lambda: setattr(log, "config", deletes))
    before = read_all(log)
    assert place.clean()
    assert read_all(log) == before
    assert not [name for name in place.disk.list(log.folder) if name.endswith((".cleaned", ".swap"))]
    assert not place.clean()


def test_a_stop_in_the_middle_leaves_a_log_that_can_be_closed() -> None:
    place = Place(log_cleaner_io_buffer_size=0)
    log = place.log(batches=300, segment_bytes=20_000)
    before = read_all(log)

    async def stopped() -> None:
        place.cleaner.start()
        while not place.disk.exists(log.folder / "00000000000000000000.log.cleaned"):
            await asyncio.sleep(0)
        await place.cleaner.stop()

    place.run(stopped())
    assert not log.cleaning
    assert not [name for name in place.disk.list(log.folder) if name.endswith((".cleaned", ".swap"))]
    assert read_all(log) == before
    place.folder.close()


def test_retention_leaves_a_log_alone_while_it_is_cleaned_and_has_its_turn_later() -> None:
    place = Place()
    log = place.log(cleanup_policy=("compact", "delete"), retention_ms=1000)
    place.clock.ms = NOW_MS + 10**6
    gone: list[int] = []
    place.during(written_cleaned, lambda: gone.append(len(log.retain(place.clock.ms, log.log_end_offset))))
    assert place.clean()
    assert gone == [0]
    assert log.retain(place.clock.ms, log.log_end_offset)
    assert (log.log_start_offset, log.log_end_offset) == (30, 30)
    assert not place.clean()
    fill(log)
    assert place.clean()


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_as_many_logs_as_there_are_threads_are_cleaned_at_once(threads: int) -> None:
    place = Place(log_cleaner_threads=threads)
    logs = [place.log(topic) for topic in ("first", "second", "third")]
    most = 0

    async def watched() -> None:
        nonlocal most
        place.cleaner.start()
        for _ in range(2000):
            most = max(most, sum(log.cleaning for log in logs))
            await asyncio.sleep(0)
        await place.cleaner.stop()

    place.run(watched())
    assert most == threads
    assert sum(map(is_cleaned, logs)) == (3 if threads else 0)


def test_no_more_is_moved_in_a_second_than_is_allowed() -> None:
    place = Place(log_cleaner_io_max_bytes_per_second=1000.0)
    log = place.log(batches=200)
    size = log.size
    begun = place.loop.time()
    assert place.clean()
    assert 2 * size <= (place.loop.time() - begun) * 1000 <= 3 * size


def test_the_cleaner_rests_where_nothing_is_dirty() -> None:
    place = Place(log_cleaner_backoff_ms=7000)
    log = place.log(batches=0)
    looked: list[float] = []
    candidates = place.candidates

    async def watched() -> None:
        place.cleaner = Cleaner(
            lambda: (looked.append(place.loop.time()), candidates())[1], lambda: place.settings, place.runtime
        )
        place.cleaner.start()
        await asyncio.sleep(20)
        fill(log)
        await asyncio.sleep(2)
        await place.cleaner.stop()

    place.run(watched())
    assert list(dict.fromkeys(round(at - looked[0]) for at in looked)) == [0, 7, 14, 21]
    assert is_cleaned(log)


def test_a_cleaner_that_is_switched_off_does_nothing() -> None:
    place = Place(log_cleaner_enable=False)
    log = place.log()

    async def watched() -> None:
        place.cleaner.start()
        await asyncio.sleep(100)
        await place.cleaner.stop()

    place.run(watched())
    assert not is_cleaned(log)


@pytest.mark.parametrize("fault", [DiskFault.IO_ERROR, DiskFault.NO_SPACE])
def test_an_error_of_the_disk_takes_the_folder_offline(fault: DiskFault) -> None:
    place = Place()
    log, other = place.log(), place.log("other", batches=1)
    place.during(written_cleaned, lambda: fail_next(place, fault))
    place.clean()
    assert place.folder.failed is not None
    assert log.offline and other.offline and not log.cleaning
    assert not place.clean()


def fail_next(place: Place, fault: DiskFault) -> None:
    assert place.disk.faults is not None
    place.disk.faults.plan[place.disk.faults.calls] = fault


def test_what_nobody_expected_ends_the_cleaning_of_that_log_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place()
    first, second = place.log("first"), place.log("second")
    plain = module.note_keys

    def broken(plan: Any, offsets: Any) -> Any:
        if "first" in str(plan.folder):
            raise ZeroDivisionError("nobody")
        return plain(plan, offsets)

    monkeypatch.setattr(module, "note_keys", broken)
    assert place.clean() and place.clean() and not place.clean()
    assert is_cleaned(second) and not is_cleaned(first)
    assert caplog.text.count("first-0 cannot be compacted, and is left as it is: nobody") == 1
    fill(first)
    assert not place.clean()


def test_a_wrong_index_of_the_clean_part_is_built_anew_and_no_reason_to_stop() -> None:
    place = Place()
    log = place.log(batches=60, index_interval_bytes=100)
    assert place.clean()
    fill(log, 60)
    topic_id = log.topic_id or uuid.UUID(int=0)
    place.folder.close()
    disk = place.disk.after_kill()
    for name in disk.list(log.folder):
        if name.endswith(".index"):
            file = disk.open(log.folder / name)
            for position in range(0, file.size(), 8):
                file.write(b"\0\0\0\x07", position + 4)
    again = Place(disk)
    again.folder.load({"flights": topic_id}, lambda _: log.config)
    assert again.clean()
    assert is_cleaned(again.folder.logs[log.tp])
