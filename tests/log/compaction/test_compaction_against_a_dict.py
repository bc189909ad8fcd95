"""A log that is appended to, compacted, flushed, closed, killed and opened again, beside a list and a dict."""

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.logs import HandClock, append, config, offset_for_time, open_log, read_all, records_from
from harness.tiers import examples
from moldau.log.log import Log
from moldau.records.batch import Marker, Row
from moldau.records.rows import Record
from moldau.runtime import Runtime
from tests.log.compaction.compacting import COMPACTED, clean_offsets

RETENTION_MS = 1000
CONFIG: dict[str, Any] = {**COMPACTED, "delete_retention_ms": RETENTION_MS, "segment_index_bytes": 2000}

keys = st.integers(0, 9).map(lambda number: b"%d" % number) | st.none()
values = st.none() | st.binary(max_size=30)
row_lists = st.lists(st.tuples(keys, values), min_size=1, max_size=8)


class CompactedLog(RuleBasedStateMachine):
    """`written`: every record that was acknowledged, by offset; `aborted`: the offsets of those that do not count."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="moldau-compaction-"))
        self.clock = HandClock()
        self.written: dict[int, Record] = {}
        self.aborted: set[int] = set()
        self.open: list[int] | None = None
        self.sequence = 0
        self.log: Log

    def teardown(self) -> None:
        self.log.abandon()
        shutil.rmtree(self.root)

    @initialize(merging=st.booleans(), map_bytes=st.sampled_from([24 * 12, 1 << 16]))
    def start(self, merging: bool, map_bytes: int) -> None:
        self.config = config(**{**CONFIG, "segment_bytes": 2000 if merging else 600})
        self.map_bytes = map_bytes
        self.reopen(clean=True)

    def reopen(self, clean: bool) -> None:
        self.log = open_log(self.root / "p", Runtime(clock=self.clock), clean=clean, config=self.config)
        self.log.producers.settle(self.log.log_end_offset)

    def append(self, rows: list[tuple[bytes | None, bytes | None]], codec: int, **batch: Any) -> list[int]:
        records = [Row(key, value, self.clock.ms - at) for at, (key, value) in enumerate(rows)]
        base = append(self.log, records, self.clock.ms, codec=codec, **batch).base_offset
        for at, row in enumerate(records):
            self.written[base + at] = Record(base + at, row.timestamp_ms, 0, row.key, row.value, [])
        return list(range(base, base + len(records)))

    @rule(rows=row_lists, codec=st.sampled_from([0, 0, 0, 1, 4]))
    def produce(self, rows: list[tuple[bytes | None, bytes | None]], codec: int) -> None:
        self.append(rows, codec)

    @rule(rows=row_lists)
    def produce_in_a_transaction(self, rows: list[tuple[bytes | None, bytes | None]]) -> None:
        offsets = self.append(rows, 0, producer_id=7, producer_epoch=0, base_sequence=self.sequence, attributes=0x10)
        self.sequence += len(rows)
        self.open = (self.open or []) + offsets

    @precondition(lambda self: self.open is not None)
    @rule(commits=st.booleans())
    def end_transaction(self, commits: bool) -> None:
        assert not self.log.append_marker(7, 0, Marker(commits, 1), 1, 0, self.clock.ms).error
        self.log.producers.settle(self.log.log_end_offset)
        if not commits and self.open:
            self.aborted.update(self.open)
        self.open = None

    @rule(ms=st.integers(0, 2 * RETENTION_MS))
    def wait(self, ms: int) -> None:
        self.clock.ms += ms

    @rule(roll=st.booleans())
    def compact(self, roll: bool) -> None:
        if roll and self.log.active_segment.size:
            self.log.roll(self.clock.ms)
        clean_offsets(self.log, self.map_bytes)()

    @rule(roll=st.booleans())
    def compact_all(self, roll: bool) -> None:
        """Until nothing is dirty: then no key is there twice below what could be cleaned."""
        if roll and self.log.active_segment.size:
            self.log.roll(self.clock.ms)
        cleaner = clean_offsets(self.log, self.map_bytes)
        while cleaner():
            pass
        end = self.log.committed.last_stable_offset(self.log.log_end_offset)
        end = max(segment.base_offset for segment in self.log.segments if segment.base_offset <= end)
        seen = [record.key for record in read_all(self.log) if record.offset < end]
        assert None not in seen and len(seen) == len(set(seen))
        assert not [record for record in read_all(self.log) if record.offset < end and record.offset in self.aborted]

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.reopen(clean=True)

    @rule()
    def kill(self) -> None:
        self.log.abandon()
        self.reopen(clean=False)

    @rule()
    def remove_due(self) -> None:
        self.log.services.doomed.remove_due(self.clock.ms)

    def latest(self, records: list[Record]) -> dict[bytes, tuple[int, bytes]]:
        known: dict[bytes, tuple[int, bytes]] = {}
        for record in records:
            if record.key is None or record.offset in self.aborted:
                continue
            if record.value is None:
                known.pop(record.key, None)
            else:
                known[record.key] = (record.offset, record.value)
        return known

    @invariant()
    def a_reader_knows_what_was_written(self) -> None:
        if not hasattr(self, "log"):
            return
        records = read_all(self.log)
        assert all(self.written[record.offset] == record for record in records)
        assert [record.offset for record in records] == sorted({record.offset for record in records})
        everything = [self.written[offset] for offset in sorted(self.written)]
        assert self.latest(records) == self.latest(everything)
        unstable = self.log.producers.first_unstable_offset
        assert unstable == (self.open[0] if self.open else None)
        for record in random.Random(len(records)).sample(records, min(3, len(records))):
            assert next(records_from(self.log, record.offset)) == record
            found = offset_for_time(self.log, record.timestamp_ms)
            assert found is not None and record.timestamp_ms <= found.timestamp_ms and found.offset <= record.offset

    @invariant()
    def aborted_records_that_are_left_are_known_to_be(self) -> None:
        if not hasattr(self, "log"):
            return
        left = [record.offset for record in read_all(self.log) if record.offset in self.aborted]
        ranges = [
            (one.first_offset, one.last_offset)
            for one in self.log.committed.aborted_between(0, self.log.log_end_offset)
        ]
        assert all(any(first <= offset <= last for first, last in ranges) for offset in left)


CompactedLog.TestCase.settings = settings(max_examples=examples(20, 30), stateful_step_count=40)
TestCompactedLog = CompactedLog.TestCase
