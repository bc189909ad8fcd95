"""Positions that a caller gives: to commit, to seek, to restore a group, to send in a transaction. Pure."""

from moldau.errors import ConfigError
from moldau.names import OffsetAndMetadata

OFFSET_MAX = 2**63 - 1
EPOCH_MAX = 2**31 - 1
NO_EPOCH = -1
"""The leader epoch of requests, answers and commits that name none."""


def position_of(given: object, what: str) -> OffsetAndMetadata:
    """An offset, or `OffsetAndMetadata`, checked. `what` begins the sentence of the error. Raises `ConfigError`."""
    at = OffsetAndMetadata(given) if type(given) is int else given
    if not isinstance(at, OffsetAndMetadata) or type(at.offset) is not int or not 0 <= at.offset <= OFFSET_MAX:
        raise ConfigError(f"{what} is a number from 0 to {OFFSET_MAX} or OffsetAndMetadata, not {given!r}")
    if not isinstance(at.metadata, str):
        raise ConfigError(f"{what} has metadata that are no text: {at.metadata!r}")
    epoch = at.leader_epoch
    if epoch is None or epoch == NO_EPOCH:
        return at._replace(leader_epoch=None)
    if type(epoch) is not int or not 0 <= epoch <= EPOCH_MAX:
        raise ConfigError(f"{what} has a leader epoch that is not a number from 0 to {EPOCH_MAX}: {epoch!r}")
    return at
