"""What power losses once did to a log folder; each was found by `tests/crash_points`."""

import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.logs import (
    NOW_MS,
    TOPIC_ID,
    TP,
    HandClock,
    append,
    config,
    offset_for_time,
    offset_of_max_timestamp,
    read_all,
)
from moldau.config import TopicConfig
from moldau.log.folders.folder import LogFolder
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row
from moldau.runtime import Runtime
from moldau.simulation.disk import SimulatedDisk

ROOT = Path("/data")
SEEDS = range(40)
MANY = range(300)
SMALL = config(segment_bytes=1000, index_interval_bytes=0, segment_index_bytes=1000, file_delete_delay_ms=0)
Topics = dict[str, uuid.UUID]


class Place:
    """A folder on a disk that loses power."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.clock = HandClock()
        self.topics: Topics = {TP.topic: TOPIC_ID}
        self.deleted: dict[uuid.UUID, str] = {}
        self.folder: LogFolder
        self.start()

    def start(self, settings: TopicConfig = SMALL) -> list[str]:
        self.folder = LogFolder(ROOT, Runtime(clock=self.clock, disk=self.disk))
        return self.folder.load(self.topics, lambda _: settings, self.deleted)

    def create(self, topic_id: uuid.UUID = TOPIC_ID) -> Any:
        return self.folder.create(TP, topic_id, SMALL)

    def lose_power(self, seed: int) -> list[str]:
        self.disk = self.disk.after_crash(random.Random(seed))
        return self.start()

    @property
    def log(self) -> Any:
        return self.folder.logs[TP]


def after(story: Callable[[Place], None], seed: int) -> tuple[Place, list[str]]:
    place = Place()
    story(place)
    return place, place.lose_power(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_retention_took_after_delete_records_stays_below_the_written_start(seed: int) -> None:
    def story(place: Place) -> None:
        log = place.create()
        for _ in range(40):
            append(log, 1)
        log.flush()
        log.delete_records_before(log.segments[2].base_offset)
        log.retain(NOW_MS, log.log_end_offset)
        place.folder.checkpoint()
        place.deleted_below = log.log_start_offset  # type: ignore[attr-defined]

    place, _ = after(story, seed)
    assert place.log.log_start_offset == place.deleted_below > 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partition_is_not_measured_by_what_was_written_down_of_an_earlier_one(seed: int) -> None:
    def story(place: Place) -> None:
        log = place.create()
        for _ in range(40):
            append(log, 1)
        log.flush()
        log.delete_records_before(30)
        place.folder.checkpoint()
        place.folder.delete(TP, NOW_MS)
        place.topics[TP.topic] = uuid.UUID(int=78)
        log = place.create(uuid.UUID(int=78))
        append(log, 3)
        log.flush()

    place, strays = after(story, seed)
    assert strays == []
    assert (place.log.log_start_offset, place.log.log_end_offset, place.log.recovery_point) == (0, 3, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_topic_that_was_deleted_before_anything_lasted_leaves_nothing_behind(seed: int) -> None:
    def story(place: Place) -> None:
        append(place.create(), 3)
        place.deleted = {place.topics.pop(TP.topic): TP.topic}

    place, strays = after(story, seed)
    assert strays == []
    place.deleted = {}
    place.topics[TP.topic] = uuid.UUID(int=78)
    assert place.create(uuid.UUID(int=78)).log_end_offset == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_recovery_cut_off_does_not_come_back_behind_what_is_written_next(seed: int) -> None:
    place = Place()
    log = place.create()
    for number in range(3):
        append(log, [Row(None, b"old %d" % number, NOW_MS)])
        if number:
            log.roll(NOW_MS)
    log.flush()
    path = log.segments[0].log.path
    place.disk = place.disk.after_kill()
    file = place.disk.open(path)
    size = file.size()
    file.write(b"?", size - 1)
    file.flush()
    place.start()
    append(place.log, [Row(None, b"new 1", NOW_MS)])
    place.log.roll(NOW_MS)
    place.lose_power(seed)
    values = [record.value for record in read_all(place.log)]
    assert values in ([b"old 0"], [b"old 0", b"new 1"])


@pytest.mark.parametrize("seed", MANY)
def test_a_segment_that_was_closed_after_the_last_flush_has_the_indexes_of_what_is_in_it(seed: int) -> None:
    def story(place: Place) -> None:
        log = place.create()
        for number in range(6):
            append(log, [Row(None, b"v", NOW_MS - number)])
        log.flush()
        place.folder.checkpoint()
        log.roll(NOW_MS)

    place, _ = after(story, seed)
    assert offset_of_max_timestamp(place.log) == (NOW_MS, 0)
    assert offset_for_time(place.log, NOW_MS) == (NOW_MS, 0)


@pytest.mark.parametrize("seed", MANY)
def test_an_index_that_was_built_anew_after_a_clean_stop_lasts(seed: int) -> None:
    place = Place()
    log = place.create()
    for number in range(70):
        append(log, [Row(None, b"v" * 10, NOW_MS - number)])
    path = log.segments[0].offsets.file.path
    place.folder.close()
    place.disk = place.disk.after_kill()
    place.disk.remove(path)
    place.disk.sync_folder(path.parent)
    place.start()
    place.folder.checkpoint()
    append(place.log, 1)
    place.lose_power(seed)
    segment = place.log.segments[0]
    assert [segment.find(offset).header.base_offset for offset in range(8)] == list(range(8))
    assert offset_for_time(place.log, NOW_MS) == (NOW_MS, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_producer_whose_batches_retention_took_is_known_after_a_flush(seed: int) -> None:
    def story(place: Place) -> None:
        log = place.create()
        append(log, 2, producer_id=7, producer_epoch=0, base_sequence=0)
        for _ in range(20):
            append(log, 1)
        log.delete_records_before(log.segments[-1].base_offset)
        log.flush()
        place.folder.checkpoint()
        log.retain(NOW_MS, log.log_end_offset)
        log.flush()
        place.folder.checkpoint()

    place, _ = after(story, seed)
    assert len(place.log.segments) == 1
    assert place.log.producers.get(7).batches[-1].last_sequence == 1


def test_a_log_folder_keeps_its_name() -> None:
    for seed in SEEDS:
        place = Place()
        append(place.create(), 3)
        place.log.flush()
        place.lose_power(seed)
        assert place.log.log_end_offset == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_transaction_that_began_in_what_retention_took_is_still_aborted(seed: int) -> None:
    def story(place: Place) -> None:
        log = place.create()
        log.flush()
        names = {"producer_id": 7, "producer_epoch": 0, "attributes": TRANSACTIONAL_BIT}
        append(log, 2, base_sequence=0, **names)
        log.roll(NOW_MS)
        append(log, 2, base_sequence=2, **names)
        log.append_marker(7, 0, Marker(commits=False, coordinator_epoch=0), 1, 0, NOW_MS)
        log.delete_records_before(2)
        log.retain(NOW_MS, log.log_end_offset)

    place, _ = after(story, seed)
    log = place.log
    if log.log_start_offset == 2 and log.log_end_offset == 5:
        assert [aborted[:3] for aborted in log.committed.aborted_between(2, 5)] == [(7, 0, 4)]


def holed(place: Place) -> None:
    """A compacted log whose first segment lost its last batch without a trace, in front of another."""
    log = place.create()
    for number in range(4):
        append(log, [Row(b"k%d" % number, b"v", NOW_MS)])
        if number == 1:
            log.roll(NOW_MS)
    file = log.segments[0].log.get()
    file.truncate(log.segments[0].walk(0).__next__().header.size)
    place.disk = place.disk.after_kill()


def test_a_compacted_log_has_no_hole_in_what_was_not_flushed() -> None:
    place = Place()
    holed(place)
    place.start(config(cleanup_policy=("compact",), segment_bytes=1000))
    assert [record.key for record in read_all(place.log)] == [b"k0"]


def test_a_gap_may_be_what_kafkas_compaction_left_where_it_is_not_known_what_was_flushed() -> None:
    place = Place()
    holed(place)
    place.disk.open(ROOT / "recovery-point-offset-checkpoint", create=True).write(b"7", 0)
    place.start(config(cleanup_policy=("compact",), segment_bytes=1000))
    assert [record.key for record in read_all(place.log)] == [b"k0", b"k2", b"k3"]


def test_a_segment_that_was_recovered_has_the_snapshot_that_it_would_have_had() -> None:
    place = Place()
    log = place.create()
    for number in range(30):
        append(log, 1, producer_id=7, producer_epoch=0, base_sequence=number)
    bases = [segment.base_offset for segment in log.segments[1:]]
    before = {base: place.disk.open(path_of(base)).read(1000, 0) for base in bases}
    place.disk = place.disk.after_kill()
    for base in bases:
        place.disk.remove(path_of(base))
    place.start()
    assert len(bases) > 1
    assert {base: place.disk.open(path_of(base)).read(1000, 0) for base in bases} == before
    place.log.flush()
    place.lose_power(1)
    assert {base: place.disk.open(path_of(base)).read(1000, 0) for base in bases} == before


def path_of(base_offset: int) -> Path:
    return ROOT / str(TP) / f"{base_offset:020d}.snapshot"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_recovery_takes_no_flushed_snapshot_away(seed: int) -> None:
    place = Place()
    log = place.create()
    append(log, 2, producer_id=7, producer_epoch=0, base_sequence=0)
    for _ in range(20):
        append(log, 1)
    log.flush()
    log.delete_records_before(log.segments[-1].base_offset)
    log.retain(NOW_MS, log.log_end_offset)
    log.flush()
    for _ in range(2):
        place.lose_power(seed)
        assert place.log.producers.get(7).batches[-1].last_sequence == 1


def test_the_epoch_of_a_batch_that_was_lost_is_not_taken_for_that_of_its_successor() -> None:
    place = Place()
    log = place.create()
    append(log, 2, leader_epoch=0)
    log.flush()
    append(log, 2, leader_epoch=1)
    append(log, 2, leader_epoch=2)
    log.flush()
    file = log.segments[0].log.get()
    file.truncate(file.size() // 3)
    place.disk = place.disk.after_kill()
    place.start()
    append(place.log, 4, leader_epoch=2)
    place.disk = place.disk.after_kill()
    place.start()
    assert place.log.epochs.starts == ((0, 0), (2, 2))
