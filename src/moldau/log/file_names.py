"""The names of a partition's files: twenty digits, the offset that they begin at, and a suffix for what they hold.

    00000000000000000000.log          a segment's batches, and beside it its .index, .timeindex and .txnindex
    00000000000000000120.snapshot     the producers as they were at that offset

A further suffix says that a file is not, or no longer, part of the log:

    .deleted     removed after `file.delete.delay.ms`
    .cleaned     a compacted segment that is still being written
    .swap        a complete compacted segment that takes the place of the segments it was made of
    .tmp         new content of a file, before it replaces the old one
"""

from typing import Final

LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX = ".log", ".index", ".timeindex"
TRANSACTION_INDEX_SUFFIX, SNAPSHOT_SUFFIX = ".txnindex", ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX = ".cleaned", ".swap", ".tmp"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
LEFTOVER_SUFFIXES: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX)
OFFSET_DIGITS: Final = 20


def file_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's or snapshot's file."""
    return f"{base_offset:020d}{suffix}"


def base_of(name: str) -> int:
    """The offset in a file's name; 0 if the name begins with no number."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def is_segment_name(name: str) -> bool:
    """Whether a file's name begins with an offset of twenty digits."""
    digits, _, _ = name.partition(".")
    return len(digits) == OFFSET_DIGITS and digits.isascii() and digits.isdigit()
