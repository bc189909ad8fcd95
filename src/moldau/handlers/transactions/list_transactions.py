"""ListTransactions (key 66), all versions.

Filters: by duration from version 1 on; by name from version 2 on (KIP-1152), with an RE2 expression that must match the
whole name. An id without a transaction has lasted longer than any duration, as in Kafka. States are compared with case.
Ids that the client may not describe are left out.
"""

from collections.abc import Callable

from moldau.config.expressions import compiled
from moldau.coordinators.transactions.coordinator import TransactionCoordinator
from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from moldau.protocol.messages.list_transactions import TransactionState as Listed
from moldau.requests.access import DESCRIBE_TRANSACTIONAL_ID
from moldau.requests.session import Call
from moldau.turns import Steps

STATES = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)


class ListTransactions:
    def __init__(self, coordinator: TransactionCoordinator, now_ms: Callable[[], int]):
        self._coordinator = coordinator
        self._now_ms = now_ms

    def __call__(self, request: ListTransactionsRequest, call: Call) -> Steps[ListTransactionsResponse]:
        asked = dict.fromkeys(request.state_filters)
        ids, pattern = set(request.producer_id_filters), request.transactional_id_pattern
        begun_before = self._now_ms() - request.duration_filter if request.duration_filter >= 0 else None
        try:
            matches = compiled(pattern).fullmatch if pattern else None
        except ValueError:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        response = ListTransactionsResponse(unknown_state_filters=[state for state in asked if state not in STATES])
        try:
            for one in self._coordinator.listed():
                if (
                    (not asked or one.state in asked)
                    and (not ids or one.producer_id in ids)
                    and (begun_before is None or one.start_ms < begun_before)
                    and (matches is None or matches(one.transactional_id))
                    and call.may(DESCRIBE_TRANSACTIONAL_ID, one.transactional_id, logged=False)
                ):
                    listed = Listed(
                        transactional_id=one.transactional_id, producer_id=one.producer_id, transaction_state=one.state
                    )
                    response.transaction_states.append(listed)
                yield
        except KafkaError as error:
            return ListTransactionsResponse(error_code=error.code)
        return response
