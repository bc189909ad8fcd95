"""Reads files piece by piece and without changing them: entries of logs and indexes, and the text of small files.

An entry of a log is a batch of format 2, or a message or wrapper of formats 0 and 1 (files/legacy.py). Records of an
entry are read in slices, so that a batch of millions of tiny records takes no more memory than its bytes. An index file
may have zeros after its entries: room that a running or crashed broker preallocated.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from moldau.errors import KafkaError, StorageError
from moldau.files import legacy
from moldau.files.legacy import Damaged, LogEntry
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.records import columns, compression
from moldau.records.batch import HEADER_SIZE, MAGIC, read_header
from moldau.records.columns import Section
from moldau.records.rows import Record
from moldau.runtime import Disk, File

CHUNK_BYTES: Final = 1 << 18
INFLATED_MAX: Final = legacy.INFLATED_BYTES_MAX
RECORDS_AT_ONCE: Final = 100_000
SMALL_FILE_BYTES_MAX: Final = 1 << 20
"""The largest size of a file with a few lines: partition.metadata, meta.properties."""


@contextmanager
def opened(disk: Disk, path: Path) -> Iterator[File]:
    """Open a file for reading. Raises `OSError`."""
    file = disk.open(path, writable=False)
    try:
        yield file
    finally:
        file.close()


def entries(file: File, size: int) -> Iterator[LogEntry]:
    """The entries of a log file of `size` bytes. Raises `Damaged` where the file stops being readable, and
    `OSError`."""
    return legacy.stream(file.read, size)


def section(entry: LogEntry) -> Section:
    """The records of a batch of format 2, inflated. Raises `Damaged`."""
    header = read_header(entry.data)
    records: Any = entry.data
    start, stop = HEADER_SIZE, entry.size
    if header.codec != compression.NONE:
        try:
            records = compression.decompress(header.codec, entry.data[HEADER_SIZE:], INFLATED_MAX)
        except compression.DecompressionError as error:
            raise Damaged(entry.position, f"the records cannot be inflated: {error}") from None
        start, stop = 0, len(records)
    fixed = header.max_timestamp if header.log_append_time else None
    last = header.last_offset_delta
    return Section(
        records, start, stop, header.count, last, header.base_offset, header.base_timestamp, fixed, 0, last + 1
    )


def records(entry: LogEntry) -> Iterator[Record]:
    """The records of an entry, control records included. Raises `Damaged`."""
    if entry.magic != MAGIC:
        yield from legacy.rows(entry)
        return
    header = read_header(entry.data)
    if not header.count and entry.size == HEADER_SIZE:
        return
    whole = section(entry)
    slices = -(-whole.count // RECORDS_AT_ONCE)
    step = max(-(-whole.high // max(slices, 1)), 1)
    for low in range(0, whole.high, step):
        try:
            yield from columns.rows(whole._replace(low=low, high=low + step), Record)
        except KafkaError as error:
            raise Damaged(entry.position, error.message or str(error)) from None


def index_entries(file: File, size: int, layout: struct.Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Position and fields of each complete entry of an index."""
    step = CHUNK_BYTES // layout.size * layout.size
    for at in range(0, size, step):
        chunk = file.read(min(step, size - at), at)
        whole = len(chunk) // layout.size * layout.size
        yield from ((at + i * layout.size, fields) for i, fields in enumerate(layout.iter_unpack(chunk[:whole])))
        if whole < min(step, size - at):
            return


def only_zeros(file: File, at: int, end: int) -> bool:
    while at < end:
        chunk = file.read(min(CHUNK_BYTES, end - at), at)
        if chunk.strip(b"\0"):
            return False
        at += len(chunk) or end
    return True


def text(disk: Disk, path: Path, bytes_max: int = SMALL_FILE_BYTES_MAX) -> str | None:
    """The text of a small file; None if it does not exist. Raises `CorruptCheckpoint`, `OSError`."""
    try:
        with opened(disk, path) as file:
            size = file.size()
            if size > bytes_max:
                raise CorruptCheckpoint(f"the file has {size} bytes, too many for its kind")
            return file.read(size, 0).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise CorruptCheckpoint("it is no text") from None


def properties_in(disk: Disk, path: Path) -> dict[str, str]:
    """The properties in a file; empty if it does not exist. Raises `StorageError`, `OSError`."""
    try:
        return properties(text(disk, path) or "")
    except CorruptCheckpoint as corrupt:
        raise StorageError(f"{path}: {corrupt}") from corrupt


def properties(lines: str) -> dict[str, str]:
    """The properties in `name=value` lines."""
    pairs = (line.partition("=") for line in lines.splitlines() if line.strip() and line.lstrip()[0] not in "#!")
    return {name.strip(): value.strip() for name, _, value in pairs}
