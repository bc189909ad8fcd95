"""DescribeTransactions (key 65), all versions. An id that is named twice is answered once.

Topics that the client may not describe are left out.
"""

from moldau.coordinators.partitioning import elements_of
from moldau.coordinators.transactions.coordinator import TransactionCoordinator
from moldau.coordinators.transactions.messages import DescribedTransaction
from moldau.errors import KafkaError
from moldau.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from moldau.protocol.messages.describe_transactions import TransactionState as Described
from moldau.requests.access import DESCRIBE_TOPIC, DESCRIBE_TRANSACTIONAL_ID
from moldau.requests.session import Call
from moldau.turns import Steps


class DescribeTransactions:
    def __init__(self, coordinator: TransactionCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: DescribeTransactionsRequest, call: Call) -> Steps[DescribeTransactionsResponse]:
        response = DescribeTransactionsResponse()
        for name in dict.fromkeys(request.transactional_ids):
            response.transaction_states.append((yield from self._describe(name, call)))
        return response

    def _describe(self, transactional_id: str, call: Call) -> Steps[Described]:
        yield
        yield from elements_of(transactional_id)
        if not call.may(DESCRIBE_TRANSACTIONAL_ID, transactional_id):
            return Described(transactional_id=transactional_id, error_code=DESCRIBE_TRANSACTIONAL_ID.denied)
        try:
            return (yield from _described(self._coordinator.describe(transactional_id), call))
        except KafkaError as error:
            return Described(transactional_id=transactional_id, error_code=error.code)


def _described(one: DescribedTransaction, call: Call) -> Steps[Described]:
    partitions_of: dict[str, list[int]] = {}
    for tp in one.partitions:
        partitions_of.setdefault(tp.topic, []).append(tp.partition)
        yield
    topics: list[TopicData] = []
    for topic, partitions in partitions_of.items():
        if call.may(DESCRIBE_TOPIC, topic, logged=False):
            topics.append(TopicData(topic=topic, partitions=partitions))
        yield
    return Described(
        transactional_id=one.transactional_id,
        transaction_state=one.state,
        transaction_timeout_ms=one.timeout_ms,
        transaction_start_time_ms=one.start_ms,
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        topics=topics,
    )
