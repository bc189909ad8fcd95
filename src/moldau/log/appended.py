"""The result of an append: the batch's offsets in the log, or why it was not appended.

It is one plain tuple, made for every batch, so it holds nothing but numbers.
"""

from typing import NamedTuple

from moldau.errors import ErrorCode
from moldau.log.producers.producer_state import BatchMetadata


class Appended(NamedTuple):
    """The offsets of a batch, or the error."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 under create time."""
    log_start_offset: int
    error: ErrorCode
    duplicate: bool
    leader_epoch: int
    """In which the batch was taken; -1 if it was not."""


def not_appended(duplicate_or_error: BatchMetadata | ErrorCode, log_start: int, leader_epoch: int = -1) -> Appended:
    """The result for a batch that is not appended: the offsets of the batch that it duplicates, or an error."""
    if isinstance(duplicate_or_error, ErrorCode):
        return Appended(-1, -1, -1, log_start, duplicate_or_error, False, -1)
    base, last, timestamp = duplicate_or_error.base_offset, duplicate_or_error.last_offset, duplicate_or_error.timestamp
    return Appended(base, last, timestamp, log_start, ErrorCode.NONE, True, leader_epoch)
