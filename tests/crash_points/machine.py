"""A log folder on a simulated disk, everything that can be done to it, and the model that is told of it.

`Machine` does one operation at a time, as a broker's upkeep and requests do them, and labels the disk's calls with its
name. Whatever an operation answers is compared with the model at once; what is left after a crash is for `checking`.
An operation that meets a fault raises `Offline`; one during which the power fails raises `PowerLoss`.
"""

import asyncio
import random
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from moldau.config import BrokerConfig, TopicConfig
from moldau.errors import ErrorCode, KafkaError
from moldau.log import replicated, truncation
from moldau.log.compaction.cleaner import Candidate, Cleaner
from moldau.log.folders.closing import Pace
from moldau.log.folders.folder import LogFolder
from moldau.log.log import Log
from moldau.names import TopicPartition
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row, encode_batch, encode_marker, read_header
from moldau.records.rows import iterate
from moldau.records.validation import Checked, Rules, assign_offsets, check_produce
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.faults import Faults
from moldau.simulation.ports import SimulatedRandom
from tests.crash_points.checking import broken, check_partition
from tests.crash_points.folder import Clock, Inline, load_folder, take_folder
from tests.crash_points.model import Cleaning, Model, Partition, Written

HOUR_MS = 3_600_000

ANYTHING = Rules(after_max_ms=2**62)


class Offline(Exception):
    """The disk failed, and the folder serves nothing more."""


class Machine:
    def __init__(self, seed: random.Random):
        self.seed = seed
        self.faults = Faults(random.Random(seed.getrandbits(64)))
        self.disk = SimulatedDisk(faults=self.faults)
        self.clock = Clock()
        self.model = Model()
        self.folder: LogFolder
        self.cleaner: Cleaner
        self.loop = asyncio.new_event_loop()
        self.settings = replace(
            BrokerConfig(),
            log_cleaner_dedupe_buffer_size=seed.choice((24 * 8, 24 * 1000)),
            log_cleaner_io_buffer_size=seed.choice((600, 4000)),
        )
        self.serving = False
        self.lives = 0

    def dispose(self) -> None:
        self.loop.close()

    @contextmanager
    def _doing(self, operation: str, tolerates: Collection[str] = ()) -> Iterator[None]:
        """`tolerates`: calls that may fail without harm."""
        self.faults.operation = operation
        met = len(self.faults.met)
        try:
            yield
        except (KafkaError, OSError) as error:
            if len(self.faults.met) == met:
                raise
            raise Offline(str(error)) from error
        finally:
            self.faults.operation = ""
        if len(self.faults.met) > met and self.faults.met[-1][1].name not in tolerates:
            broken(f"{operation} succeeded although the disk failed: {self.faults.met[-1][1]}")

    def log(self, tp: TopicPartition) -> Log:
        return self.folder.logs[tp]

    # lives ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A process starts on what is there, and what it found is the truth from now on."""
        model = self.model
        left_clean, model.clean = model.clean, None
        self.serving = False
        with self._doing("start"):
            self.folder = take_folder(self.disk, self.clock, self.seed)
            model.clean = False
            load_folder(self.folder, model)
        self.serving = True
        runtime = Inline(clock=self.clock, disk=self.disk, random=SimulatedRandom(self.seed))
        self.cleaner = Cleaner(self._candidates, lambda: self.settings, runtime)
        if left_clean is not None and self.folder.clean is not left_clean:
            broken(f"the last stop was {'clean' if left_clean else 'unclean'}, and was taken for the other")
        self.disk.faults = None
        for partition in model.partitions.values():
            log = self.log(partition.tp)
            check_partition(partition, log, partition.flushed, self.seed)
            known = {producer_id for producer_id, _ in log.producers}
            partition.found(int(log.log_start_offset), int(log.log_end_offset), log.segments[0].base_offset, known)
        self.disk.faults = self.faults
        self.lives += 1

    def stop(self) -> None:
        """A clean stop. After an error it is none, which the folder says to nobody but the next start."""
        model, met = self.model, len(self.faults.met)
        model.clean = None
        self.faults.operation = "close"
        self.disk.flushes_all = self.seed.random() < 0.7
        pace = Pace(together_min=self.seed.choice((1, 1, 100)), piece=self.seed.choice((1, 250)), note_ms=0)
        self.folder.closing(pace).work()
        self.folder.close(high_watermarks={tp: log.log_end_offset for tp, log in self.folder.logs.items()})
        self.faults.operation = ""
        if len(self.faults.met) > met:
            raise Offline(str(self.faults.met[-1]))
        model.clean = True
        for partition in model.partitions.values():
            partition.flushed = partition.end
            partition.start_kept = partition.start

    def kill(self) -> None:
        """The process dies, the machine lives."""
        self.floor()
        self.disk = self.disk.after_kill()

    def come_back(self) -> None:
        """After an error: nothing is served any more, and what the next process finds is right."""
        self.faults.plan.clear()
        if self.serving:
            for tp, log in self.folder.logs.items():
                if not log.offline:
                    broken(f"{tp} is still served: {self.faults.met}")
            if self.seed.random() < 0.5:
                self.folder.close()
        if self.seed.random() < 0.5:
            self.lose_power()
        else:
            self.kill()
        self.start()

    def lose_power(self) -> None:
        self.floor()
        self.disk = self.disk.after_crash(self.seed)

    def floor(self) -> None:
        """What the folder claims to be flushed had better be."""
        for partition in self.model.partitions.values():
            partition.flushed = max(partition.flushed, self.claimed(partition))

    def claimed(self, partition: Partition) -> int:
        log = self.folder.logs.get(partition.tp) if hasattr(self, "folder") else None
        return log.recovery_point if log is not None and log.topic_id == partition.topic_id else 0

    # partitions -------------------------------------------------------------------------------------------------

    def create(self, tp: TopicPartition, config: TopicConfig) -> None:
        partition = Partition(tp, uuid.UUID(int=self.seed.getrandbits(128), version=4), config)
        self.model.partitions[tp] = partition
        with self._doing("create partition"):
            self.folder.create(tp, partition.topic_id, config)

    def delete(self, tp: TopicPartition) -> None:
        partition = self.model.partitions.pop(tp)
        self.model.deleted[partition.topic_id] = tp
        with self._doing("delete partition"):
            self.folder.delete(tp, self.clock.ms)

    def remove_due(self) -> None:
        decided = list(self.model.deleted)
        self.clock.ms += 1
        with self._doing("remove files"):
            self.folder.remove_due(self.clock.ms)
        for topic_id in decided:
            del self.model.deleted[topic_id]

    # records ----------------------------------------------------------------------------------------------------

    def append(self, tp: TopicPartition, rows: Sequence[Row], epoch: int = 0, **batch: Any) -> None:
        """One batch, as a producer sends it and a broker checks it."""
        partition, log = self.model.partitions[tp], self.log(tp)
        transactional = bool(batch.pop("transactional", False))
        data = encode_batch(rows, attributes=TRANSACTIONAL_BIT if transactional else 0, **batch)
        checked = check_produce(memoryview(data), ANYTHING, self.clock.ms)
        assert not checked.error, checked
        end = partition.end
        expected = self._placed(data[:], checked, end, epoch, partition.config)
        partition.pending = [self._written(expected, transactional)]
        with self._doing("append"):
            answer = log.append(memoryview(data), checked, epoch, self.clock.ms)
        if len(data) > partition.config.segment_bytes and answer.error == ErrorCode.RECORD_LIST_TOO_LARGE:
            partition.pending = []
            return
        if (answer.error, answer.duplicate, answer.base_offset, answer.last_offset) != (
            0,
            False,
            end,
            end + len(rows) - 1,
        ):
            broken(f"{tp}: appending at {end} was answered {answer}")
        partition.appended()

    @staticmethod
    def _stamps(config: TopicConfig) -> bool:
        return config.message_timestamp_type == "LogAppendTime"

    def _placed(self, data: bytearray, checked: Checked, base: int, epoch: int, config: TopicConfig) -> bytes:
        """The batch as it has to stand in the log."""
        stamped = self.clock.ms if self._stamps(config) else None
        assign_offsets(data, base, epoch, stamped, checked.max_timestamp)
        return bytes(data)

    def latest_epoch(self, tp: TopicPartition) -> int:
        """The leader epoch never falls, even where the log remembers none: if its start is its end."""
        written = [batch.epoch for batch in self.model.partitions[tp].batches]
        return max(int(self.log(tp).epochs.latest), *written, 0)

    def send_again(self, tp: TopicPartition, batch: Written) -> None:
        """A producer that got no answer sends one of its last batches once more."""
        rows = [Row(record.key, record.value, record.timestamp_ms, record.headers) for record in batch.records]
        names = {
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.sequence,
        }
        data = encode_batch(rows, attributes=TRANSACTIONAL_BIT if batch.transactional else 0, **names)
        checked = check_produce(memoryview(data), ANYTHING, self.clock.ms)
        with self._doing("append"):
            answer = self.log(tp).append(memoryview(data), checked, batch.epoch, self.clock.ms)
        if (answer.error, answer.duplicate, answer.base_offset) != (0, True, batch.base):
            broken(f"{tp}: the batch at {batch.base} came again and was answered {answer}")

    def end_transaction(self, tp: TopicPartition, producer_id: int, producer_epoch: int, commits: bool) -> None:
        """A coordinator's marker."""
        partition, log = self.model.partitions[tp], self.log(tp)
        end, epoch, now_ms = partition.end, self.latest_epoch(tp), self.clock.ms
        partition.pending = [self.marker(tp, end, epoch, producer_id, producer_epoch, commits)]
        with self._doing("end transaction"):
            answer = log.append_marker(producer_id, producer_epoch, Marker(commits, 0), 1, epoch, now_ms)
        if (answer.error, answer.base_offset) != (0, end):
            broken(f"{tp}: a marker at {end} was answered {answer}")
        partition.appended()

    def marker(
        self, tp: TopicPartition, base: int, epoch: int, producer_id: int, producer_epoch: int, commits: bool
    ) -> Written:
        """A marker as it stands in the log."""
        data = encode_marker(producer_id, producer_epoch, commits, 0, self.clock.ms)
        stamped = self.clock.ms if self._stamps(self.model.partitions[tp].config) else None
        assign_offsets(data, base, epoch, stamped, self.clock.ms)
        return self._written(bytes(data), True, commits)

    def written(self, tp: TopicPartition, base: int, epoch: int, rows: Sequence[Row], **batch: Any) -> Written:
        """A batch as a leader has it in its log."""
        transactional = bool(batch.pop("transactional", False))
        data = encode_batch(rows, attributes=TRANSACTIONAL_BIT if transactional else 0, **batch)
        checked = check_produce(memoryview(data), ANYTHING, self.clock.ms)
        return self._written(self._placed(data, checked, base, epoch, self.model.partitions[tp].config), transactional)

    @staticmethod
    def _written(data: bytes, transactional: bool, commits: bool | None = None) -> Written:
        header = read_header(data)
        return Written(
            header.base_offset,
            header.last_offset,
            header.partition_leader_epoch,
            data,
            tuple(iterate(data, control=True)),
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            transactional,
            commits,
        )

    # a follower's part ------------------------------------------------------------------------------------------

    def follow(self, tp: TopicPartition, batches: Sequence[Written], epoch: int) -> None:
        """A reply of this partition's leader; the batch at its end is cut off."""
        partition, log = self.model.partitions[tp], self.log(tp)
        partition.pending = list(batches)
        data = b"".join(batch.data for batch in batches)
        with self._doing("append replicated"):
            end = replicated.append(log, data + data[:40], epoch, self.clock.ms)
        if end != batches[-1].last + 1:
            broken(f"{tp}: appending what a leader wrote up to {batches[-1].last} was answered {end}")
        partition.appended()

    def truncate(self, tp: TopicPartition, offset: int, unused_epoch: int) -> None:
        """The leader's log differs from an offset on. `unused_epoch`: an epoch in which this log was to be written, and
        was not."""
        partition, log = self.model.partitions[tp], self.log(tp)
        kept = [batch.last + 1 for batch in partition.batches if batch.last < offset]
        expected = max(kept[-1] if kept else 0, log.segments[0].base_offset)
        log.epochs.assign(unused_epoch, log.log_end_offset)
        partition.flushed_before = max(partition.flushed, self.claimed(partition))
        partition.flushed = min(partition.flushed, expected)
        with self._doing("truncate"):
            end = truncation.truncate_to(log, offset, offset, self.clock.ms)
        if end != expected or log.log_end_offset != expected:
            broken(f"{tp}: truncating to {offset} was answered {end}, not {expected}")
        partition.truncated(end)
        self.disk.faults = None
        floor = max(partition.flushed, self.claimed(partition))
        check_partition(partition, log, floor, self.seed)
        self.disk.faults = self.faults

    # upkeep -----------------------------------------------------------------------------------------------------

    def roll(self, tp: TopicPartition) -> None:
        log = self.log(tp)
        with self._doing("roll"):
            try:
                log.roll(self.clock.ms)
            except OSError as error:
                log.serving.fail(error)
                raise

    def flush(self, tp: TopicPartition) -> None:
        partition = self.model.partitions[tp]
        with self._doing("flush"):
            self.log(tp).flush()
        partition.flushed = max(partition.flushed, partition.end)

    def flush_closed(self, tp: TopicPartition) -> None:
        """As the clock has it done soon after a segment was closed."""
        partition, log = self.model.partitions[tp], self.log(tp)
        with self._doing("flush closed"):
            log.flush_closed()
        partition.flushed = max(partition.flushed, log.active_segment.base_offset)

    def checkpoint(self) -> None:
        with self._doing("checkpoint"):
            self.folder.checkpoint({tp: log.log_end_offset for tp, log in self.folder.logs.items()})
        for partition in self.model.partitions.values():
            partition.start_kept = partition.start

    def delete_records(self, tp: TopicPartition, offset: int) -> None:
        partition = self.model.partitions[tp]
        partition.start_max = max(partition.start_max, offset)
        with self._doing("delete records"):
            answer = self.log(tp).delete_records_before(offset)
        partition.start = max(partition.start, offset)
        if answer != partition.start:
            broken(f"{tp}: deleting below {offset} was answered {answer}, not {partition.start}")

    def retain(self, tp: TopicPartition, retention_ms: int, retention_bytes: int) -> None:
        partition, log = self.model.partitions[tp], self.log(tp)
        usual = partition.config
        log.config = replace(usual, retention_ms=retention_ms, retention_bytes=retention_bytes)
        expected = max(partition.start, self._retained_from(partition, log))
        partition.start_max = max(partition.start_max, expected)
        with self._doing("retain"):
            log.retain(self.clock.ms, log.log_end_offset)
        log.config = usual
        partition.start = expected
        if log.log_start_offset != expected:
            broken(f"{tp}: retention moved the start to {log.log_start_offset}, not {expected}")

    def compact(self) -> None:
        """The dirtiest log is cleaned, if there is one."""
        for partition in self.model.partitions.values():
            if partition.config.compacts:
                partition.cleanings.append(Cleaning(self.clock.ms, self.log(partition.tp).active_segment.base_offset))
        with self._doing("compact", tolerates=("open", "read")):  # of its checkpoint: more is cleaned then
            self.loop.run_until_complete(self.cleaner.clean_dirtiest())
            if self.folder.failed is not None:
                raise OSError("the cleaner took the folder offline")
        if self.cleaner._uncleanable:
            broken(f"{[*self.cleaner._uncleanable]} cannot be compacted")
        self.disk.faults = None
        for partition in self.model.partitions.values():
            if partition.config.compacts:
                floor = max(partition.flushed, self.claimed(partition))
                check_partition(partition, self.log(partition.tp), floor, self.seed, live=True)
        self.disk.faults = self.faults

    def _candidates(self) -> list[Candidate]:
        return [
            Candidate(log, log.committed.last_stable_offset(log.log_end_offset)) for log in self.folder.logs.values()
        ]

    def _retained_from(self, partition: Partition, log: Log) -> int:
        """Where the log starts after the retention that its settings ask for."""
        bases = [segment.base_offset for segment in log.segments]
        sizes = [segment.size for segment in log.segments]
        ends = [*bases[1:], partition.end]
        config, total = log.config, sum(sizes)
        count = by_size = by_time = 0
        while count + 1 < len(bases) and ends[count] <= partition.start:
            count += 1
        if config.deletes and config.retention_bytes >= 0:
            while by_size < len(bases) and sizes[by_size] and total - sizes[by_size] >= config.retention_bytes:
                total -= sizes[by_size]
                by_size += 1
        if config.deletes and config.retention_ms >= 0:
            for base, end in zip(bases, ends, strict=True):
                times = [r.timestamp_ms for b in partition.batches if base <= b.base < end for r in b.records]
                if self.clock.ms - max(times, default=0) <= config.retention_ms or base == end == partition.end:
                    break
                by_time += 1
        gone = max(count, by_size, by_time)
        return ends[gone - 1] if gone else bases[0]
