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


def not_appended(found: BatchMetadata | ErrorCode, log_start: int, leader_epoch: int = -1) -> Appended:
    """The result for a batch that is not appended: the offsets of the batch that it duplicates, or an error."""
    if isinstance(found, ErrorCode):
        return Appended(-1, -1, -1, log_start, found, False, -1)
    base, last, timestamp = found.base_offset, found.last_offset, found.timestamp
    return Appended(base, last, timestamp, log_start, ErrorCode.NONE, True, leader_epoch)
