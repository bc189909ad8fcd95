"""Checks one segment completely: the checksum of every batch, the structure of every record, ascending offsets, and the
indexes.

The log file is read once. The first place where it is unreadable, or where a batch has a wrong checksum or impossible
offsets, is its `damage`; the caller decides whether the next start truncates the log there. Nothing after the damage is
checked.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from moldau.errors import KafkaError
from moldau.files.inspection import control, reading
from moldau.files.inspection.findings import CheckedTotals, Finding
from moldau.files.inspection.index_checks import IndexPlace, OffsetIndexCheck, TimeIndexCheck
from moldau.files.inspection.transaction_checks import OpenTransactions, TransactionIndexCheck
from moldau.files.legacy import Damaged, LogEntry
from moldau.log.epochs import NO_EPOCH, Epochs
from moldau.log.file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from moldau.log.segment import RELATIVE_MAX
from moldau.records import columns
from moldau.records.batch import HEADER_SIZE, MAGIC, BatchHeader, read_header
from moldau.records.columns import FLAWS
from moldau.runtime import Disk, File

OFFSET_MAX: Final = 2**63 - 1


class Damage(NamedTuple):
    """The first place in a log file that cannot be read."""

    position: int
    offset: int
    """The offset after the last sound batch."""
    what: str
    at_end: bool
    """The file ends in the middle of a batch or in zeros, as after an unfinished write."""


@dataclass
class Walked:
    """Facts about the log collected so far; one object for all segments of a partition."""

    seen: CheckedTotals
    epochs: Epochs
    """Leader epochs from the checkpoint. It has no epoch for offsets before its first entry, whose records were
    deleted."""
    transactions: OpenTransactions
    end: int = 0
    """The offset after the last sound batch."""
    leader_epoch: int = -1
    producer_id_max: int = -1
    oldest_format: int = MAGIC
    damage: Damage | None = None


class SegmentFiles:
    """The existing files of one segment. A broker that is killed while it renames the files of a compacted segment
    leaves an index under its temporary name; such an index counts as existing."""

    def __init__(self, disk: Disk, folder: Path, base_offset: int, next_base: int | None, names: set[str]):
        self.disk = disk
        self.base_offset = base_offset
        self.next_base = next_base
        self.log = folder / file_name(base_offset, LOG_SUFFIX)
        self._names = names

    def path(self, suffix: str) -> Path | None:
        path = self.log.with_suffix(suffix)
        named = (one for one in (path, path.with_name(path.name + SWAP_SUFFIX)) if one.name in self._names)
        return next(named, None)

    @property
    def last_possible(self) -> int:
        behind = OFFSET_MAX if self.next_base is None else self.next_base - 1
        return min(self.base_offset + RELATIVE_MAX, behind)


def check_segment(files: SegmentFiles, walked: Walked, *, is_rebuilt: bool, may_have_room: bool) -> Iterator[Finding]:
    """The findings about a segment, except its damage. `is_rebuilt`: the next start rebuilds the indexes.
    `may_have_room`: the segment may be the active one, whose indexes have preallocated room."""
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(reading.opened(files.disk, files.log))
        checks: list[tuple[Path, OffsetIndexCheck | TimeIndexCheck]] = []
        for suffix, check in ((INDEX_SUFFIX, OffsetIndexCheck), (TIME_INDEX_SUFFIX, TimeIndexCheck)):
            path = files.path(suffix)
            if path is None:
                missing = "the file is missing; the next start rebuilds it"
                yield Finding(files.log.with_suffix(suffix), missing, not is_rebuilt)
                continue
            file = _open(files.disk, path, stack)
            if isinstance(file, Finding):
                yield file
            else:
                checks.append((path, check(file, files.base_offset)))
        aborted_path = files.path(TRANSACTION_INDEX_SUFFIX) or files.log.with_suffix(TRANSACTION_INDEX_SUFFIX)
        aborted_file = _open(files.disk, aborted_path, stack) if files.path(TRANSACTION_INDEX_SUFFIX) else None
        if isinstance(aborted_file, Finding):
            yield aborted_file
            aborted_file = None
        aborted = TransactionIndexCheck(aborted_file, files.base_offset, files.next_base, walked.transactions)
        for place, entry, flaw in _walk(files, log, walked):
            for path, each in checks:
                yield from (Finding(path, message, not is_rebuilt) for message in each.batch(place))
            if flaw:
                yield Finding(files.log, f"the batch at position {place.position}: {flaw}")
            elif entry.magic == MAGIC:
                header = read_header(entry.data)
                yield from (Finding(files.log, *oddity) for oddity in _oddities(header, entry, walked, is_rebuilt))
                yield from (Finding(aborted_path, message, not is_rebuilt) for message in aborted.batch(header, entry))
        if walked.damage is None:
            for path, each in checks:
                yield from (Finding(path, message, not is_rebuilt) for message in each.end(may_have_room))
            yield from (Finding(aborted_path, message, not is_rebuilt) for message in aborted.end(walked.end))


def _open(disk: Disk, path: Path, stack: contextlib.ExitStack) -> File | Finding:
    try:
        return stack.enter_context(reading.opened(disk, path))
    except OSError as error:
        return Finding(path, f"the file cannot be read: {error.strerror or error}")


def _walk(files: SegmentFiles, log: File, walked: Walked) -> Iterator[tuple[IndexPlace, LogEntry, str]]:
    """The batches up to the first that recovery would not keep, each with the error in its records (or empty)."""
    size = log.size()
    seen = walked.seen
    seen.bytes += size
    position = 0
    walked.end = max(walked.end, files.base_offset)
    try:
        for entry in reading.entries(log, size):
            if not entry.crc_ok:
                raise Damaged(entry.position, "the checksum of the batch is wrong")
            first, last, count, flaw = (_newer if entry.magic == MAGIC else _older)(entry, walked.end)
            if last > files.last_possible:
                raise Damaged(entry.position, f"offset {last} belongs to a later segment")
            walked.end = last + 1
            walked.oldest_format = min(walked.oldest_format, entry.magic)
            seen.batches += 1
            seen.records += count
            yield IndexPlace(entry.position, first, last, entry.timestamp_ms), entry, flaw
            position = entry.position + entry.size
    except Damaged as damaged:
        walked.damage = Damage(position, walked.end, damaged.what, damaged.at_end)


def _newer(entry: LogEntry, expected: int) -> tuple[int, int, int, str]:
    """First offset, last offset and number of records of a batch of format 2, and the error in its records (or empty).

    Raises `Damaged` for impossible offsets.
    """
    header = read_header(entry.data)
    first, last, count = header.base_offset, header.last_offset, header.count
    if first < expected or last < first:
        raise Damaged(entry.position, f"the batch has offsets {first} to {last}; expected {expected} or more")
    try:
        return first, last, max(count, 0), _flaw(header, entry)
    except KafkaError as error:
        return first, last, max(count, 0), (error.message or str(error)).removeprefix(f"at position {entry.position}: ")


def _flaw(header: BatchHeader, entry: LogEntry) -> str:
    """The error in the records of a batch, or empty. Some errors are raised as `KafkaError` instead."""
    count = header.count
    if not 0 <= count <= header.last_offset_delta + 1:
        return f"its record count {count} does not fit offsets {header.base_offset} to {header.last_offset}"
    if not count:
        return "it has no records, but bytes after its header" if entry.size != HEADER_SIZE else ""
    section = reading.section(entry)
    if count <= header.last_offset_delta:  # compacted
        columns.measure((section,))
        return ""
    flaw, bad, largest, *_ = columns.scan(section.records, section.start, section.stop, count, section.base_timestamp)
    if flaw:
        return f"record {bad} is bad: {FLAWS[flaw]}"
    if not header.log_append_time and largest > header.max_timestamp:
        return f"a record has time {largest}, above the batch's largest timestamp {header.max_timestamp}"
    return ""


def _older(entry: LogEntry, expected: int) -> tuple[int, int, int, str]:
    """As `_newer`, for a message or wrapper of format 0 or 1; every record is decoded to check it."""
    first, count, last = -1, 0, expected - 1
    try:
        for record in reading.records(entry):
            if record.offset <= last:
                break
            first = record.offset if not count else first
            last = record.offset
            count += 1
        else:
            return first, last, count, ""
    except Damaged as damaged:
        return max(first, expected), max(entry.offset, expected), count, damaged.what
    raise Damaged(entry.position, f"the record has offset {record.offset}; expected {last + 1} or more")


def _oddities(header: BatchHeader, entry: LogEntry, walked: Walked, is_rebuilt: bool) -> Iterator[tuple[str, bool]]:
    """Inconsistencies of a sound batch, each with whether it is an error (else a note)."""
    walked.producer_id_max = max(walked.producer_id_max, header.producer_id)
    epoch, base = header.partition_leader_epoch, header.base_offset
    if epoch < NO_EPOCH:
        yield f"the batch at offset {base} has the impossible leader epoch {epoch}", True
    if 0 <= epoch < walked.leader_epoch:
        yield f"the batch at offset {base} has leader epoch {epoch}, but an earlier one has {walked.leader_epoch}", True
    walked.leader_epoch = max(walked.leader_epoch, epoch)
    if epoch >= 0:
        known = walked.epochs.epoch_at(header.last_offset)
        if known >= 0 and known != epoch:
            yield (
                f"the batch at offset {base} has leader epoch {epoch}, but the checkpoint has {known}",
                not is_rebuilt,
            )
    is_control = header.is_control and header.count > 0
    if is_control and any(control.marker(record.key) is None for record in reading.records(entry)):
        yield f"the control batch at offset {base} has a record that is not a control record", True
