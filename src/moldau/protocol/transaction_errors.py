"""Errors of transactions, translated to those that each request version defines (KIP-360, KIP-890).

Coordinators answer with the errors of the newest version. Older versions get the earlier errors instead:

    PRODUCER_FENCED                           is INVALID_PRODUCER_EPOCH
    TRANSACTION_ABORTABLE                     is INVALID_TXN_STATE
    GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH    is ILLEGAL_GENERATION (KIP-1319)
"""

from typing import Final, NamedTuple

from moldau.errors import ErrorCode

NEVER: Final = 1 << 15
"""Higher than every version: the API never knows the error."""

_OF_GROUPS: Final = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH)


class KnownErrors(NamedTuple):
    """The first versions of an API that know these errors."""

    fenced_since: int
    abortable_since: int = 0
    groups_since: int = 0

    def in_version(self, error: ErrorCode, version: int) -> ErrorCode:
        """The error as that version of the API knows it."""
        if error is ErrorCode.PRODUCER_FENCED and version < self.fenced_since:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if error is ErrorCode.TRANSACTION_ABORTABLE and version < self.abortable_since:
            return ErrorCode.INVALID_TXN_STATE
        if error in _OF_GROUPS and version < self.groups_since:
            return ErrorCode.ILLEGAL_GENERATION
        return error


PRODUCE: Final = KnownErrors(fenced_since=NEVER, abortable_since=11)
INIT_PRODUCER_ID: Final = KnownErrors(fenced_since=4)
ADD_PARTITIONS_TO_TXN: Final = KnownErrors(fenced_since=2)
ADD_OFFSETS_TO_TXN: Final = KnownErrors(fenced_since=2)
END_TXN: Final = KnownErrors(fenced_since=2)
TXN_OFFSET_COMMIT: Final = KnownErrors(fenced_since=NEVER, abortable_since=4, groups_since=6)
