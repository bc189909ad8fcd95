"""A producer with a transactional id: transactions over several partitions and an offset, one after the other.

By version 1 it tells the coordinator which partitions it writes to; by version 2 (KIP-890) it does not, and has another
epoch after each. It asks again while an answer is missing, and begins anew, as another life, when it is refused.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from moldau.client.failures import error_of
from moldau.client.routing import GROUP_KEY, TRANSACTION_KEY, Router
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    Api,
)
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.records.batch import encode_batch
from moldau.simulation.world import World
from tests.worlds.transactions.ledger import SentTransaction, TransactionLedger

TOPIC = "money"
TIMEOUT_MS = 5000
CALL_MS, PATIENCE_S = 4000, 12.0
TRANSACTIONAL = 0x10
NEWEST_OF_CLIENTS = 3
"""The version of AddPartitionsToTxn; the later ones are for brokers (KIP-890)."""
VERSION_1 = {PRODUCE.key: 11, END_TXN.key: 4, TXN_OFFSET_COMMIT.key: 4}
AGAIN = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class SimulatedProducer:
    def __init__(self, world: World, ledger: TransactionLedger, bootstrap: str, transactional_id: str, name: str):
        self._world, self._ledger = world, ledger
        self._random = world.random
        self.transactional_id, self.name = transactional_id, name
        self._group = f"group-{transactional_id}"
        runtime = world.runtime(world.host(name))
        self._version = self._random.choice((1, 2))
        highest = {ADD_PARTITIONS_TO_TXN.key: NEWEST_OF_CLIENTS, **(VERSION_1 if self._version == 1 else {})}
        self._router = Router(bootstrap, name, runtime=runtime, request_timeout_ms=CALL_MS, highest=highest)
        self._partitions = 3
        self._life = 0
        self._who = name
        self._id, self._epoch = -1, -1
        self._sequences: dict[int, int] = {}

    @property
    def _now(self) -> float:
        return self._world.loop.time()

    async def live(self) -> None:
        try:
            while True:
                try:
                    await self._begin_anew()
                    while True:
                        await asyncio.sleep(self._random.random() * self._random.choice((0.1, 1)))
                        await self._transact()
                except KafkaError:
                    await asyncio.sleep(0.1 + self._random.random())
        finally:
            await self._router.close()

    async def _begin_anew(self) -> None:
        self._life += 1
        self._who = f"{self.name}.{self._life}"
        sent_s = self._now
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS)
        reply = await self._insist(INIT_PRODUCER_ID, request, lambda reply: reply.error_code)
        self._ledger.initialised(self.transactional_id, self._who, sent_s, self._now)
        self._be(reply.producer_id, reply.producer_epoch)

    def _be(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self._id, self._epoch):
            self._id, self._epoch, self._sequences = producer_id, epoch, {}

    async def _transact(self) -> None:
        transaction = self._ledger.begin(self.transactional_id, self._who)
        for number in self._random.sample(range(self._partitions), self._random.randint(1, self._partitions)):
            for part in range(self._random.randint(1, 2)):
                await self._write(transaction, number, f"{transaction.number}/{number}/{part}")
        if self._random.random() < 0.6:
            await self._commit_offset(transaction)
        if self._random.random() < 0.1:
            await asyncio.sleep(2 * TIMEOUT_MS / 1000)  # it runs out of time
        commits = self._random.random() < 0.7
        transaction.tried_to_commit = commits
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._id,
            producer_epoch=self._epoch,
            committed=commits,
        )
        reply = await self._insist(END_TXN, request, lambda reply: reply.error_code)
        transaction.end = commits
        if reply.producer_id >= 0:
            self._be(reply.producer_id, reply.producer_epoch)

    async def _write(self, transaction: SentTransaction, partition: int, value: str) -> None:
        if self._version == 1:
            topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=[partition])
            added = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self._id,
                v3_and_below_producer_epoch=self._epoch,
                v3_and_below_topics=[topic],
            )
            await self._insist(
                ADD_PARTITIONS_TO_TXN,
                added,
                lambda reply: reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
            )
        sequence = self._sequences.get(partition, 0)
        batch = encode_batch(
            [(b"k", value.encode(), self._world.host(self.name).clock.now_ms(), [])],
            attributes=TRANSACTIONAL,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
        )
        data = TopicProduceData(
            name=TOPIC, partition_data=[PartitionProduceData(index=partition, records=bytes(batch))]
        )
        request = ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=CALL_MS, topic_data=[data])
        self._ledger.sends(transaction, value)
        await self._insist(PRODUCE, request, lambda reply: reply.responses[0].partition_responses[0].error_code)
        self._sequences[partition] = sequence + 1
        transaction.acknowledged.add(value)

    async def _commit_offset(self, transaction: SentTransaction) -> None:
        if self._version == 1:
            added = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self._id,
                producer_epoch=self._epoch,
                group_id=self._group,
            )
            await self._insist(ADD_OFFSETS_TO_TXN, added, lambda reply: reply.error_code)
        part = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=transaction.number, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self._group,
            producer_id=self._id,
            producer_epoch=self._epoch,
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[part])],
        )
        await self._insist(TXN_OFFSET_COMMIT, request, lambda reply: reply.topics[0].partitions[0].error_code)
        transaction.has_offset = True

    async def _insist(self, api: Api, request: Any, error: Callable[[Any], int]) -> Any:
        """Until it is done. Raises `KafkaError` if it is refused, or if patience is at an end."""
        until = self._now + PATIENCE_S
        while True:
            sent_s = self._now
            try:
                reply = await self._call(api, request)
                code = error_of(error(reply))
                if code is ErrorCode.NONE:
                    if api is not INIT_PRODUCER_ID:
                        self._ledger.taken(self.transactional_id, self._who, sent_s)
                    return reply
                failure = KafkaError(code)
                if not failure.retriable and code not in AGAIN:
                    raise failure
            except KafkaError as raised:
                failure = raised
                if not failure.retriable and failure.code not in AGAIN:
                    raise
            if self._now > until:
                raise failure
            await asyncio.sleep(0.02 + 0.1 * self._random.random())

    async def _call(self, api: Api, request: Any) -> Any:
        if api is PRODUCE:
            node = await self._router.leader(TopicPartition(TOPIC, 0))
        else:
            key = (self._group, GROUP_KEY) if api is TXN_OFFSET_COMMIT else (self.transactional_id, TRANSACTION_KEY)
            node = await self._router.coordinator(*key)
            if api is TXN_OFFSET_COMMIT:
                await self._router.leader(TopicPartition(TOPIC, 0))
                request.topics[0].topic_id = self._router.view.topics[TOPIC].topic_id
        link = await self._router.broker(node, "transactions")
        return await link.call(api, request, CALL_MS)
