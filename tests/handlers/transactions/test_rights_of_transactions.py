"""Transactions and producers for clients that lack rights, by raw requests: the answers are those of Kafka 4.3.1."""

from pathlib import Path
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.transactions.init_producer_id import InitProducerId
from moldau.names import OFFSETS_TOPIC
from moldau.protocol import apis
from moldau.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from moldau.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from moldau.protocol.messages.describe_transactions import DescribeTransactionsRequest, TopicData
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_transactions import ListTransactionsRequest
from moldau.requests.access import (
    CLUSTER_ACTION,
    CLUSTER_NAME,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    IDEMPOTENT_WRITE,
    READ_TOPIC,
    TWO_PHASE_COMMIT,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from tests.handlers.guarded import Guard, run_guarded
from tests.handlers.judged import asked_rights, blanked, parts_of, some_versions
from tests.handlers.living import Living
from tests.handlers.transacting import Transactor, transactor
from tests.requests.calling import Denying, call

ID_DENIED, TOPIC_DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_DENIED, UNKNOWN = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED


def init(name: str | None, **fields: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000, **fields)


@pytest.mark.parametrize("version", some_versions(apis.INIT_PRODUCER_ID))
def test_no_producer_id_is_given_without_the_right_to_write(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living, guard: Guard) -> None:
        wire = (await transactor(alive, "one")).wire
        # With a transactional id, the right on it decides, before anything else about the request.
        mismatch = {"producer_id": 5} if version >= 3 else {}
        for name in ("one", "none", ""):
            with guard.without((WRITE_TRANSACTIONAL_ID, name)) as denying:
                made = await wire.ask(apis.INIT_PRODUCER_ID, version, init(name, **mismatch))
                assert (made.error_code, made.producer_id, made.producer_epoch) == (ID_DENIED, -1, -1)
            assert denying.asked == denying.logged == [(WRITE_TRANSACTIONAL_ID, name)]
        # Without one, it takes the right on the cluster, or on any topic.
        for denied, error in (
            ([(IDEMPOTENT_WRITE, CLUSTER_NAME), (WRITE_TOPIC, "*")], CLUSTER_DENIED),
            ([(IDEMPOTENT_WRITE, CLUSTER_NAME), (WRITE_TRANSACTIONAL_ID, "*")], 0),
            ([(WRITE_TOPIC, "*")], 0),
        ):
            with guard.without(*denied) as denying:
                made = await wire.ask(apis.INIT_PRODUCER_ID, version, init(None))
                assert made.error_code == error
                assert error == 0 or (made.producer_id, made.producer_epoch) == (-1, -1)
            assert denying.logged == [], "the right on the cluster is only tried"
            assert asked_rights(denying) <= parts_of(apis.INIT_PRODUCER_ID)

    run_guarded(scenario, tmp_path)


def test_a_producer_that_commits_in_two_phases_needs_a_right_of_its_own() -> None:
    """Version 6 has the flag; this broker has none yet."""
    nobody: Any = None
    handler = InitProducerId(nobody, pytest.fail)
    for denied in (WRITE_TRANSACTIONAL_ID, TWO_PHASE_COMMIT):
        denying = Denying((denied, "one"))
        made: Any = handler(init("one", enable2_pc=True), call(apis.INIT_PRODUCER_ID, 6, authorizer=denying))
        assert (made.error_code, made.producer_id, made.producer_epoch) == (ID_DENIED, -1, -1)
        assert denying.asked[-1] == (denied, "one")
        assert denying.logged == [(denied, "one")]


def adding(one: Transactor, version: int, *topics: tuple[str, list[int]]) -> AddPartitionsToTxnRequest:
    named = [AddPartitionsToTxnTopic(name=name, partitions=partitions) for name, partitions in topics]
    if version >= 4:
        return AddPartitionsToTxnRequest(transactions=[one.transaction(named)])
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=one.transactional_id,
        v3_and_below_producer_id=one.producer_id,
        v3_and_below_producer_epoch=one.epoch,
        v3_and_below_topics=named,
    )


async def added(one: Transactor, version: int, *topics: tuple[str, list[int]]) -> list[tuple[str, int, int]]:
    answer = await one.wire.ask(apis.ADD_PARTITIONS_TO_TXN, version, adding(one, version, *topics))
    return [
        (topic.name, part.partition_index, part.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for part in topic.results_by_partition
    ]


@pytest.mark.parametrize("version", range(4))
def test_a_client_adds_all_partitions_or_none(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living, guard: Guard) -> None:
        await alive.make("t", 2)
        await alive.make("u")
        one = await transactor(alive, "one")
        topics = (("t", [0, 1]), ("u", [0]), ("gone", [0]), (OFFSETS_TOPIC, [0]))
        everything = [("t", 0), ("t", 1), ("u", 0), ("gone", 0), (OFFSETS_TOPIC, 0)]
        # The transactional id first: topics are not judged.
        with guard.without((WRITE_TRANSACTIONAL_ID, "one"), (WRITE_TOPIC, "*")) as denying:
            assert await added(one, version, *topics) == [(*part, ID_DENIED) for part in everything]
        assert denying.asked == denying.logged == [(WRITE_TRANSACTIONAL_ID, "one")]
        # A topic that may not be written is answered the same whether it exists or not.
        with guard.without((WRITE_TOPIC, "t"), (WRITE_TOPIC, "gone")) as denying:
            assert await added(one, version, *topics) == [
                *[("t", 0, TOPIC_DENIED), ("t", 1, TOPIC_DENIED), ("u", 0, NOT_ATTEMPTED)],
                *[("gone", 0, TOPIC_DENIED), (OFFSETS_TOPIC, 0, TOPIC_DENIED)],
            ]
        asked = [(WRITE_TOPIC, "t"), (WRITE_TOPIC, "u"), (WRITE_TOPIC, "gone")]
        assert denying.asked == [(WRITE_TRANSACTIONAL_ID, "one"), *asked], (
            "once for each topic, and not for internal ones"
        )
        assert denying.logged == [asked[0], asked[2]]
        assert asked_rights(denying) == parts_of(apis.ADD_PARTITIONS_TO_TXN) - {CLUSTER_ACTION}
        assert alive.broker.coordinators.transactions.describe("one").partitions == ()
        # With the rights it works.
        with guard.without((CLUSTER_ACTION, CLUSTER_NAME), (WRITE_TOPIC, "t")):
            assert await added(one, version, ("u", [0])) == [("u", 0, 0)]

    run_guarded(scenario, tmp_path)


@pytest.mark.parametrize("version", [4, 5])
def test_only_brokers_add_partitions_of_several_transactions(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living, guard: Guard) -> None:
        await alive.make("t")
        one = await transactor(alive, "one")
        request = adding(one, version, ("t", [0]), ("gone", [0]))
        with guard.without((CLUSTER_ACTION, CLUSTER_NAME)) as denying:
            answer = await one.wire.ask(apis.ADD_PARTITIONS_TO_TXN, version, request)
            assert (answer.error_code, answer.results_by_transaction) == (CLUSTER_DENIED, [])
        assert denying.asked == denying.logged == [(CLUSTER_ACTION, CLUSTER_NAME)]
        with guard.without((WRITE_TRANSACTIONAL_ID, "*"), (WRITE_TOPIC, "*")) as denying:
            answer = await one.wire.ask(apis.ADD_PARTITIONS_TO_TXN, version, adding(one, version, ("t", [0])))
            (result,) = answer.results_by_transaction
            assert (answer.error_code, result.topic_results[0].results_by_partition[0].partition_error_code) == (0, 0)
        assert denying.asked == [(CLUSTER_ACTION, CLUSTER_NAME)]

    run_guarded(scenario, tmp_path)


def test_producers_are_described_to_those_that_may_read_their_topic(tmp_path: Path) -> None:
    async def scenario(alive: Living, guard: Guard) -> None:
        await alive.make("t", 2)
        await alive.make("u")
        one = await transactor(alive, "one")
        await one.write("t", 0, b"x", version=12)
        wanted = (("t", [0, 9]), ("gone", [0, 9]), ("a b", [0]), ("u", [0]))
        topics = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in wanted]
        with guard.without(*((READ_TOPIC, name) for name in ("t", "gone", "a b"))) as denying:
            answer = await one.wire.ask(apis.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=topics))
        there, absent, unnamable, shown = answer.topics
        assert [(p.partition_index, p.error_code, p.active_producers) for p in there.partitions] == [
            (0, TOPIC_DENIED, []),
            (9, TOPIC_DENIED, []),
        ]
        assert blanked(there, "t") == blanked(absent, "gone")
        assert unnamable.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION, "before the right is asked"
        assert (shown.partitions[0].error_code, shown.partitions[0].active_producers) == (0, [])
        assert denying.asked == [(READ_TOPIC, "t"), (READ_TOPIC, "gone"), (READ_TOPIC, "u")], "once for each topic"
        assert denying.logged == denying.asked[:2]
        assert asked_rights(denying) == parts_of(apis.DESCRIBE_PRODUCERS)

    run_guarded(scenario, tmp_path)


def test_transactions_and_their_topics_are_described_to_those_that_may_see_them(tmp_path: Path) -> None:
    async def scenario(alive: Living, guard: Guard) -> None:
        await alive.make("t", 2)
        await alive.make("u")
        one = await transactor(alive, "one")
        for name, partition in (("t", 0), ("t", 1), ("u", 0)):
            await one.write(name, partition, b"x", version=12)
        request = DescribeTransactionsRequest(transactional_ids=["one", "none", ""])
        with guard.without((DESCRIBE_TRANSACTIONAL_ID, "*")) as denying:
            states = (await one.wire.ask(apis.DESCRIBE_TRANSACTIONS, 0, request)).transaction_states
        there, absent, _ = states
        assert [(s.transactional_id, s.error_code) for s in states] == [(i, ID_DENIED) for i in ("one", "none", "")]
        assert (there.transaction_state, there.producer_id, there.topics) == ("", 0, [])
        assert blanked(there, "one") == blanked(absent, "none")
        assert denying.asked == denying.logged == [(DESCRIBE_TRANSACTIONAL_ID, i) for i in ("one", "none", "")]
        with guard.without((DESCRIBE_TOPIC, "t")) as denying:
            shown = (await one.wire.ask(apis.DESCRIBE_TRANSACTIONS, 0, request)).transaction_states[0]
        assert (shown.error_code, shown.transaction_state) == (0, "Ongoing")
        assert shown.topics == [TopicData(topic="u", partitions=[0])]
        assert denying.asked.count((DESCRIBE_TOPIC, "t")) == 1
        assert denying.logged == []
        assert asked_rights(denying) == parts_of(apis.DESCRIBE_TRANSACTIONS)

    run_guarded(scenario, tmp_path)


@pytest.mark.parametrize("version", some_versions(apis.LIST_TRANSACTIONS))
def test_transactions_that_the_client_may_not_see_are_not_listed(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living, guard: Guard) -> None:
        wire = (await transactor(alive, "one")).wire
        await transactor(alive, "other")
        for denied, left in (("one", ["other"]), ("*", [])):
            with guard.without((DESCRIBE_TRANSACTIONAL_ID, denied)) as denying:
                answer = await wire.ask(apis.LIST_TRANSACTIONS, version, ListTransactionsRequest())
            assert answer.error_code == 0
            assert [state.transactional_id for state in answer.transaction_states] == left
            assert denying.logged == []
            assert asked_rights(denying) == parts_of(apis.LIST_TRANSACTIONS)

    run_guarded(scenario, tmp_path)
