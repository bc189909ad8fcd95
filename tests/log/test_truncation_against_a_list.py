"""A follower's log: what a leader wrote is appended, its end is truncated, it leads for a while, it is opened again; in
any order, against a list of batches."""

import random
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harness.logs import NOW_MS, HandClock, append, config, offset_for_time, open_log
from harness.tiers import examples
from moldau.errors import ErrorCode
from moldau.log import replicated, truncation
from moldau.log.log import Log
from moldau.log.producers.producers import Producers
from moldau.names import Offset
from moldau.records.batch import TRANSACTIONAL_BIT, BatchHeader, Marker, Row, encode_batch, encode_marker, read_header
from moldau.records.rows import iterate
from moldau.records.validation import assign_offsets
from moldau.runtime import Disk, Runtime
from moldau.simulation.disk import SimulatedDisk

HOUR_MS = 3_600_000
PRODUCERS = (7, 8)


class Held(NamedTuple):
    """A batch that the log must hold, byte for byte."""

    header: BatchHeader
    marker: Marker | None
    data: bytes


class FollowerAgainstAList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk: Disk = SimulatedDisk()
        self.folder = Path(tempfile.mkdtemp(prefix="moldau-follower-"))
        self.disk.make_folder(self.folder)
        for above in (self.folder, *self.folder.parents):
            self.disk.sync_folder(above)
        self.clock = HandClock()
        self.batches: list[Held] = []
        self.epoch = 0
        self.checkpoint = 0
        self.flushed = 0
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

    def opened(self, clean: bool) -> Log:
        return open_log(
            self.folder / "p",
            Runtime(clock=self.clock, disk=self.disk),
            config=self.config,
            clean=clean,
            recovery_point=self.checkpoint,
            gaps_are_losses=True,
            write_recovery_points=self.write_recovery_point,
        )

    def write_recovery_point(self) -> None:
        """The log folder's part; what is written there lasts."""
        self.checkpoint = self.log.recovery_point

    # what a leader writes ---------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        return self.batches[-1].header.next_offset if self.batches else 0

    def expected_producers(self) -> Producers:
        producers = Producers()
        for batch in self.batches:
            if batch.header.producer_id >= 0:
                producers.replay(batch.header, batch.marker)
        return producers

    def encoded(self, seed: random.Random, producers: Producers, base: int) -> Held:
        """One batch as a leader would have stored it at an offset."""
        producer_id = seed.choice((-1, -1, *PRODUCERS))
        producer = producers.get(producer_id)
        marker = None
        if producer is not None and producer.transaction_start >= 0 and seed.random() < 0.5:
            marker = Marker(seed.random() < 0.5, 0)
            data = encode_marker(producer_id, producer.epoch, marker.commits, 0, NOW_MS)
        else:
            last = producer.batches[-1].last_sequence if producer is not None and producer.batches else -1
            times = [NOW_MS - seed.randrange(30) * HOUR_MS for _ in range(seed.choice((1, 1, 2, 4)))]
            rows = [Row(None, seed.randbytes(seed.choice((1, 10, 200))), time) for time in times]
            names = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": last + 1}
            is_open = producer is not None and producer.transaction_start >= 0
            in_transaction = producer_id >= 0 and (is_open or seed.random() < 0.5)
            attributes = TRANSACTIONAL_BIT if in_transaction else 0
            data = encode_batch(rows, attributes=attributes, **(names if producer_id >= 0 else {}))
        assign_offsets(data, base, self.epoch, None, read_header(data).max_timestamp)
        return Held(read_header(data), marker, bytes(data))

    @rule(seed=st.integers(0, 2**32), count=st.integers(1, 8), cut=st.integers(0, 60), gaps=st.booleans())
    def follow(self, seed: int, count: int, cut: int, gaps: bool) -> None:
        """The reply to a Fetch: whole batches, and perhaps the beginning of another one."""
        draw, producers, base = random.Random(seed), self.expected_producers(), self.end
        reply: list[Held] = []
        for _ in range(count):
            base += draw.randrange(5) if gaps and draw.random() < 0.3 else 0
            batch = self.encoded(draw, producers, base)
            if batch.header.producer_id >= 0:
                producers.replay(batch.header, batch.marker)
            reply.append(batch)
            base = batch.header.next_offset
        beginning = self.encoded(draw, producers, base).data[:cut]
        end = replicated.append(self.log, b"".join(batch.data for batch in reply) + beginning, self.epoch, NOW_MS)
        self.batches += reply
        assert end == self.end

    @rule(number=st.integers(0, 3))
    def lead(self, number: int) -> None:
        """A client's batch; the offset is this log's to assign."""
        base = self.end
        answer = append(self.log, [Row(None, b"%d" % number, NOW_MS)], leader_epoch=self.epoch)
        assert (answer.error, answer.base_offset) == (ErrorCode.NONE, base)
        data = encode_batch([Row(None, b"%d" % number, NOW_MS)])
        assign_offsets(data, base, self.epoch, None, NOW_MS)
        self.batches.append(Held(read_header(data), None, bytes(data)))

    @rule()
    def another_leader(self) -> None:
        self.epoch += 1

    @rule(share=st.floats(0, 1), inside=st.booleans())
    def truncate(self, share: float, inside: bool) -> None:
        number = int(share * len(self.batches))
        offset = self.batches[number].header.base_offset if number < len(self.batches) else self.end + 3
        if inside and number < len(self.batches):
            offset = self.batches[number].header.last_offset
        self.batches = self.batches[:number]
        end = truncation.truncate_to(self.log, offset, offset, NOW_MS)
        self.flushed = min(self.flushed, end)
        assert (end, self.log.log_end_offset) == (self.end, self.end)
        assert self.log.recovery_point <= end and self.checkpoint <= end
        self.epoch += 1

    # what else happens to a log ---------------------------------------------------------------------------------

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    @rule()
    def write_checkpoint(self) -> None:
        self.write_recovery_point()

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW_MS)

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.write_recovery_point()
        self.log = self.opened(clean=True)
        self.flushed = self.end

    @rule()
    def kill(self) -> None:
        self.log.abandon()
        self.log = self.opened(clean=False)

    @rule(seed=st.integers(0, 2**32))
    def lose_power(self, seed: int) -> None:
        assert isinstance(self.disk, SimulatedDisk)
        self.log.abandon()
        self.disk = self.disk.after_crash(random.Random(seed))
        self.log = self.opened(clean=False)
        end = self.log.log_end_offset
        assert self.flushed <= end <= self.end
        self.batches = [batch for batch in self.batches if batch.header.next_offset <= end]

    # what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def the_log_is_the_list(self) -> None:
        at, found = 0, bytearray()
        while piece := self.log.read_batches(at, 1 << 20):
            found += piece
            at = next(batch for batch in reversed(self.batches) if found.endswith(batch.data)).header.next_offset
        assert bytes(found) == b"".join(batch.data for batch in self.batches)
        assert self.log.log_end_offset == self.end

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        for header, _, _ in self.batches:
            assert self.log.epochs.epoch_at(header.base_offset) == header.partition_leader_epoch
        assert all(start.start_offset < self.end for start in self.log.epochs.starts)

    @invariant()
    def producers_are_those_of_the_batches(self) -> None:
        expected, known = self.expected_producers(), self.log.producers
        assert {number for number, _ in known} == {number for number, _ in expected}
        for number, producer in expected:
            there = known.get(number)
            assert there is not None
            last, expected_last = (found.batches[-1][:3] if found.batches else None for found in (there, producer))
            assert (there.epoch, last) == (producer.epoch, expected_last)  # a snapshot keeps a marker's time instead
            assert there.transaction_start == producer.transaction_start
        stable = expected.last_stable_offset(Offset(self.end), Offset(0))
        assert self.log.committed.last_stable_offset(Offset(self.end)) == stable

    @invariant()
    def aborted_transactions_are_known(self) -> None:
        producers, expected = Producers(), []
        for header, marker, _ in self.batches:
            if header.producer_id >= 0 and (aborted := producers.replay(header, marker)) is not None:
                expected.append(aborted)
        assert self.log.committed.aborted_between(0, self.end) == expected

    @invariant()
    def times_and_offsets_are_found(self) -> None:
        records = [record for batch in self.batches for record in iterate(batch.data, control=True)]
        for age in (0, 13, 29):
            time = NOW_MS - age * HOUR_MS
            first = next(((r.timestamp_ms, r.offset) for r in records if r.timestamp_ms >= time), None)
            assert offset_for_time(self.log, time) == first
        for header, _, data in self.batches[-3:]:
            assert self.log.read_batches(header.last_offset, 1) == data


FollowerAgainstAList.TestCase.settings = settings(max_examples=examples(15, 20), stateful_step_count=20)
TestFollowerAgainstAList = FollowerAgainstAList.TestCase
