"""Going through a segment's file from batch to batch, by their headers alone."""

import struct
from typing import Final, NamedTuple

from moldau.log.files import LazyFile
from moldau.records.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, read_header
from moldau.runtime import File

SCAN_BYTES: Final = 8192
"""Headers are looked for this many bytes at a time; an index entry is at most one batch and 4 KiB away."""
ANYWHERE: Final = -(2**32)
"""A position that no batch ends at, whatever its length says."""
_PLACE: Final = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta of a batch's header."""


class LocatedBatch(NamedTuple):
    """A batch's header, and the position of its first byte in its segment's file."""

    position: int
    header: BatchHeader


class Walk:
    """Headers one after the other, read a chunk at a time; it ends where no whole batch follows."""

    __slots__ = ("_at", "_chunk", "_chunk_at", "_end", "_log", "_wanted")

    def __init__(self, log: LazyFile, position: int, end: int):
        self._log = log
        self._at = position
        self._end = end
        self._chunk = b""
        self._chunk_at = position
        self._wanted = SCAN_BYTES

    def __iter__(self) -> "Walk":
        return self

    def __next__(self) -> LocatedBatch:
        at = self._at
        if self._end - at < HEADER_SIZE:
            raise StopIteration
        within = at - self._chunk_at
        if within + HEADER_SIZE > len(self._chunk):
            self._chunk = self._log.get().read(min(self._wanted, self._end - at), at)
            self._chunk_at, within = at, 0
            if len(self._chunk) < HEADER_SIZE:
                raise StopIteration
        header = read_header(self._chunk, within)
        size = header.batch_length + LOG_OVERHEAD
        if size < HEADER_SIZE or size > self._end - at:
            raise StopIteration
        self._at = at + size
        self._wanted = SCAN_BYTES if size < SCAN_BYTES else HEADER_SIZE
        return LocatedBatch(at, header)


def first_batch(file: File, position: int, end: int, offset: int, beyond: int = ANYWHERE) -> LocatedBatch | None:
    """The first batch from `position` on that ends at or behind `offset` and behind the position `beyond`; None if
    there is none before `end`, or one in front of it is damaged. Raises `OSError`."""
    wanted = SCAN_BYTES
    while end - position >= HEADER_SIZE:
        chunk = file.read(min(wanted, end - position), position)
        at, last, cut = 0, len(chunk) - HEADER_SIZE, beyond - position
        if last < 0:
            return None
        while at <= last:
            base, length, delta = _PLACE.unpack_from(chunk, at)
            if not HEADER_SIZE - LOG_OVERHEAD <= length <= end - position - at - LOG_OVERHEAD:
                return None
            if base + delta >= offset and at + length + LOG_OVERHEAD > cut:
                return LocatedBatch(position + at, read_header(chunk, at))
            at += length + LOG_OVERHEAD
        # Behind a batch that is larger than a scan the next one is likely as large: only its header is worth reading.
        wanted = SCAN_BYTES if length < SCAN_BYTES else HEADER_SIZE
        position += at
    return None
