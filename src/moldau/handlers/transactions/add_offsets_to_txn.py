"""AddOffsetsToTxn (key 25), all versions: adds the partition that holds a group's offsets to a transaction.

Versions 0 and 1 get INVALID_PRODUCER_EPOCH for PRODUCER_FENCED.
"""

from collections.abc import Awaitable, Callable

from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.transactions.coordinator import TransactionCoordinator
from moldau.coordinators.transactions.messages import AddPartitions
from moldau.handlers.responding import respond_when_ready
from moldau.names import OFFSETS_TOPIC, TopicPartition
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from moldau.protocol.transaction_errors import ADD_OFFSETS_TO_TXN
from moldau.requests.session import Call


class AddOffsetsToTxn:
    def __init__(self, coordinator: TransactionCoordinator, groups: Callable[[], GroupCoordinator]):
        self._coordinator = coordinator
        self._groups = groups

    def __call__(
        self, request: AddOffsetsToTxnRequest, call: Call
    ) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
        partition = TopicPartition(OFFSETS_TOPIC, self._groups().partition_of(request.group_id))
        ask = AddPartitions(request.transactional_id, request.producer_id, request.producer_epoch, (partition,))
        return respond_when_ready(
            self._coordinator.add_partitions(ask),
            lambda error: AddOffsetsToTxnResponse(error_code=ADD_OFFSETS_TO_TXN.in_version(error, call.version)),
        )
