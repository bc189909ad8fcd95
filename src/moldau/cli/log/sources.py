"""What `moldau log import` reads: the log files of partitions, and which of their records a reader would have seen.

A source is one partition: its log files in order of names. A consumer of such a log never sees control batches, and
one that reads committed records sees none of an aborted transaction or of one that is not over; so each source is read
twice, first for how transactions ended, then for the records. A transaction whose end is in none of the files counts
as not over. Unreadable data raises `UnreadableBytes`.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from moldau.errors import StorageError
from moldau.files.inspection.kinds import FileKind, file_name_of
from moldau.files.inspection.reading import opened, records
from moldau.files.legacy import Damaged, LogEntry, stream
from moldau.log.file_names import SWAP_SUFFIX
from moldau.records.batch import MAGIC, read_header
from moldau.records.rows import Record
from moldau.runtime import Disk

_PARTITION_FOLDER: Final = re.compile(r".+-(\d{1,9})")
_COMMIT: Final = 1


class UnreadableBytes(StorageError):
    """The bytes cannot be read any further; `behind` is the first offset after them, None if no file follows."""

    def __init__(self, path: Path, damaged: Damaged, behind: int | None):
        super().__init__(f"{path} cannot be read {damaged}")
        self.behind = behind


@dataclass
class ImportSource:
    """The log files of one partition, in order of names, and the arguments that named them."""

    folder: Path
    files: list[Path]
    arguments: list[Path]

    @property
    def partition(self) -> int:
        """What the folder's name says. Raises `StorageError` if it says nothing."""
        match = _PARTITION_FOLDER.fullmatch(self.folder.resolve().name)
        if match is None:
            raise StorageError(f"{self.folder} is not named TOPIC-PARTITION: name a partition with --partition")
        return int(match[1])


@dataclass
class Passed:
    """What was read and is not imported."""

    control_batches: int = 0
    aborted_records: int = 0
    undecided_records: int = 0
    """Of transactions whose end is not in the files."""
    zeros: list[tuple[Path, int]] = field(default_factory=list)
    """Files that end in zeros, and from where on."""


class FoundRecord(NamedTuple):
    """A record, the file it is in, and where its entry ends there."""

    path: Path
    record: Record
    read_bytes: int


class _Span(NamedTuple):
    """The offsets in which a producer's transaction is not to be imported."""

    first: int
    last: int
    aborted: bool


def sources(disk: Disk, arguments: list[Path]) -> list[ImportSource]:
    """The partitions that files and folders stand for; what lies in one folder is one source.

    Raises `StorageError` for a folder without log files, or one whose compaction was interrupted; `OSError`.
    """
    by_folder: dict[Path, ImportSource] = {}
    for argument in arguments:
        if argument.is_dir():
            folder, files = argument, [argument / name for name in _log_names(disk, argument)]
        else:
            disk.size(argument)
            folder, files = argument.parent, [argument]
        source = by_folder.setdefault(folder.resolve(), ImportSource(folder, [], []))
        source.files += [file for file in files if file not in source.files]
        source.arguments.append(argument)
    for source in by_folder.values():
        source.files.sort(key=lambda file: file.name)
    return list(by_folder.values())


def _log_names(disk: Disk, folder: Path) -> list[str]:
    names = [
        (name, known) for name in disk.list(folder) if (known := file_name_of(name)) and known.kind is FileKind.LOG
    ]
    for name, known in names:
        if known.leftover == SWAP_SUFFIX:
            raise StorageError(
                f"{folder / name} was left by an interrupted compaction: start its broker once, or name the log files"
            )
    whole = [name for name, known in names if not known.leftover]
    if not whole:
        raise StorageError(f"{folder} holds no log files: name folders of partitions, or log files")
    return whole


def visible(disk: Disk, source: ImportSource, from_offset: int, passed: Passed) -> Iterator[FoundRecord]:
    """The records from that offset on, in order; what is left out is counted in `passed`.

    A file is not looked at if the name of the next one says that it ends before. Raises `UnreadableBytes`, `OSError`.
    """
    unseen = _unseen(disk, source)
    done_bytes = 0
    for path, behind in zip(source.files, [*map(_named_offset, source.files[1:]), None], strict=True):
        with opened(disk, path) as file:
            size = file.size()
            try:
                for entry in stream(file.read, size) if behind is None or behind > from_offset else ():
                    if entry.last_offset < from_offset or _is_unseen(entry, unseen, passed):
                        continue
                    for record in _records(path, entry):
                        if record.offset >= from_offset:
                            yield FoundRecord(path, record, done_bytes + entry.position + entry.size)
            except Damaged as damaged:
                if not damaged.zeros:
                    raise UnreadableBytes(path, damaged, behind) from None
                passed.zeros.append((path, damaged.position))
            done_bytes += size


def _named_offset(path: Path) -> int | None:
    known = file_name_of(path.name)
    return known.offset if known else None


def _records(path: Path, entry: LogEntry) -> Iterator[Record]:
    try:
        if not entry.crc_ok:
            raise Damaged(entry.position, f"the checksum of the entry at offset {entry.offset} is wrong")
        yield from records(entry)
    except Damaged as damaged:
        raise UnreadableBytes(path, damaged, entry.last_offset + 1) from None


def _is_unseen(entry: LogEntry, unseen: dict[int, deque[_Span]], passed: Passed) -> bool:
    if entry.magic != MAGIC or not entry.crc_ok:
        return False
    header = read_header(entry.data)
    if header.is_control:
        passed.control_batches += 1
        return True
    spans = unseen.get(header.producer_id)
    if not spans or not header.is_transactional:
        return False
    while spans and spans[0].last < header.base_offset:
        spans.popleft()
    if not spans or spans[0].first > header.base_offset:
        return False
    if spans[0].aborted:
        passed.aborted_records += header.count
    else:
        passed.undecided_records += header.count
    return True


def _unseen(disk: Disk, source: ImportSource) -> dict[int, deque[_Span]]:
    """The transactions that were aborted or are not over, by producer. Damage is left to the second reading."""
    open_since: dict[int, int] = {}
    spans: dict[int, deque[_Span]] = {}
    for path in source.files:
        with opened(disk, path) as file:
            try:
                for entry in stream(file.read, file.size()):
                    if entry.magic != MAGIC or not entry.crc_ok:
                        continue
                    header = read_header(entry.data)
                    if not header.is_control and header.is_transactional:
                        open_since.setdefault(header.producer_id, header.base_offset)
                    elif header.is_control and header.producer_id in open_since:
                        first = open_since.pop(header.producer_id)
                        if not _commits(entry):
                            span = _Span(first, header.base_offset, aborted=True)
                            spans.setdefault(header.producer_id, deque()).append(span)
            except Damaged:
                continue
    for producer_id, first in open_since.items():
        spans.setdefault(producer_id, deque()).append(_Span(first, (1 << 63) - 1, aborted=False))
    return spans


def _commits(marker: LogEntry) -> bool:
    """Whether a control batch is a commit: its record's key is version int16, type int16 (0 abort, 1 commit)."""
    try:
        key = next((record.key for record in records(marker)), None) or b""
    except Damaged:
        return False
    return int.from_bytes(key[2:4], "big") == _COMMIT
