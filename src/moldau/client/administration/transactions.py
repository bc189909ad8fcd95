"""Administration of transactions: list and describe them, describe producers, find hanging transactions and abort them.

A transaction hangs if it is open in a partition for longer than any transaction may last and its coordinator does not
know it. No marker will ever end it, so readers with isolation level read_committed wait in that partition forever.
`abort` writes the missing marker.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from moldau.client.administration.arguments import checked
from moldau.client.administration.asking import leader_of
from moldau.client.faces import Face, blocking
from moldau.client.failures import all_of, check, only_one
from moldau.client.own_loop import of_one_loop
from moldau.client.routing import TRANSACTION_KEY, Router
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS, WRITE_TXN_MARKERS
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.describe_transactions import DescribeTransactionsRequest
from moldau.protocol.messages.list_transactions import ListTransactionsRequest
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

DURATIONS_SINCE, PATTERNS_SINCE = 1, 2
"""The first versions of ListTransactions that filter by duration and by pattern."""
NONE = -1


class TransactionListing(NamedTuple):
    """One transactional id. `coordinator` is the id of its broker, `state` a name such as Ongoing or CompleteCommit."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """`start_ms` is None if no transaction is open; `partitions` are those in which the transaction is not ended
    yet."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


class ProducerDescription(NamedTuple):
    """A partition's state of one producer; -1 in unknown fields. `start_offset` is None without an open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    start_offset: int | None


class OpenTransaction(NamedTuple):
    """A transaction that is open in one partition."""

    partition: TopicPartition
    producer: ProducerDescription

    @property
    def identity(self) -> tuple[TopicPartition, int, int, int | None]:
        """The same in each look at one transaction, and in no other transaction."""
        producer = self.producer
        return self.partition, producer.producer_id, producer.producer_epoch, producer.start_offset


Listings = list[TransactionListing]
ProducersByPartition = dict[TopicPartition, list[ProducerDescription]]
Hanging = list[OpenTransaction]


@of_one_loop()
@checked("transactions.")
class AsyncTransactions:
    """Transactional ids, and the producers and open transactions of partitions: `admin.transactions`."""

    def __init__(self, router: Router):
        self._router = router
        self.own_loop = router.own_loop

    async def list(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        lasting_ms: int | None = None,
        pattern: str | None = None,
    ) -> Listings:
        """The transactions of all brokers, sorted by transactional id. Raises `KafkaError`, also if a broker does not
        support one of the filters or states."""
        await self._router.retrying(lambda: self._router.refresh([]))
        request = ListTransactionsRequest(
            state_filters=[*dict.fromkeys(states)],
            producer_id_filters=[*producer_ids],
            duration_filter=NONE if lasting_ms is None else lasting_ms,
            transactional_id_pattern=pattern,
        )
        needed = PATTERNS_SINCE if pattern else DURATIONS_SINCE if lasting_ms is not None else 0
        listings: Listings = []
        for broker_id in sorted(self._router.view.brokers):

            async def attempt(broker_id: int = broker_id) -> Listings:
                link = await self._router.broker(broker_id)
                if link.versions.of(LIST_TRANSACTIONS) < needed:
                    raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"broker {broker_id} does not support this filter")
                reply = await link.call(LIST_TRANSACTIONS, request, self._router.request_timeout_ms)
                check(reply.error_code, "listing transactions")
                if reply.unknown_state_filters:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST,
                        f"not a state of transactions: {', '.join(reply.unknown_state_filters)}",
                    )
                return [
                    TransactionListing(t.transactional_id, broker_id, t.producer_id, t.transaction_state)
                    for t in reply.transaction_states
                ]

            listings += await self._router.retrying(attempt)
        return sorted(listings)

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """Describe one transactional id. Raises `KafkaError(TRANSACTIONAL_ID_NOT_FOUND)` and others."""

        async def attempt() -> TransactionDescription:
            coordinator = await self._router.coordinator(transactional_id, TRANSACTION_KEY)
            link = await self._router.broker(coordinator)
            request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
            reply = await link.call(DESCRIBE_TRANSACTIONS, request, self._router.request_timeout_ms)
            transaction = only_one(reply.transaction_states, f"transactional id {transactional_id}")
            check(transaction.error_code, f"transactional id {transactional_id}")
            return TransactionDescription(
                transactional_id,
                coordinator,
                transaction.producer_id,
                transaction.producer_epoch,
                transaction.transaction_state,
                transaction.transaction_timeout_ms,
                None if transaction.transaction_start_time_ms < 0 else transaction.transaction_start_time_ms,
                tuple(sorted(TopicPartition(topic.topic, p) for topic in transaction.topics for p in topic.partitions)),
            )

        return await self._router.retrying(attempt)

    async def producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> ProducersByPartition:
        """The state of all producers of these partitions, from the partitions' leaders or from the given broker."""
        producers: ProducersByPartition = {}
        wanted = [*dict.fromkeys(partitions)]

        async def ask() -> None:
            by_broker: dict[int, dict[str, list[int]]] = {}
            for tp in wanted:
                if tp not in producers:
                    of_broker = await leader_of(self._router, tp) if broker_id is None else broker_id
                    by_broker.setdefault(of_broker, {}).setdefault(tp.topic, []).append(tp.partition)
            for asked, topics in by_broker.items():
                link = await self._router.broker(asked)
                request = DescribeProducersRequest(
                    topics=[TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics.items()]
                )
                reply = await link.call(DESCRIBE_PRODUCERS, request, self._router.request_timeout_ms)
                for topic in reply.topics:
                    for p in topic.partitions:
                        tp = TopicPartition(topic.name, p.partition_index)
                        check(p.error_code, f"describing the producers of {tp}", p.error_message)
                        producers[tp] = [
                            ProducerDescription(
                                one.producer_id,
                                one.producer_epoch,
                                one.last_sequence,
                                one.last_timestamp,
                                one.coordinator_epoch,
                                None if one.current_txn_start_offset < 0 else one.current_txn_start_offset,
                            )
                            for one in sorted(p.active_producers, key=lambda one: one.producer_id)
                        ]

        await self._router.retrying(ask)
        return all_of(producers, wanted)

    async def hanging(
        self, partitions: Iterable[TopicPartition], older_than_ms: int, broker_id: int | None = None
    ) -> Hanging:
        """Hanging transactions: open in these partitions, last record older than `older_than_ms`, unknown to every
        coordinator, and still open after the coordinators were asked."""
        latest_ms = self._router.runtime.clock.now_ms() - older_than_ms
        by_partition = await self.producers(partitions, broker_id)
        old = [
            OpenTransaction(tp, producer)
            for tp, producers in by_partition.items()
            for producer in producers
            if producer.start_offset is not None and producer.last_timestamp_ms < latest_ms
        ]
        if not old:
            return []
        listed = await self.list(producer_ids=sorted({one.producer.producer_id for one in old}))
        known: dict[int, tuple[TopicPartition, ...]] = {}
        for one in listed:
            try:
                described = await self.describe(one.transactional_id)
            except KafkaError as failure:
                if failure.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                continue
            known[described.producer_id] = described.partitions
        suspects = [one for one in old if one.partition not in known.get(one.producer.producer_id, ())]
        if not suspects:
            return []
        # A transaction that has ended since the first look was not known to its coordinator any more, either.
        producers = await self.producers([one.partition for one in suspects], broker_id)
        still_open = {OpenTransaction(tp, one).identity for tp, found in producers.items() for one in found}
        return [one for one in suspects if one.identity in still_open]

    async def abort(self, tp: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        """Write the marker that aborts a producer's transaction into one partition. Raises `KafkaError`:
        INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED and others."""
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
            coordinator_epoch=max(coordinator_epoch, 0),
        )
        request = WriteTxnMarkersRequest(markers=[marker])

        async def attempt() -> None:
            link = await self._router.broker(await leader_of(self._router, tp))
            reply = await link.call(WRITE_TXN_MARKERS, request, self._router.request_timeout_ms)
            about = f"aborting the transaction in {tp}"
            marked = only_one(only_one(reply.markers, about).topics, about)
            check(only_one(marked.partitions, about).error_code, about)

        await self._router.retrying(attempt)


class Transactions(Face[AsyncTransactions]):
    """The synchronous face of `AsyncTransactions`, with the same methods."""

    list = blocking(AsyncTransactions.list)
    describe = blocking(AsyncTransactions.describe)
    producers = blocking(AsyncTransactions.producers)
    hanging = blocking(AsyncTransactions.hanging)
    abort = blocking(AsyncTransactions.abort)
