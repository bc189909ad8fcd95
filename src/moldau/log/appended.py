"""What an append answers: where a batch stands in the log, or why it does not.

It is one plain tuple, made for every batch, so it holds nothing but numbers.
"""

from typing import NamedTuple

from moldau.errors import ErrorCode
from moldau.log.producers.producer_state import BatchMetadata


class Appended(NamedTuple):
    """Where a batch stands, or why it does not."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 under create time."""
    log_start_offset: int
    error: ErrorCode
    duplicate: bool


def not_appended(found: BatchMetadata | ErrorCode, log_start: int) -> Appended:
    """To a batch that is not appended: a duplicate stands where it stood, an error nowhere."""
    if isinstance(found, ErrorCode):
        return Appended(-1, -1, -1, log_start, found, False)
    return Appended(found.base_offset, found.last_offset, found.timestamp, log_start, ErrorCode.NONE, True)
