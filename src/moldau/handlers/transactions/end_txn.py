"""EndTxn (key 26), all versions: commits or aborts a transaction.

From version 5 on every transaction has an epoch of its own, and the answer has the next one. Versions 0 and 1 get
INVALID_PRODUCER_EPOCH for PRODUCER_FENCED.
"""

from collections.abc import Awaitable

from moldau.coordinators.transactions.coordinator import TransactionCoordinator
from moldau.coordinators.transactions.messages import Ended, EndTransaction
from moldau.handlers.responding import respond_when_ready
from moldau.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.protocol.transaction_errors import END_TXN
from moldau.requests.session import Call

HAS_NEXT_EPOCH = 5
"""The first version in which every transaction has an epoch of its own."""


class EndTxn:
    def __init__(self, coordinator: TransactionCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: EndTxnRequest, call: Call) -> EndTxnResponse | Awaitable[EndTxnResponse]:
        ask = EndTransaction(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            transaction_version=2 if call.version >= HAS_NEXT_EPOCH else 0,
        )

        def respond(ended: Ended) -> EndTxnResponse:
            return EndTxnResponse(
                error_code=END_TXN.in_version(ended.error, call.version),
                producer_id=ended.producer_id,
                producer_epoch=ended.epoch,
            )

        return respond_when_ready(self._coordinator.end(ask), respond)
