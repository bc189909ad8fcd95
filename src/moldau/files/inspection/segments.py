"""One segment from its first byte to its last: every batch's checksum, every record's structure, offsets that rise, and
whether the indexes agree.

The log file is walked once. Where it stops being one, or a batch does not hold, is `damage`, for whoever knows whether
the next start would cut it off; from there on nothing more is said of the segment.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from moldau.errors import KafkaError
from moldau.files.inspection import control, reading
from moldau.files.inspection.findings import Finding, Seen
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
    """Where a log file stops being one."""

    position: int
    offset: int
    """Behind the last batch that holds."""
    what: str
    at_end: bool
    """The file ends in the middle of a batch, or in zeros: as a write that did not end leaves it."""


@dataclass
class Walked:
    """What is known of the log so far; one for all segments of a partition."""

    seen: Seen
    epochs: Epochs
    """As the checkpoint has them; of offsets before the first, where records were deleted, it says nothing."""
    transactions: OpenTransactions
    end: int = 0
    """The offset behind the last batch that holds."""
    leader_epoch: int = -1
    producer_id_max: int = -1
    oldest_format: int = MAGIC
    damage: Damage | None = None


class SegmentFiles:
    """The files of one segment, and which of them are there. A broker that was killed while it gave the files of a
    compacted segment their names leaves an index that still has to get its own: that counts as there."""

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
    """Everything that is not as it has to be in a segment, except for damage. `is_rebuilt`: the next start builds the
    indexes anew. `may_have_room`: it may be the active one, whose indexes have room for more entries."""
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(reading.opened(files.disk, files.log))
        checks: list[tuple[Path, OffsetIndexCheck | TimeIndexCheck]] = []
        for suffix, check in ((INDEX_SUFFIX, OffsetIndexCheck), (TIME_INDEX_SUFFIX, TimeIndexCheck)):
            path = files.path(suffix)
            if path is None:
                missing = "it is not there; the next start builds it anew"
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
        return Finding(path, f"it cannot be read: {error.strerror or error}")


def _walk(files: SegmentFiles, log: File, walked: Walked) -> Iterator[tuple[IndexPlace, LogEntry, str]]:
    """The batches up to the first that recovery would not keep, and what is wrong with the records in each."""
    size = log.size()
    seen = walked.seen
    seen.bytes += size
    position = 0
    walked.end = max(walked.end, files.base_offset)
    try:
        for entry in reading.entries(log, size):
            if not entry.crc_ok:
                raise Damaged(entry.position, "the checksum is not that of the bytes")
            first, last, count, flaw = (_newer if entry.magic == MAGIC else _older)(entry, walked.end)
            if last > files.last_possible:
                raise Damaged(entry.position, f"offset {last} belongs behind this segment")
            walked.end = last + 1
            walked.oldest_format = min(walked.oldest_format, entry.magic)
            seen.batches += 1
            seen.records += count
            yield IndexPlace(entry.position, first, last, entry.timestamp_ms), entry, flaw
            position = entry.position + entry.size
    except Damaged as damaged:
        walked.damage = Damage(position, walked.end, damaged.what, damaged.at_end)


def _newer(entry: LogEntry, expected: int) -> tuple[int, int, int, str]:
    """First and last offset and number of records of a batch of format 2, and what is wrong with these.

    Raises `Damaged` for offsets that cannot be there.
    """
    header = read_header(entry.data)
    first, last, count = header.base_offset, header.last_offset, header.count
    if first < expected or last < first:
        raise Damaged(entry.position, f"offsets {first} to {last} come where {expected} or more has to be")
    try:
        return first, last, max(count, 0), _flaw(header, entry)
    except KafkaError as error:
        return first, last, max(count, 0), (error.message or str(error)).removeprefix(f"at position {entry.position}: ")


def _flaw(header: BatchHeader, entry: LogEntry) -> str:
    """What is wrong with the records of a batch, or nothing. Raises `KafkaError` as well."""
    count = header.count
    if not 0 <= count <= header.last_offset_delta + 1:
        return f"it says that it has {count} records at offsets {header.base_offset} to {header.last_offset}"
    if not count:
        return "it has no records, and bytes behind its header" if entry.size != HEADER_SIZE else ""
    found = reading.section(entry)
    if count <= header.last_offset_delta:  # compacted
        columns.measure((found,))
        return ""
    flaw, bad, largest, *_ = columns.scan(found.records, found.start, found.stop, count, found.base_timestamp)
    if flaw:
        return f"record {bad} is bad: {FLAWS[flaw]}"
    if not header.log_append_time and largest > header.max_timestamp:
        return f"a record has the time {largest}, and the batch says that {header.max_timestamp} is the largest"
    return ""


def _older(entry: LogEntry, expected: int) -> tuple[int, int, int, str]:
    """The same of a message or wrapper of format 0 or 1, where every record is made to look at it."""
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
    raise Damaged(entry.position, f"offset {record.offset} comes where {last + 1} or more has to be")


def _oddities(header: BatchHeader, entry: LogEntry, walked: Walked, is_rebuilt: bool) -> Iterator[tuple[str, bool]]:
    """What is wrong with a batch that holds, and whether it is more than a note."""
    walked.producer_id_max = max(walked.producer_id_max, header.producer_id)
    epoch, base = header.partition_leader_epoch, header.base_offset
    if epoch < NO_EPOCH:
        yield f"the batch at offset {base} is of the impossible leader epoch {epoch}", True
    if 0 <= epoch < walked.leader_epoch:
        yield f"the batch at offset {base} is of leader epoch {epoch}, and one before it of {walked.leader_epoch}", True
    walked.leader_epoch = max(walked.leader_epoch, epoch)
    if epoch >= 0:
        known = walked.epochs.epoch_at(header.last_offset)
        if known >= 0 and known != epoch:
            yield (
                f"the batch at offset {base} is of leader epoch {epoch}, and the checkpoint says {known}",
                not is_rebuilt,
            )
    is_control = header.is_control and header.count > 0
    if is_control and any(control.marker(record.key) is None for record in reading.records(entry)):
        yield f"the control batch at offset {base} holds a record that is none", True
