"""DescribeTransactions, ListTransactions, DescribeProducers and WriteTxnMarkers say what Apache Kafka 4.3.1 said."""

from pathlib import Path
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.names import BrokerId, LeaderEpoch
from moldau.protocol import apis
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.describe_transactions import DescribeTransactionsRequest, TopicData
from moldau.protocol.messages.list_transactions import ListTransactionsRequest
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from moldau.replication.leadership import PartitionRoles
from tests.handlers.in_sync import FOLLOWER
from tests.handlers.living import NOW_MS, Living, Wire
from tests.handlers.transacting import committed, run, transactor

BAD_PATTERNS = ("(", "*", "(?!x)y", "[[:no:]]")


def marker(producer_id: int, epoch: int, partition: int = 0, **more: Any) -> WritableTxnMarker:
    topics = [WritableTxnMarkerTopic(name=more.pop("topic", "t"), partition_indexes=[partition])]
    return WritableTxnMarker(producer_id=producer_id, producer_epoch=epoch, topics=topics, **more)


async def marked(wire: Wire, *markers: WritableTxnMarker, version: int = 2) -> dict[int, list[int]]:
    reply = await wire.ask(apis.WRITE_TXN_MARKERS, version, WriteTxnMarkersRequest(markers=list(markers)))
    return {one.producer_id: [p.error_code for t in one.topics for p in t.partitions] for one in reply.markers}


async def producers(wire: Wire, topic: str, *partitions: int) -> list[Any]:
    asked = TopicRequest(name=topic, partition_indexes=list(partitions))
    reply = await wire.ask(apis.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[asked]))
    return list(reply.topics[0].partitions)


async def listed(wire: Wire, version: int = 2, **filters: Any) -> list[str]:
    reply = await wire.ask(apis.LIST_TRANSACTIONS, version, ListTransactionsRequest(**filters))
    assert reply.error_code == 0
    return sorted(one.transactional_id for one in reply.transaction_states)


@pytest.mark.re2
@pytest.mark.parametrize("version", range(3))
def test_transactions_are_listed_and_filtered(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t")
        empty, ongoing = await transactor(alive, "an-empty"), await transactor(alive, "one-open")
        await ongoing.write("t", 0, b"x", version=12)
        wire = await alive.dial()
        assert await listed(wire, version) == ["an-empty", "one-open"]
        assert await listed(wire, version, state_filters=["Ongoing", "ongoing"]) == ["one-open"]
        assert await listed(wire, version, producer_id_filters=[empty.producer_id, 987]) == ["an-empty"]
        assert await listed(wire, version, state_filters=["Empty"], producer_id_filters=[ongoing.producer_id]) == []
        if version >= 1:
            assert await listed(wire, version, duration_filter=3_600_000) == ["an-empty"]
            assert await listed(wire, version, duration_filter=-7) == ["an-empty", "one-open"]
        if version >= 2:
            assert await listed(wire, version, transactional_id_pattern="") == ["an-empty", "one-open"]
            assert await listed(wire, version, transactional_id_pattern="open") == []
            assert await listed(wire, version, transactional_id_pattern="(?i).*OPEN") == ["one-open"]
        request = ListTransactionsRequest(state_filters=["ongoing", "Dead", "nothing", "nothing"])
        reply = await wire.ask(apis.LIST_TRANSACTIONS, version, request)
        assert (reply.unknown_state_filters, reply.transaction_states) == (["ongoing", "nothing"], [])

    run(scenario, tmp_path)


def test_a_pattern_that_is_no_expression_of_re2_is_refused(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        for pattern in BAD_PATTERNS:
            request = ListTransactionsRequest(transactional_id_pattern=pattern)
            reply = await wire.ask(apis.LIST_TRANSACTIONS, 2, request)
            assert reply.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION, pattern

    run(scenario, tmp_path)


def test_a_transaction_is_described_once_and_one_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 2)
        one = await transactor(alive, "one")
        await one.write("t", 1, b"x", version=12)
        request = DescribeTransactionsRequest(transactional_ids=["one", "none", "", "one"])
        reply = await one.wire.ask(apis.DESCRIBE_TRANSACTIONS, 0, request)
        found, absent, unnamed = reply.transaction_states
        assert (found.error_code, found.transaction_state, found.transaction_timeout_ms) == (0, "Ongoing", 60_000)
        assert (found.producer_id, found.producer_epoch) == (one.producer_id, one.epoch)
        assert found.topics == [TopicData(topic="t", partitions=[1])]
        assert found.transaction_start_time_ms > NOW_MS
        assert (absent.error_code, absent.transactional_id) == (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "none")
        assert unnamed.error_code == ErrorCode.INVALID_REQUEST

    run(scenario, tmp_path)


def test_producers_of_a_partition_are_described(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 2)
        one = await transactor(alive, "one")
        await one.write("t", 0, b"x", b"y", version=12)
        there, other = await producers(one.wire, "t", 0, 1)
        [known] = there.active_producers
        assert (known.producer_id, known.producer_epoch, known.last_sequence) == (one.producer_id, 0, 1)
        assert (known.last_timestamp, known.coordinator_epoch, known.current_txn_start_offset) == (NOW_MS, -1, 0)
        assert other.active_producers == []
        nobody, negative = await producers(one.wire, "t", 7, -1)
        assert (nobody.error_code, nobody.error_message, negative.error_code) == (3, None, 3)
        [absent] = await producers(one.wire, "absent", 0)
        assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and absent.error_message
        [unnamable] = await producers(one.wire, "a b", 0)
        assert unnamable.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION and unnamable.error_message

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_by_hand_ends_what_hangs_and_epochs_hold_it_back(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t", 2)
        one = await transactor(alive, "one")
        await one.write("t", 0, b"x", version=12)
        me, wire = one.producer_id, one.wire
        assert await marked(wire, version=version) == {}
        assert await marked(wire, WritableTxnMarker(producer_id=me), version=version) == {}
        assert await marked(wire, marker(me, 0, topic="absent"), marker(me, 0, 9), version=version) == {me: [3, 3]}
        assert await marked(wire, marker(me, -1), marker(-5, 0), version=version) == {me: [-1], -5: [-1]}
        assert await marked(wire, marker(me, 0, coordinator_epoch=4), version=version) == {me: [0]}
        assert await marked(wire, marker(me, 0, coordinator_epoch=3), version=version) == {
            me: [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
        }
        assert await committed(alive, "t") == []
        [partition] = await producers(wire, "t", 0)
        [known] = partition.active_producers
        assert (known.coordinator_epoch, known.current_txn_start_offset) == (4, -1)
        assert await marked(wire, marker(me, 3, 1), version=version) == {me: [0]}
        assert await marked(wire, marker(me, 2, 1), version=version) == {me: [ErrorCode.INVALID_PRODUCER_EPOCH]}

    run(scenario, tmp_path)


def test_a_marker_of_version_2_has_to_raise_the_epoch_of_an_open_transaction(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("t")
        one = await transactor(alive, "one")
        await one.write("t", 0, b"x", version=12)
        me = one.producer_id
        late = {me: [ErrorCode.INVALID_PRODUCER_EPOCH]}
        assert await marked(one.wire, marker(me, 0, transaction_version=2)) == late
        assert await marked(one.wire, marker(me, 0, transaction_version=-1)) == {me: [-1]}
        assert await marked(one.wire, marker(me, 1, transaction_version=2, transaction_result=True)) == {me: [0]}
        assert await committed(alive, "t") == [b"x"]

    run(scenario, tmp_path)


def test_a_follower_describes_the_producers_that_it_knows(tmp_path: Path) -> None:
    """`kafka-transactions find-hanging --broker-id` asks one broker about all replicas that it has."""

    async def scenario(alive: Living) -> None:
        await alive.make("t")
        one = await transactor(alive, "one")
        await one.write("t", 0, b"x", version=12)
        replica = alive.replica("t")
        epoch = LeaderEpoch(replica.leadership.leader_epoch + 1)
        replica.take_roles(PartitionRoles(FOLLOWER, epoch, (BrokerId(1), FOLLOWER), (BrokerId(1), FOLLOWER), 9), 0)
        assert not replica.leadership.leads
        [described] = await producers(one.wire, "t", 0)
        assert [known.producer_id for known in described.active_producers] == [one.producer_id]
        assert described.error_code == 0

    run(scenario, tmp_path)
