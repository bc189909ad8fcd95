"""Everything that can happen to a log, in any order, against a list of records."""

import random
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.logs import NOW_MS, HandClock, append, config, offset_for_time, open_log, read_all
from harness.tiers import examples
from moldau.log.log import Log
from moldau.records.batch import Row
from moldau.records.rows import iterate
from moldau.runtime import Disk, RealDisk, Runtime
from moldau.simulation.disk import SimulatedDisk

HOUR_MS = 3_600_000
PRODUCER = 7


class LogAgainstAList(RuleBasedStateMachine):
    """`times` holds the timestamp of every record that is still there, by its offset; its value is the offset."""

    def __init__(self) -> None:
        super().__init__()
        self.disk: Disk = RealDisk()
        self.folder = Path(tempfile.mkdtemp(prefix="moldau-log-"))
        self.clock = HandClock()
        self.times: dict[int, int] = {}
        self.sent: list[tuple[int, int, int]] = []
        self.log: Log

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(
        segment_bytes=st.sampled_from([400, 1000, 5000]),
        index_interval_bytes=st.sampled_from([0, 100, 4096]),
        segment_index_bytes=st.sampled_from([36, 1000]),
    )
    def begin(self, segment_bytes: int, index_interval_bytes: int, segment_index_bytes: int) -> None:
        self.config = config(
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval_bytes,
            segment_index_bytes=segment_index_bytes,
            segment_ms=10 * HOUR_MS,
            file_delete_delay_ms=0,
        )
        self.log = self.opened(clean=True)

    def opened(self, clean: bool, recovery_point: int = 0, log_start: int = 0) -> Log:
        runtime = Runtime(clock=self.clock, disk=self.disk)
        return open_log(
            self.folder / "p",
            runtime,
            config=self.config,
            clean=clean,
            recovery_point=recovery_point,
            log_start=log_start,
        )

    @rule(ages=st.lists(st.integers(0, 30), min_size=1, max_size=4), epoch=st.integers(0, 1), idempotent=st.booleans())
    def append(self, ages: list[int], epoch: int, idempotent: bool) -> None:
        end = int(self.log.log_end_offset)
        times = [NOW_MS - age * HOUR_MS for age in ages]
        rows = [Row(None, b"%d" % (end + number), time) for number, time in enumerate(times)]
        sequence = sum(count for _, count, _ in self.sent) if idempotent else -1
        names = {"producer_id": PRODUCER, "producer_epoch": 0, "base_sequence": sequence} if idempotent else {}
        answer = append(self.log, rows, leader_epoch=max(self.log.epochs.latest, 0) + epoch, **names)
        assert (answer.base_offset, answer.last_offset, answer.error) == (end, end + len(ages) - 1, 0)
        self.times.update({end + number: time for number, time in enumerate(times)})
        if idempotent:
            self.sent.append((sequence, len(ages), end))

    @precondition(lambda self: self.sent)
    @rule(back=st.integers(1, 5))
    def send_again(self, back: int) -> None:
        sequence, count, offset = self.sent[-min(back, len(self.sent))]
        if self.log.producers.get(PRODUCER) is None or offset < self.log.segments[0].base_offset:
            return
        rows = [Row(None, b"again", NOW_MS)] * count
        answer = append(self.log, rows, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence)
        assert (answer.duplicate, answer.base_offset) == (True, offset)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.clock.now_ms())

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.log.log_end_offset

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        start, end = int(self.log.log_start_offset), int(self.log.log_end_offset)
        self.forget_before(self.log.delete_records_before(start + int(share * (end - start))))

    @rule(retention_hours=st.integers(0, 40), retention_bytes=st.sampled_from([-1, 0, 500, 2000]))
    def retain(self, retention_hours: int, retention_bytes: int) -> None:
        settings = {**vars(self.config), "retention_ms": retention_hours * HOUR_MS, "retention_bytes": retention_bytes}
        self.log.config = config(**settings)
        before, end = self.log.segments, int(self.log.log_end_offset)
        gone = self.log.retain(NOW_MS, end)
        self.log.config = self.config
        assert list(before[: len(gone)]) == list(gone)
        self.forget_before(self.log.log_start_offset)
        assert retention_bytes < 0 or self.log.size <= retention_bytes + 5000
        self.log.services.doomed.remove_due(NOW_MS)

    def forget_before(self, offset: int) -> None:
        self.times = {at: time for at, time in self.times.items() if at >= offset}

    @rule()
    def restart(self) -> None:
        start = int(self.log.log_start_offset)
        self.log.close()
        self.log = self.opened(clean=True, log_start=start)

    @rule(checkpointed=st.booleans())
    def kill(self, checkpointed: bool) -> None:
        start, point = int(self.log.log_start_offset), self.log.recovery_point if checkpointed else 0
        self.log.abandon()
        self.log = self.opened(clean=False, recovery_point=point, log_start=start)

    @rule(share=st.floats(0, 1), garbage=st.binary(max_size=100))
    def lose_power(self, share: float, garbage: bytes) -> None:
        """The end of the last file is lost or torn, behind what was flushed."""
        start, point, segment = int(self.log.log_start_offset), self.log.recovery_point, self.log.active_segment
        flushed = segment.find(point) if point >= segment.base_offset else segment.find(segment.base_offset)
        safe = segment.size if flushed is None else flushed.position
        self.log.abandon()
        path = segment.log.path
        kept = safe + int(share * (segment.size - safe))
        path.write_bytes(path.read_bytes()[:kept] + garbage)
        self.come_back(start, point)

    def come_back(self, start: int, point: int) -> None:
        """What was flushed is there, and of the rest nothing but a beginning."""
        self.log = self.opened(clean=False, recovery_point=point, log_start=start)
        end = int(self.log.log_end_offset)
        assert end >= min(point, max(self.times, default=-1) + 1)
        lost = [at for at in self.times if at >= end]
        assert lost == sorted(self.times)[len(self.times) - len(lost) :]
        self.times = {at: time for at, time in self.times.items() if at < end}
        self.sent = [batch for batch in self.sent if batch[2] + batch[1] <= end]

    @invariant()
    def every_record_is_where_it_was(self) -> None:
        found = read_all(self.log)
        assert [record.offset for record in found] == sorted(self.times)
        assert all(record.value == b"%d" % record.offset for record in found)
        assert all(record.timestamp_ms == self.times[record.offset] for record in found)

    @rule(share=st.floats(0, 1), up_to=st.floats(0, 1), bytes_max=st.integers(0, 3000))
    def read(self, share: float, up_to: float, bytes_max: int) -> None:
        start, end = int(self.log.log_start_offset), int(self.log.log_end_offset)
        offset, limit = start + int(share * (end - start)), start + int(up_to * (end - start))
        piece = self.log.read(offset, bytes_max, limit)
        if offset >= limit:
            assert piece is None
        if piece is not None:
            found = list(iterate(piece.file.read(piece.length, piece.offset)))
            assert found and all(record.offset < limit for record in found)
            assert any(record.offset == offset for record in found)
            if piece.on_left is not None:
                piece.on_left()

    @rule(age=st.integers(0, 31))
    def look_for_a_time(self, age: int) -> None:
        time = NOW_MS - age * HOUR_MS
        expected = next(((self.times[at], at) for at in sorted(self.times) if self.times[at] >= time), None)
        assert offset_for_time(self.log, time) == expected


class LogOnADiskThatLosesPower(LogAgainstAList):
    """The same on a disk where a crash loses, tears and reorders whatever was not flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.disk.make_folder(self.folder)
        for above in self.folder.parents:
            self.disk.sync_folder(above)

    @rule(seed=st.integers(0, 2**32))
    def lose_power(self, seed: int) -> None:
        start, point = int(self.log.log_start_offset), self.log.recovery_point
        self.log.abandon()
        assert isinstance(self.disk, SimulatedDisk)
        self.disk = self.disk.after_crash(random.Random(seed))
        self.come_back(start, point)


LogAgainstAList.TestCase.settings = settings(max_examples=examples(20, 30), stateful_step_count=30)
LogOnADiskThatLosesPower.TestCase.settings = settings(max_examples=examples(30, 40), stateful_step_count=30)
TestLogAgainstAList = LogAgainstAList.TestCase
TestLogOnADiskThatLosesPower = LogOnADiskThatLosesPower.TestCase
