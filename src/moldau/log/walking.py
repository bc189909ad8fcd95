"""Going through a segment's file from batch to batch, by their headers alone."""

from typing import Final, NamedTuple

from moldau.log.files import LazyFile
from moldau.records.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, read_header

SCAN_BYTES: Final = 8192
"""Headers are looked for this many bytes at a time; an index entry is at most one batch and 4 KiB away."""


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
