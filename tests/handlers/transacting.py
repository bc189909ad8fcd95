"""A transactional producer by raw requests, in any version of each."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode
from moldau.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    PRODUCE,
)
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.records.batch import TRANSACTIONAL_BIT
from moldau.records.rows import iterate
from moldau.requests.gate import Gate
from tests.handlers import living
from tests.handlers.fetching.fetches import at, fetch, parts_of
from tests.handlers.living import Living, Wire, batch, outcomes, produce

COMMITTED = 1
PAUSE_S = 0.02
STILL_ENDING = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


FEW = 3
"""Partitions of the internal topics: fifty take half a second to make."""


def run(
    scenario: Callable[[Living], Awaitable[None]], folder: Path, gate: Gate | None = None, **settings: object
) -> None:
    """A broker on that folder, as `living.run` does."""
    few = {"transaction_state_log_num_partitions": FEW, "offsets_topic_num_partitions": FEW}
    living.run(scenario, folder, gate, **{**few, **settings})


async def tried(ask: Callable[[], Awaitable[Any]], error: Callable[[Any], int]) -> Any:
    """Asks until the transaction before has ended, or the coordinator is loaded, as clients do."""
    while error(answer := await ask()) in STILL_ENDING:
        await asyncio.sleep(PAUSE_S)
    return answer


class Transactor:
    """One producer of one transactional id, on a connection of its own."""

    def __init__(self, wire: Wire, transactional_id: str, image: Callable[[], Image]):
        """`image` returns the cluster's."""
        self.wire = wire
        self.image = image
        self.transactional_id = transactional_id
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[tuple[str | bytes, int], int] = {}

    async def init(self, version: int = 4, timeout_ms: int = 60_000, recovers: bool = False) -> ErrorCode:
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms)
        if recovers:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        made = await tried(lambda: self.wire.ask(INIT_PRODUCER_ID, version, request), lambda one: one.error_code)
        if not made.error_code:
            self._begin(made.producer_id, made.producer_epoch)
        return ErrorCode(made.error_code)

    def _begin(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch, self.sequences = producer_id, epoch, {}

    async def add(self, topic: str, *partitions: int, version: int = 3) -> list[ErrorCode]:
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]
        if version < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=topics,
            )
        else:
            request = AddPartitionsToTxnRequest(transactions=[self.transaction(topics)])

        def codes(added: Any) -> list[ErrorCode]:
            found = (
                added.results_by_topic_v3_and_below if version < 4 else added.results_by_transaction[0].topic_results
            )
            return [ErrorCode(part.partition_error_code) for part in found[0].results_by_partition]

        return codes(
            await tried(lambda: self.wire.ask(ADD_PARTITIONS_TO_TXN, version, request), lambda one: codes(one)[0])
        )

    def transaction(
        self, topics: Sequence[AddPartitionsToTxnTopic], verify_only: bool = False
    ) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            verify_only=verify_only,
            topics=list(topics),
        )

    async def add_offsets(self, group: str, version: int = 3) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        added = await tried(lambda: self.wire.ask(ADD_OFFSETS_TO_TXN, version, request), lambda one: one.error_code)
        return ErrorCode(added.error_code)

    def records(self, topic: str | bytes, partition: int, *values: bytes, **options: Any) -> bytes:
        """The next batch for a partition; its sequences count as sent."""
        first = self.sequences.get((topic, partition), 0)
        self.sequences[topic, partition] = first + len(values)
        return batch(*values, **{**self.of_batch(first), **options})

    def of_batch(self, first: int) -> dict[str, int]:
        return {
            "attributes": TRANSACTIONAL_BIT,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": first,
        }

    async def write(
        self, topic: str | bytes, partition: int, *values: bytes, version: int = 11, **options: Any
    ) -> ErrorCode:
        records = self.records(topic, partition, *values, **options)
        request = produce((topic, partition, records), acks=-1, transactional_id=self.transactional_id)
        ((_, error, _),) = outcomes(await self.wire.ask(PRODUCE, version, request))
        return ErrorCode(error)

    async def end(self, commits: bool, version: int = 4) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commits,
        )
        ended = await tried(lambda: self.wire.ask(END_TXN, version, request), lambda one: one.error_code)
        if not ended.error_code and version >= 5:
            self._begin(ended.producer_id, ended.producer_epoch)
        return ErrorCode(ended.error_code)


async def transactor(alive: Living, transactional_id: str, version: int = 4) -> Transactor:
    """A producer that is ready for its first transaction."""
    one = Transactor(await alive.dial(), transactional_id, lambda: alive.broker.cluster.image)
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    (found,) = (await one.wire.ask(FIND_COORDINATOR, 4, find)).coordinators
    assert found.error_code == 0, found
    assert await one.init(version) is ErrorCode.NONE
    return one


async def committed(alive: Living, topic: str, partition: int = 0) -> list[bytes]:
    """The values that a reader of committed records gets once nothing in the partition is undecided."""
    replica = alive.replica(topic, partition)
    while replica.last_stable_offset < replica.high_watermark:
        await asyncio.sleep(PAUSE_S)
    wire, topic_id = await alive.dial(), alive.broker.cluster.image.topics[topic].id.bytes
    (part,) = parts_of(await wire.ask(FETCH, 18, fetch((topic_id, at(0, partition)), isolation_level=COMMITTED)))
    aborted = [(one.producer_id, one.first_offset) for one in part.aborted_transactions or []]
    return [bytes(record.value or b"") for record in iterate(bytes(part.records or b""), aborted=aborted)]
