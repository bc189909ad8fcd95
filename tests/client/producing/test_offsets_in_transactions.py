"""TxnOffsetCommit as a producer sends it: with topic ids to brokers that know version 6, with names to all others."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.patience import within
from moldau.aio import Producer
from moldau.errors import CommitFailed, ErrorCode, KafkaError, StaleMemberEpoch
from moldau.names import GroupMetadata, TopicPartition
from moldau.protocol import apis
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from moldau.protocol.messages.api_versions import FinalizedFeatureKey
from moldau.protocol.messages.end_txn import EndTxnResponse
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from moldau.protocol.messages.init_producer_id import InitProducerIdResponse
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.client.scripted_cluster import OFFERED, TOPIC, ScriptedCluster

OFFSETS = {TopicPartition(TOPIC, 0): 5}
MEMBER = GroupMetadata("g", 3, "m", "i")
NO_ID = uuid.UUID(int=0)


class Coordinating(ScriptedCluster):
    """Broker 0 coordinates transactions and groups. `newest` is its newest TxnOffsetCommit, `says` the errors of
    its next replies, `commits` are the requests, and `ends` whether each transaction was committed."""

    offered = (
        *OFFERED,
        apis.FIND_COORDINATOR,
        apis.INIT_PRODUCER_ID,
        apis.ADD_OFFSETS_TO_TXN,
        apis.TXN_OFFSET_COMMIT,
        apis.END_TXN,
    )

    def __init__(self) -> None:
        super().__init__()
        self.newest = apis.TXN_OFFSET_COMMIT.high
        self.transaction_version = 2
        self.topic_id = uuid.uuid4()
        self.says: list[ErrorCode] = []
        self.commits: list[TxnOffsetCommitRequest] = []
        self.ends: list[bool] = []

    async def _answer(self, broker: int, key: int, request: Any) -> Any:
        if key == apis.FIND_COORDINATOR.key:
            found = Coordinator(key=request.coordinator_keys[0], node_id=0, host="127.0.0.1", port=self._ports[0])
            return FindCoordinatorResponse(coordinators=[found])
        if key == apis.INIT_PRODUCER_ID.key:
            return InitProducerIdResponse(producer_id=7, producer_epoch=1)
        if key == apis.ADD_OFFSETS_TO_TXN.key:
            return AddOffsetsToTxnResponse()
        if key == apis.END_TXN.key:
            self.ends.append(request.committed)
            return EndTxnResponse(producer_id=7, producer_epoch=2)
        if key == apis.TXN_OFFSET_COMMIT.key:
            return self._committed(request)
        answer = await super()._answer(broker, key, request)
        if key == apis.METADATA.key:
            answer.topics[0].topic_id = self.topic_id
        if key == apis.API_VERSIONS.key:
            level = self.transaction_version
            feature = FinalizedFeatureKey(name="transaction.version", max_version_level=level, min_version_level=level)
            answer.finalized_features = [feature]
            for offer in answer.api_keys:
                if offer.api_key == apis.TXN_OFFSET_COMMIT.key:
                    offer.max_version = self.newest
        return answer

    def _committed(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        self.commits.append(request)
        error = self.says.pop(0) if self.says else ErrorCode.NONE
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=error)
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


@asynccontextmanager
async def begun(newest: int = apis.TXN_OFFSET_COMMIT.high) -> AsyncIterator[tuple[Coordinating, Producer]]:
    """A producer whose transaction has begun."""
    async with Coordinating().running() as cluster:
        assert isinstance(cluster, Coordinating)
        cluster.newest = newest
        async with Producer(cluster.bootstrap, transactional_id="t", default_api_timeout_ms=10_000) as producer:
            await within(producer.begin_transaction())
            yield cluster, producer


@pytest.mark.parametrize("newest", range(3, apis.TXN_OFFSET_COMMIT.high + 1))
def test_offsets_are_committed_by_topic_id_or_by_name_as_the_coordinator_can(newest: int) -> None:
    async def scenario() -> None:
        async with begun(newest) as (cluster, producer):
            await within(producer.send_offsets_to_transaction(OFFSETS, MEMBER))
            await within(producer.commit_transaction())
            [request] = cluster.commits
            [topic] = request.topics
            assert (topic.name, topic.topic_id) == (("", cluster.topic_id) if newest >= 6 else (TOPIC, NO_ID))
            assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [(0, 5)]
            member = request.generation_id_or_member_epoch, request.member_id, request.group_instance_id
            assert member == (3, "m", "i")
            assert cluster.ends == [True]

    asyncio.run(scenario())


def test_an_error_that_passes_is_asked_again_with_the_same_topic_id() -> None:
    async def scenario() -> None:
        async with begun() as (cluster, producer):
            first = cluster.topic_id
            cluster.says = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_ID]
            await within(producer.send_offsets_to_transaction(OFFSETS, MEMBER))
            await within(producer.commit_transaction())
            assert [request.topics[0].topic_id for request in cluster.commits] == [first] * 3

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, CommitFailed),
        (ErrorCode.STALE_MEMBER_EPOCH, StaleMemberEpoch),
        (ErrorCode.ILLEGAL_GENERATION, CommitFailed),
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailed),
    ],
)
def test_a_consumer_that_is_no_member_any_more_ends_the_transaction_and_not_the_producer(
    error: ErrorCode, raised: type[KafkaError]
) -> None:
    async def scenario() -> None:
        async with begun() as (cluster, producer):
            cluster.says = [error]
            with pytest.raises(raised):
                await within(producer.send_offsets_to_transaction(OFFSETS, MEMBER))
            with pytest.raises(KafkaError) as refused:
                await within(producer.commit_transaction())
            assert refused.value.code is ErrorCode.TRANSACTION_ABORTABLE
            await within(producer.abort_transaction())
            await within(producer.begin_transaction())
            await within(producer.send_offsets_to_transaction(OFFSETS, MEMBER))
            await within(producer.commit_transaction())
            assert cluster.ends == [False, True]
            assert len(cluster.commits) == 2

    asyncio.run(scenario())


def test_a_topic_that_was_made_anew_ends_the_transaction_and_the_next_one_has_its_id() -> None:
    async def scenario() -> None:
        async with begun() as (cluster, producer):
            first = cluster.topic_id
            await within(producer.send_offsets_to_transaction(OFFSETS, MEMBER))
            await within(producer.commit_transaction())
            cluster.topic_id = uuid.uuid4()
            await within(producer.begin_transaction())
            cluster.says = [ErrorCode.UNKNOWN_TOPIC_ID]
            with pytest.raises(KafkaError, match=f"topic {TOPIC} was created anew") as refused:
                await within(producer.send_offsets_to_transaction(OFFSETS, MEMBER))
            assert refused.value.code is ErrorCode.TRANSACTION_ABORTABLE
            await within(producer.abort_transaction())
            await within(producer.begin_transaction())
            await within(producer.send_offsets_to_transaction(OFFSETS, MEMBER))
            await within(producer.commit_transaction())
            assert [request.topics[0].topic_id for request in cluster.commits] == [first, first, cluster.topic_id]

    asyncio.run(scenario())


def test_offsets_of_a_topic_that_does_not_exist_are_asked_for_until_the_time_is_over() -> None:
    async def scenario() -> None:
        async with begun() as (cluster, producer):
            producer._router.api_timeout_ms = 1
            with pytest.raises(KafkaError, match="topic absent") as refused:
                await within(producer.send_offsets_to_transaction({TopicPartition("absent", 0): 1}, MEMBER))
            assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert cluster.commits == []

    asyncio.run(scenario())
