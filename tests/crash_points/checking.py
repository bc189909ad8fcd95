"""What must hold of a log that came back, whatever happened to it: each check is a sentence that says how it does not.

Nothing here changes the log. `floor` is the offset below which nothing may be lost: what a completed flush returned, or
the recovery point that the log itself claimed when the power went.
"""

import random
from typing import NamedTuple, NoReturn

from harness.logs import offset_for_time, offset_of_max_timestamp
from moldau.errors import ErrorCode
from moldau.log.log import Log
from moldau.log.producers.producer_state import BatchMetadata
from moldau.log.segment import Segment
from moldau.names import Offset
from moldau.records.batch import HEADER_SIZE, BatchHeader, batches, crc_holds, read_header
from moldau.records.rows import Record, iterate
from tests.crash_points.model import Partition, Replayed, Written

TIMES = 3
"""So many look-ups by time are made at each check."""


class Served(NamedTuple):
    """A batch as it is served, and its records."""

    header: BatchHeader
    records: tuple[Record, ...]


class Broken(AssertionError):
    """An invariant does not hold."""


def broken(sentence: str) -> NoReturn:
    raise Broken(sentence)


def check_partition(partition: Partition, log: Log, floor: int, seed: random.Random, live: bool = False) -> None:
    """All that can be asked of a log without changing it. `live`: it was not just opened. Raises `Broken`."""
    start, end = int(log.log_start_offset), int(log.log_end_offset)
    name = f"{partition.tp}"
    possible = {batch.base: batch for batch in partition.possible}
    ends = {batch.last + 1 for batch in possible.values()}
    if end not in ends and end != start and possible:
        broken(f"{name} ends at {end}, where no batch ever ended")
    if end < floor:
        broken(f"{name} ends at {end}, but {floor} was flushed")
    if not partition.start_kept <= start <= max(partition.start_max, partition.start):
        broken(f"{name} starts at {start}, not in [{partition.start_kept}, {partition.start_max}]")
    if log.recovery_point > max(floor, start, partition.flushed_before):
        broken(f"{name} claims to be flushed up to {log.recovery_point}, and is up to {floor}")
    if log.offline:
        broken(f"{name} came back offline")
    compacted = min(partition.compacted, floor)  # no more than was flushed is ever compacted
    there = check_segments(name, log)
    served = check_records(partition, log, possible, compacted)
    found = [header for header, _ in served]
    check_lookups(partition, log, served, compacted, seed)
    check_epochs(partition, log, found, end + live)
    replayed = partition.replayed(end)
    if compacted:
        check_compacted(partition, log, served, replayed, compacted)
        check_last_batches(partition, log, replayed, there)
    check_producers(partition, log, replayed, compacted)
    check_transactions(partition, log, replayed, compacted, served)


def check_records(partition: Partition, log: Log, possible: dict[int, Written], compacted: int) -> list[Served]:
    """What is served from the log's start on is what was written, byte for byte and in order, and all of it; but for
    what compaction may take."""
    start, end = int(log.log_start_offset), int(log.log_end_offset)
    at = start
    found: list[Served] = []
    while at < end and (data := log.read_batches(at, 3000)):
        for position, header in batches(data):
            written, batch = possible.get(header.base_offset), bytes(data[position : position + header.size])
            if written is None:
                broken(f"{partition.tp}: nothing was ever written at {header.base_offset}")
            if batch != written.data and (compacted <= header.base_offset or not is_left_of(batch, written)):
                broken(f"{partition.tp}: what is served at {header.base_offset} is not what was written")
            if header.last_offset < at or (found and header.base_offset < at):
                broken(f"{partition.tp}: {header.base_offset} is served where {at} is next")
            records = written.records if batch == written.data else tuple(iterate(batch, control=True))
            found.append(Served(header, records))
            at = header.next_offset
    if at > end:
        broken(f"{partition.tp}: what is served ends at {at}, the log at {end}")
    served = {header.base_offset for header, _ in found}
    for written in possible.values():
        if written.last >= start and compacted <= written.base and written.last < end and written.base not in served:
            broken(f"{partition.tp}: the batch at {written.base} is not served")
    return found


def check_segments(name: str, log: Log) -> set[int]:
    """Segments follow each other, hold whole batches, and their indexes say where those are. The batches' offsets."""
    segments = log.segments
    there: set[int] = set()
    for number, segment in enumerate(segments):
        after = segments[number + 1].base_offset if number + 1 < len(segments) else int(log.log_end_offset)
        data = segment.log.get().read(segment.size + 1000, 0)
        if len(data) != segment.size:
            broken(f"{name}: the file of segment {segment.base_offset} has {len(data)} bytes, not {segment.size}")
        position, last = 0, segment.base_offset - 1
        places: dict[int, int] = {}
        times: dict[int, int] = {}
        largest = -1
        for position, header in batches(data):
            if header.base_offset <= last or header.last_offset >= after or not crc_holds(data, position):
                broken(
                    f"{name}: the batch at {header.base_offset} of segment {segment.base_offset} does not belong there"
                )
            last = header.last_offset
            there.add(header.base_offset)
            places[position] = last
            if header.max_timestamp > largest:
                largest = header.max_timestamp
                times[largest] = last
            position += header.size
        if (places and position != segment.size) or (not places and segment.size):
            broken(f"{name}: segment {segment.base_offset} holds no batch at {position}, and has {segment.size} bytes")
        check_indexes(name, segment, places, times)
    return there


def check_indexes(name: str, segment: Segment, places: dict[int, int], times: dict[int, int]) -> None:
    segment.look()
    before = (-1, -1)
    for number in range(segment.offsets.entries):
        entry = segment.offsets.entry(number)
        if places.get(entry.value) != segment.base_offset + entry.key or entry <= before:
            broken(f"{name}: entry {number} of the offset index of {segment.base_offset} is wrong: {entry}")
        before = entry
    before = (-1, -1)
    for number in range(segment.times.entries):
        entry = segment.times.entry(number)
        if times.get(entry.key) != segment.base_offset + entry.value or entry <= before:
            broken(f"{name}: entry {number} of the time index of {segment.base_offset} is wrong: {entry}")
        before = entry


def check_lookups(partition: Partition, log: Log, served: list[Served], compacted: int, seed: random.Random) -> None:
    """Every look-up, by offset and by time, gives what going through everything gives."""
    start, end = int(log.log_start_offset), int(log.log_end_offset)
    for header, _ in served:
        for offset in {max(header.base_offset, start), header.last_offset}:
            piece = log.read(offset, 1, end)
            if piece is None or read_header(piece.file.read(HEADER_SIZE, piece.offset)) != header:
                broken(f"{partition.tp}: looking for {offset} does not find the batch at {header.base_offset}")
    records = [record for batch in served for record in batch.records if record.offset >= start]
    asked = {seed.choice(records).timestamp_ms for _ in range(TIMES)} if records else set()
    for time in (*asked, 0, 2**60):
        expected = next(((r.timestamp_ms, r.offset) for r in records if r.timestamp_ms >= time), None)
        answer = offset_for_time(log, time)
        if (None if answer is None else (answer.timestamp_ms, answer.offset)) != expected:
            broken(f"{partition.tp}: the first record at or after {time} is {expected}, and {answer} was found")
    if not compacted:
        check_newest(partition, log, records)


def check_newest(partition: Partition, log: Log, records: list[Record]) -> None:
    answer = offset_of_max_timestamp(log)
    if not records or (answer is not None and answer.offset < log.log_start_offset):
        return
    newest = max(records, key=lambda record: record.timestamp_ms).timestamp_ms
    first = next(record.offset for record in records if record.timestamp_ms == newest)
    if newest >= 0 and (answer is None or (answer.timestamp_ms, answer.offset) != (newest, first)):
        broken(f"{partition.tp}: the newest record is at {(newest, first)}, and {answer} was found")


def check_epochs(partition: Partition, log: Log, found: list[BatchHeader], end: int) -> None:
    """Each batch is of the epoch that is remembered; below a start that was lost, epochs may be lost as well."""
    start = int(log.log_start_offset)
    for header in found:
        known = log.epochs.epoch_at(max(header.base_offset, start))
        forgotten = known == -1 and header.base_offset < partition.start_bound
        if known != header.partition_leader_epoch and not forgotten:
            broken(
                f"{partition.tp}: the batch at {header.base_offset} is of epoch {header.partition_leader_epoch}, "
                f"and {known} is remembered"
            )
    beyond = [entry for entry in log.epochs.starts if not start <= entry.start_offset < end]
    if beyond:
        broken(f"{partition.tp}: epochs outside of the log: {beyond}")


def check_producers(partition: Partition, log: Log, replayed: Replayed, compacted: int) -> None:
    """What is known of producers is what their batches say: whose are gone may be forgotten, but not invented."""
    base = log.segments[0].base_offset
    for producer_id, known in log.producers:
        expected = replayed.producers.get(producer_id)
        if expected is None:
            broken(f"{partition.tp}: producer {producer_id} is known, and wrote nothing")
        last = known.batches[-1] if known.batches else None
        told = expected.batches[-1] if expected.batches else None
        if known.epoch != expected.epoch or (last is not None and told is not None and last.base_offset != told.base):
            broken(f"{partition.tp}: producer {producer_id} wrote {expected}, and is known by {known.epoch}, {last}")
    for producer_id, expected in replayed.producers.items():
        kept = [batch for batch in expected.batches if batch.base >= base]
        if compacted:
            del kept[:-1]
        if expected.last_offset < base:
            continue
        if compacted and producer_id in partition.cut_producers:
            continue
        if log.producers.get(producer_id) is None:
            broken(f"{partition.tp}: producer {producer_id} is forgotten, and wrote {expected}")
        for batch in kept:
            answer = log.producers.check(_header(producer_id, expected.epoch, batch.sequence, batch.records))
            if not isinstance(answer, BatchMetadata) or answer.base_offset != batch.base:
                broken(f"{partition.tp}: the batch of producer {producer_id} at {batch.base} is no duplicate: {answer}")
        if expected.transaction_start < 0 and kept:
            answer = log.producers.check(_header(producer_id, expected.epoch, expected.next_sequence, 1))
            if answer is not None:
                broken(f"{partition.tp}: the next batch of producer {producer_id} is not welcome: {answer}")
            answer = log.producers.check(_header(producer_id, expected.epoch, expected.next_sequence + 1, 1))
            if answer is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                broken(f"{partition.tp}: a batch of producer {producer_id} after a gap is welcome: {answer}")


def _header(producer_id: int, epoch: int, sequence: int, count: int) -> BatchHeader:
    return BatchHeader(0, 100, -1, 2, 0, 0, count - 1, 0, 0, producer_id, epoch, sequence, count)


def check_transactions(
    partition: Partition, log: Log, replayed: Replayed, compacted: int, served: list[Served]
) -> None:
    """Open transactions are open, from where they began, and no aborted one is forgotten."""
    base, start, end = log.segments[0].base_offset, int(log.log_start_offset), int(log.log_end_offset)
    for producer_id, expected in replayed.producers.items():
        known = log.producers.get(producer_id)
        begun = -1 if known is None else known.transaction_start
        if begun != expected.transaction_start and expected.last_offset >= base:
            broken(f"{partition.tp}: the transaction of {expected} begins at {begun}")
    stable = log.committed.last_stable_offset(Offset(end))
    unstable = end if replayed.first_unstable is None else replayed.first_unstable
    if unstable >= start and stable != unstable:
        broken(f"{partition.tp}: the last stable offset is {unstable}, and {stable} is told")
    told = [tuple(aborted) for aborted in log.committed.aborted_between(start, end)]
    expected_aborted = [tuple(aborted) for aborted in replayed.aborted if aborted.last >= start]
    if compacted:  # which may have left nothing of a transaction, or only its later batches
        first_left: dict[tuple[int, int], int] = {}
        for header, records in served:
            for producer_id, first, last, _ in expected_aborted:
                if header.producer_id == producer_id and first <= header.base_offset < last and records:
                    first_left.setdefault((producer_id, last), header.base_offset)
        first_told = {(producer_id, last): first for producer_id, first, last, _ in told}
        right = all(first_told.get(which, end) <= first for which, first in first_left.items())
        right = right and first_told.keys() <= {(producer_id, last) for producer_id, _, last, _ in expected_aborted}
    else:
        right = told == expected_aborted
    if not right:
        broken(f"{partition.tp}: {expected_aborted} were aborted, and {told} is told")


def check_compacted(partition: Partition, log: Log, served: list[Served], replayed: Replayed, compacted: int) -> None:
    """Of every key the latest value is there, or none at all once a tombstone's time has passed."""
    start, end = int(log.log_start_offset), int(log.log_end_offset)
    there = {record.offset for batch in served for record in batch.records}
    seen: dict[bytes | None, int] = {}
    for batch in served:
        if not batch.header.is_control and not replayed.is_aborted(batch.header.producer_id, batch.header.base_offset):
            for record in batch.records:
                seen[record.key] = record.offset
    latest: dict[bytes | None, Record] = {}
    for written in partition.possible:
        if written.last < end and written.commits is None:
            aborted = replayed.is_aborted(written.producer_id, written.base)
            for record in written.records:
                if not aborted:
                    latest[record.key] = record
                if record.offset >= max(start, compacted) and record.offset not in there:
                    broken(f"{partition.tp}: the record at {record.offset} is gone, where nothing was compacted")
    for key, record in latest.items():
        if seen.get(key, -1) != record.offset and record.offset >= start:
            may_go = record.value is None and partition.may_be_forgotten(record.offset)
            if key in seen or not may_go:
                at = seen.get(key)
                broken(f"{partition.tp}: the latest record of {key!r} is at {record.offset}, and {at} is served")


def check_last_batches(partition: Partition, log: Log, replayed: Replayed, there: set[int]) -> None:
    """Compaction leaves the last batch of each producer, if only its header."""
    for producer_id, producer in replayed.producers.items():
        base = producer.batches[-1].base if producer.batches else -1
        if producer_id in partition.cut_producers:
            continue
        if base >= log.segments[0].base_offset and base not in there:
            broken(f"{partition.tp}: the last batch of producer {producer_id}, at {base}, is gone")


def is_left_of(batch: bytes, written: Written) -> bool:
    """Whether a batch is what compaction may leave of one that was written."""
    header, before = read_header(batch), read_header(written.data)
    same = [
        "base_offset",
        "last_offset_delta",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "partition_leader_epoch",
        "codec",
    ]
    if not header.count:
        same.remove("codec")
    if any(getattr(header, name) != getattr(before, name) for name in same) or not crc_holds(batch):
        return False
    return set(map(repr, iterate(batch, control=True))) <= set(map(repr, written.records))


def digest(log: Log) -> tuple[object, ...]:
    """All that a second recovery must find as the first one left it."""
    return (
        int(log.log_start_offset),
        int(log.log_end_offset),
        tuple((segment.base_offset, segment.size) for segment in log.segments),
        tuple(log.epochs.starts),
        tuple(
            sorted(
                (producer_id, known.epoch, tuple(batch[:3] for batch in known.batches[-1:]), known.transaction_start)
                for producer_id, known in log.producers
            )
        ),
    )


def records_of(log: Log) -> list[Record]:
    """Every record from the log's start on, as consumers get them."""
    at, found = int(log.log_start_offset), []
    while data := log.read_batches(at, 3000):
        for record in iterate(data, at):
            found.append(record)
        at = max(at + 1, *(header.next_offset for _, header in batches(data)))
    return found
