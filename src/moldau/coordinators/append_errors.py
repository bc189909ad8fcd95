"""The consequences of a failed append: may the log hold the batch, who can remove the cause, and which error do the
waiting clients get?
"""

from moldau.errors import ErrorCode

NOT_TAKEN = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
"""Errors that mean that the log does not hold the batch."""
CAUSED_BY_TOPIC = frozenset(
    {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
)
"""The errors among them that an operator can remove."""


def error_for_client(error: ErrorCode) -> ErrorCode:
    """The error for a client whose records the log refused: it retries, looks up the coordinator again, or gives up."""
    match error:
        case ErrorCode.NOT_LEADER_OR_FOLLOWER | ErrorCode.KAFKA_STORAGE_ERROR | ErrorCode.NOT_COORDINATOR:
            return ErrorCode.NOT_COORDINATOR
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE | ErrorCode.INVALID_RECORD:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        case ErrorCode.INVALID_PRODUCER_EPOCH | ErrorCode.INVALID_TXN_STATE | ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            return error
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
