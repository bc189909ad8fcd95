"""What a log does, as one kit of tests for every kind of disk: a class of tests whose `stand` a module provides.

Everything goes through a `LogFolder`, so that checkpoints, the clean-shutdown marker and the lock are part of it.
"""

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
from moldau.errors import ErrorCode, KafkaError
from moldau.log.appended import Appended
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.identity import CLEAN_MARKER
from moldau.log.log import Log
from moldau.records.batch import Row, batches, crc_holds
from moldau.replies import FileSlice
from moldau.runtime import Runtime
from tests.grounds import Ground
from tests.log.compaction.compacting import COMPACTED, compact, latest, put

STEP_MS = 1000
ROWS = 3


class Stand:
    """A log of one folder on some ground, which is stopped, killed and opened again. `settings` are the topic's."""

    def __init__(self, ground: Ground, **settings: Any):
        self.ground = ground
        self.clock = HandClock()
        self.config = config(**{"segment_bytes": 1000, "index_interval_bytes": 100, **settings})
        self.folder = self.opened()
        self.log = self.folder.create(TP, TOPIC_ID, self.config)

    def opened(self) -> LogFolder:
        folder = LogFolder(self.ground.folder / "data", Runtime(clock=self.clock, disk=self.ground.disk))
        assert folder.load({TP.topic: TOPIC_ID}, self._config_of) == []
        return folder

    def _config_of(self, _: str) -> TopicConfig:
        return self.config

    def configure(self, **settings: Any) -> None:
        self.config = self.log.config = config(**{**vars(self.config), **settings})

    def restart(self) -> None:
        self.folder.close()
        self.folder = self.opened()
        assert self.folder.clean
        self.log = self.folder.logs[TP]

    def kill(self) -> None:
        self.folder.close(clean=False)
        self.ground.kill()
        self.folder = self.opened()
        assert not self.folder.clean
        self.log = self.folder.logs[TP]

    def fill(self, batches_of_three: int) -> None:
        """Each record's value is its offset, and a second passes with each."""
        for _ in range(batches_of_three):
            first = int(self.log.log_end_offset)
            rows = [Row(b"k", b"%d" % at, time_of(at)) for at in range(first, first + ROWS)]
            assert self.append(rows).base_offset == first

    def append(self, rows: list[Row] | int, **batch: Any) -> Appended:
        return append(self.log, rows, **batch)

    def names(self, suffix: str = "") -> list[str]:
        found = self.ground.disk.list(self.ground.folder / "data" / str(TP))
        return [name for name in found if name.endswith(suffix)]


def time_of(offset: int) -> int:
    return NOW_MS + offset * STEP_MS


def bytes_of(piece: FileSlice | None) -> bytes:
    return b"" if piece is None else piece.file.read(piece.length, piece.offset)


def check_holds(log: Log, start: int, end: int) -> None:
    """The log holds the records that `fill` made in [start, end), however it is asked."""
    assert (log.log_start_offset, log.log_end_offset) == (start, end)
    records = read_all(log)
    assert [record.offset for record in records] == list(range(start, end))
    assert [(record.value, record.timestamp_ms) for record in records] == [
        (b"%d" % at, time_of(at)) for at in range(start, end)
    ]
    for at in range(start, end):
        data = bytes_of(log.read(at, 1, end))
        (_, header), *more = batches(data)
        assert header.base_offset <= at <= header.last_offset and not more and crc_holds(data)
        assert offset_for_time(log, time_of(at)) == offset_for_time(log, time_of(at) - STEP_MS + 1) == (time_of(at), at)
    assert offset_for_time(log, time_of(end)) is None
    for outside in (start - 1, end + 1):
        with pytest.raises(KafkaError) as raised:
            log.read(outside, 1, end)
        assert raised.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


class LogBehaviour:
    """The kit. Who runs it has a fixture `ground`."""

    @pytest.fixture
    def stand(self, ground: Ground) -> Stand:
        return Stand(ground)

    def test_an_empty_log_holds_nothing_and_stays_empty(self, stand: Stand) -> None:
        for again in (stand.restart, stand.kill, stand.restart):
            check_holds(stand.log, 0, 0)
            assert stand.log.read(0, 1000, 0) is None
            assert offset_of_max_timestamp(stand.log) is None
            again()

    def test_what_is_appended_is_read_back_over_all_segments(self, stand: Stand) -> None:
        stand.fill(60)
        assert len(stand.log.segments) > 5
        check_holds(stand.log, 0, 180)
        assert offset_of_max_timestamp(stand.log) == (time_of(179), 179)

    def test_a_read_takes_whole_batches_up_to_its_limit(self, stand: Stand) -> None:
        stand.fill(9)
        one = len(bytes_of(stand.log.read(0, 1, 27)))
        assert len(bytes_of(stand.log.read(0, 3 * one, 27))) == 3 * one
        assert len(bytes_of(stand.log.read(0, 3 * one, 7))) == 2 * one
        assert stand.log.read(0, one - 1, 27, min_one=False) is None

    def test_a_clean_stop_and_start_changes_nothing(self, stand: Stand) -> None:
        for total in (30, 60, 90):
            stand.fill(10)
            stand.restart()
            check_holds(stand.log, 0, total)
            assert stand.log.recovery_point == total

    def test_a_kill_loses_nothing_that_was_appended(self, stand: Stand) -> None:
        for total, flushes in ((30, False), (60, True), (90, False)):
            stand.fill(10)
            if flushes:
                stand.log.flush()
                stand.folder.checkpoint()
            stand.kill()
            check_holds(stand.log, 0, total)
        assert stand.log.recovery_point == 60

    def test_the_marker_is_there_only_while_nobody_runs(self, stand: Stand) -> None:
        disk, marker = stand.ground.disk, stand.ground.folder / "data" / CLEAN_MARKER
        assert not disk.exists(marker)
        stand.folder.close()
        assert disk.exists(marker)

    def test_what_lies_behind_the_last_whole_batch_is_cut_off_after_a_kill(self, stand: Stand) -> None:
        stand.fill(10)
        path, size = stand.log.active_segment.log.path, stand.log.active_segment.size
        whole = bytes_of(stand.log.read(27, 1, 30))
        for tail in (b"x", whole[:60], whole[:-1], bytes(500)):
            file = stand.ground.disk.open(path)
            file.write(tail, size)
            file.close()
            stand.kill()
            check_holds(stand.log, 0, 30)
            assert stand.ground.disk.size(path) == size

    def test_segments_roll_when_told_and_when_full(self, stand: Stand) -> None:
        stand.fill(2)
        assert stand.log.roll(NOW_MS).base_offset == 6
        assert stand.log.roll(NOW_MS).base_offset == 6
        stand.fill(1)
        assert [segment.base_offset for segment in stand.log.segments] == [0, 6]
        assert len(stand.names(".log")) == len(stand.names(".index")) == len(stand.names(".timeindex")) == 2
        stand.configure(segment_ms=2 * STEP_MS)
        stand.fill(3)
        assert [segment.base_offset for segment in stand.log.segments] == [0, 6, 9, 12, 15]
        stand.kill()
        check_holds(stand.log, 0, 18)

    def test_old_segments_go_and_stay_away(self, stand: Stand) -> None:
        stand.fill(60)
        stand.configure(retention_ms=100 * STEP_MS, file_delete_delay_ms=5000)
        now_ms = time_of(179)
        assert stand.log.retain(now_ms, 0) == []
        assert stand.log.retain(now_ms, 180)
        start = int(stand.log.log_start_offset)
        assert 60 <= start <= 80
        assert stand.names(".deleted")
        assert stand.folder.remove_due(now_ms + 4999) == 0
        assert stand.folder.remove_due(now_ms + 5000) > 0
        assert not stand.names(".deleted")
        check_holds(stand.log, start, 180)
        stand.configure(retention_ms=-1, retention_bytes=2500)
        assert stand.log.retain(now_ms, 180)
        start = int(stand.log.log_start_offset)
        for again in (stand.kill, stand.restart):
            again()
            assert not stand.names(".deleted")
            check_holds(stand.log, start, 180)

    def test_a_reader_keeps_what_is_deleted_under_it(self, stand: Stand) -> None:
        stand.fill(60)
        piece = stand.log.read(0, 500, 180)
        before = bytes_of(piece)
        stand.configure(retention_bytes=0, file_delete_delay_ms=0)
        stand.log.retain(NOW_MS, 180)
        stand.folder.remove_due(NOW_MS)
        assert bytes_of(piece) == before and crc_holds(before)

    def test_deleted_records_are_out_of_reach_at_once_and_after_every_start(self, stand: Stand) -> None:
        stand.fill(60)
        assert stand.log.delete_records_before(100) == 100
        check_holds(stand.log, 100, 180)
        stand.folder.checkpoint()
        for again in (stand.kill, stand.restart):
            again()
            check_holds(stand.log, 100, 180)
        assert stand.log.retain(NOW_MS, 180)
        stand.kill()
        check_holds(stand.log, 100, 180)
        assert stand.log.delete_records_before(180) == 180
        stand.restart()
        check_holds(stand.log, 180, 180)
        stand.fill(1)
        check_holds(stand.log, 180, 183)

    def test_a_topic_that_is_deleted_leaves_nothing(self, stand: Stand) -> None:
        stand.fill(10)
        stand.configure(file_delete_delay_ms=1000)
        stand.folder.delete(TP, NOW_MS)
        folder = stand.ground.folder / "data"
        assert str(TP) not in stand.ground.disk.list(folder)
        with pytest.raises(KafkaError):
            stand.append(1)
        assert stand.folder.remove_due(NOW_MS + 1000) == 1
        assert not [name for name in stand.ground.disk.list(folder) if name.startswith(TP.topic)]
        stand.log = stand.folder.create(TP, TOPIC_ID, stand.config)
        check_holds(stand.log, 0, 0)

    def test_a_batch_sent_again_stands_where_it_stood_after_every_start(self, stand: Stand) -> None:
        sequence = 0
        for again in (lambda: None, stand.kill, stand.restart, stand.kill):
            again()
            sent = []
            for _ in range(5):
                place = {"producer_id": 9, "producer_epoch": 0, "base_sequence": sequence}
                sent.append((place, stand.append(2, **place).base_offset))
                sequence += 2
            for then in (lambda: None, stand.kill, stand.restart):
                then()
                for place, offset in sent:
                    answer = stand.append(2, **place)
                    assert (answer.duplicate, answer.base_offset) == (True, offset)
            skipped = stand.append(2, producer_id=9, producer_epoch=0, base_sequence=sequence + 1)
            assert skipped.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert stand.log.log_end_offset == sequence

    def test_leader_epochs_come_back(self, stand: Stand) -> None:
        for epoch in (0, 3, 3, 7):
            stand.append(10, leader_epoch=epoch)
        for again in (stand.kill, stand.restart):
            again()
            assert [stand.log.epochs.epoch_at(at) for at in (0, 9, 10, 29, 30, 39)] == [0, 0, 3, 3, 7, 7]

    def test_lost_indexes_are_built_anew(self, stand: Stand) -> None:
        stand.fill(60)
        stand.folder.close()
        for name in [*stand.names(".index")[:3], *stand.names(".timeindex")[2:5]]:
            stand.ground.disk.remove(stand.ground.folder / "data" / str(TP) / name)
        stand.folder = stand.opened()
        stand.log = stand.folder.logs[TP]
        check_holds(stand.log, 0, 180)
        assert len(stand.names(".index")) == len(stand.names(".timeindex")) == len(stand.names(".log"))

    @pytest.fixture
    def table(self, ground: Ground) -> Stand:
        return Stand(ground, **COMPACTED, delete_retention_ms=5000)

    def test_compaction_keeps_the_last_record_of_each_key_where_it_was(self, table: Stand) -> None:
        for number in range(120):
            put(table.log, (f"key-{number % 7}", str(number)))
        last = {f"key-{number % 7}": str(number) for number in range(120)}
        assert compact(table.log)
        for again in (lambda: None, table.kill, table.restart, table.kill):
            again()
            assert (table.log.log_start_offset, table.log.log_end_offset) == (0, 120)
            assert latest(table.log) == last
            assert [record.offset for record in read_all(table.log)] == list(range(113, 120))
            assert [record.offset for record in read_all(table.log, 117)] == [117, 118, 119]
            assert not table.names(".cleaned") and not table.names(".swap")
        assert not compact(table.log)
        assert put(table.log, ("key-0", "new")) == 120

    def test_a_deleted_key_stays_deleted_and_its_tombstone_goes_in_its_time(self, table: Stand) -> None:
        put(table.log, ("a", "1"), ("b", "1"))
        put(table.log, ("a", None))
        put(table.log, ("c", "1"))
        assert compact(table.log)
        for again in (table.kill, table.restart):
            again()
            assert [(record.key, record.value) for record in read_all(table.log)] == [
                (b"b", b"1"), (b"a", None), (b"c", b"1"),
            ]  # fmt: skip
        table.clock.ms += 5001
        put(table.log, ("d", "1"), now_ms=table.clock.ms)
        assert compact(table.log)
        for again in (table.kill, table.restart):
            again()
            assert latest(table.log) == {"b": "1", "c": "1", "d": "1"}
            assert b"a" not in [record.key for record in read_all(table.log)]

    def test_a_reader_and_a_producer_notice_nothing_of_compaction(self, table: Stand) -> None:
        place = {"producer_id": 9, "producer_epoch": 0}
        for number in range(50):
            put(table.log, ("key", str(number)), base_sequence=number, **place)
        piece = table.log.read(0, 5000, 50)
        before = bytes_of(piece)
        assert compact(table.log)
        table.folder.remove_due(table.clock.ms)
        assert bytes_of(piece) == before
        for again, known in ((lambda: None, range(45, 50)), (table.kill, [49]), (table.restart, [49])):
            again()
            for number in known:
                answer = put(table.log, ("key", "again"), base_sequence=number, **place)
                assert (answer, table.log.log_end_offset) == (number, 50)

    def test_what_is_compacted_and_deleted_by_age_loses_both(self, ground: Ground) -> None:
        stand = Stand(ground, **{**COMPACTED, "cleanup_policy": ("compact", "delete"), "retention_ms": 50 * STEP_MS})
        for at in range(100):
            put(stand.log, (f"key-{at % 3}", str(at)), now_ms=time_of(at))
        assert compact(stand.log)
        assert [record.offset for record in read_all(stand.log)] == [97, 98, 99]
        stand.log.retain(time_of(99), 100)
        assert [record.offset for record in read_all(stand.log)] == [97, 98, 99]
        put(stand.log, ("key-0", "100"), now_ms=time_of(100))
        stand.log.roll(NOW_MS)
        assert stand.log.retain(time_of(150), 101)
        start = int(stand.log.log_start_offset)
        for again in (stand.kill, stand.restart):
            again()
            assert stand.log.log_start_offset == start
            assert [record.offset for record in read_all(stand.log)] == [100]
