"""Transactions as they stand on the wire, in all versions: the answers are those of Kafka 4.3.1."""

import asyncio
from pathlib import Path

import pytest

from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.errors import ErrorCode
from moldau.names import TRANSACTIONS_TOPIC
from moldau.protocol.apis import ADD_PARTITIONS_TO_TXN, FIND_COORDINATOR, INIT_PRODUCER_ID, PRODUCE
from moldau.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.records.batch import Marker
from moldau.replication.own_appends import append_marker
from tests.handlers.living import NOW_MS, Living, batch, outcomes, produce
from tests.handlers.transacting import FEW, PAUSE_S, Transactor, committed, run, transactor

NONE = ErrorCode.NONE
FENCED, OLD_EPOCH = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", range(7))
def test_the_first_question_for_its_coordinator_makes_the_topic_of_transactions(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        if version == 0:  # asks for groups only
            await alive.broker.cluster.topics.ensure_transactions_topic()
        else:
            request = FindCoordinatorRequest(key="t", key_type=1, coordinator_keys=["t", "u"])
            found = await wire.ask(FIND_COORDINATOR, version, request)
            for one in [found] if version < 4 else found.coordinators:
                assert (one.error_code, one.node_id, one.port) == (0, 1, alive.broker.port)
        topic = alive.broker.cluster.image.topics[TRANSACTIONS_TOPIC]
        assert len(topic.partitions) == FEW
        assert topic.overrides == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        }

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", range(6))
def test_a_transaction_is_there_as_a_whole_or_not_at_all(version: int, tmp_path: Path) -> None:
    """Of version 1: the client says which partitions it writes to, and its epoch stays."""

    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        one = await transactor(alive, "t", version)
        for commits, value in ((True, b"x"), (False, b"y"), (True, b"z")):
            assert await one.add("a", 0, 1, version=min(version, 3)) == [NONE, NONE]
            for partition in (0, 1):
                assert await one.write("a", partition, value, version=3 + version) is NONE
                assert alive.replica("a", partition).log.producers.first_unstable_offset is not None
            assert await one.end(commits, version=min(version, 4)) is NONE
            assert one.epoch == 0
        for partition in (0, 1):
            assert await committed(alive, "a", partition) == [b"x", b"z"]

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [12, 13])
def test_the_leader_adds_partitions_for_clients_of_version_2(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make("a", 2)
        topic: str | bytes = "a" if version < 13 else topic_id
        one = await transactor(alive, "t", 5)
        for epoch, (commits, value) in enumerate(((True, b"x"), (False, b"y"), (True, b"z"))):
            assert one.epoch == epoch
            for partition in (0, 1):
                assert await one.write(topic, partition, value, version=version) is NONE
                assert await one.write(topic, partition, value, version=version) is NONE
            assert await one.end(commits, version=5) is NONE
        for partition in (0, 1):
            assert await committed(alive, "a", partition) == [b"x", b"x", b"z", b"z"]

    run(scenario, tmp_path)


def test_what_comes_late_never_joins_a_later_transaction(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        one = await transactor(alive, "t", 5)
        assert await one.write("a", 0, b"x", version=12) is NONE
        late = Transactor(one.wire, "t", one.image)
        late.producer_id, late.epoch, late.sequences = one.producer_id, one.epoch, dict(one.sequences)
        assert await one.end(True, version=5) is NONE
        assert await late.write("a", 0, b"late", version=12) is OLD_EPOCH
        assert await one.write("a", 0, b"y", version=12) is NONE
        assert await late.write("a", 0, b"late", version=12) is OLD_EPOCH
        assert await late.end(False, version=5) is FENCED
        assert await one.end(True, version=5) is NONE
        assert await committed(alive, "a") == [b"x", b"y"]

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    ("version", "not_added"),
    [(8, ErrorCode.INVALID_TXN_STATE), (10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_records_outside_a_transaction_are_refused(version: int, not_added: ErrorCode, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 3)
        one = await transactor(alive, "t")
        assert await one.write("a", 0, b"x", version=version) is not_added
        assert await one.add("a", 1) == [NONE]
        assert await one.write("a", 0, b"x", version=version) is not_added
        assert await one.write("a", 1, b"y", version=version) is NONE
        assert await one.end(True) is NONE
        assert await committed(alive, "a", 1) == [b"y"]
        assert await one.write("a", 1, b"late", version=version) is not_added
        assert [alive.replica("a", partition).high_watermark for partition in range(3)] == [0, 2, 0]

    run(scenario, tmp_path)


def test_without_verification_the_log_takes_what_its_producer_says(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        one = await transactor(alive, "t")
        verification = Alteration("transaction.partition.verification.enable", OpType.SET, "true")
        assert await one.write("a", 0, b"x") is NONE
        await append_marker(alive.replica("a"), one.producer_id, one.epoch, Marker(False, 0), 0, NOW_MS)
        assert await alive.broker.cluster.configs.alter_broker("1", [verification]) is None
        assert await one.write("a", 0, b"y") is ErrorCode.TRANSACTION_ABORTABLE

    run(scenario, tmp_path, transaction_partition_verification_enable="false")


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_batch_is_refused_whose_producer_is_not_that_of_the_transactional_id(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 4)
        one = await transactor(alive, "t", 5)
        pid, mapping = one.producer_id, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await one.write("a", 0, b"x", version=version, producer_id=pid + 1) is mapping
        assert await one.write("a", 1, b"x", version=version, producer_epoch=one.epoch + 1) is OLD_EPOCH
        for other, error in (("nobody", mapping), ("", ErrorCode.INVALID_REQUEST)):
            stranger = Transactor(one.wire, other, one.image)
            stranger.producer_id, stranger.epoch = pid, one.epoch
            assert await stranger.write("a", 2, b"x", version=version) is error
        both = [(0, one.records("a", 0, b"x")), (1, one.records("a", 1, b"x", producer_id=pid + 1)), (2, batch(b"x"))]
        request = produce(*(("a", *part) for part in both), transactional_id="t")
        assert {error for _, error, _ in outcomes(await one.wire.ask(PRODUCE, version, request))} == {mapping}
        assert sum(alive.replica("a", partition).high_watermark for partition in range(4)) == 0

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [8, 11, 12])
def test_a_transactional_id_may_come_with_records_outside_of_transactions(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        one = await transactor(alive, "t", 5)
        plain, idempotent = batch(b"x"), one.records("a", 0, b"y", attributes=0)
        for records in (plain, idempotent):
            request = produce(("a", 0, records), transactional_id="t")
            assert [error for _, error, _ in outcomes(await one.wire.ask(PRODUCE, version, request))] == [0]
        assert await one.add("a", 1) == [NONE]
        assert await one.write("a", 1, b"z", version=version) is NONE
        assert await one.write("a", 1, b"w", version=version, attributes=0) is ErrorCode.INVALID_TXN_STATE

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", [11, 12])
def test_the_first_records_of_a_transaction_come_first(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        one = await transactor(alive, "t", 5)
        order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        early = one.records("a", 0, b"x")
        if version < 12:  # of the second batch the first is known to exist once it was refused
            request = produce(("a", 0, early), transactional_id="t")
            assert outcomes(await one.wire.ask(PRODUCE, version, request))[0][1] == ErrorCode.TRANSACTION_ABORTABLE
            assert await one.add("a", 0) == [NONE]
        assert await one.write("a", 0, b"y", version=version) is order
        one.sequences.clear()
        for value in (b"x", b"y"):
            assert await one.write("a", 0, value, version=version) is NONE

    run(scenario, tmp_path)


def test_errors_that_older_versions_do_not_know_are_said_in_their_words(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        old = await transactor(alive, "t")
        new = await transactor(alive, "t")
        assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 1)
        for version in range(6):
            said = OLD_EPOCH if version < 2 else FENCED
            assert await old.add("a", 0, version=version) == [said]
            assert await old.end(True, version=version) is said
            if version < 5:
                assert await old.add_offsets("g", version=version) is said
            if version >= 3:
                assert await old.init(version, recovers=True) is (OLD_EPOCH if version < 4 else FENCED)
        for version in range(9, 13):
            assert await old.write("a", 0, b"x", version=version) is OLD_EPOCH

    run(scenario, tmp_path)


def test_partitions_are_added_all_or_none(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        one = await transactor(alive, "t")
        unknown, skipped = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
        for version in range(6):
            assert await one.add("a", 0, 9, version=version) == [skipped, unknown]
            assert await one.add("nowhere", 0, version=version) == [unknown]
        assert await one.write("a", 0, b"x") is ErrorCode.TRANSACTION_ABORTABLE

    run(scenario, tmp_path)


def test_many_transactions_are_added_to_or_verified_in_one_request(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 3)
        one, two = await transactor(alive, "t"), await transactor(alive, "u")
        assert await two.add("a", 1) == [NONE]

        def topics(*partitions: int) -> list[AddPartitionsToTxnTopic]:
            return [AddPartitionsToTxnTopic(name="a", partitions=list(partitions))]

        asked = [one.transaction(topics(0, 1)), two.transaction(topics(0, 1), verify_only=True)]
        for version in (4, 5):
            request = AddPartitionsToTxnRequest(transactions=asked)
            added = await one.wire.ask(ADD_PARTITIONS_TO_TXN, version, request)
            told = {
                result.transactional_id: [
                    (part.partition_index, part.partition_error_code)
                    for part in result.topic_results[0].results_by_partition
                ]
                for result in added.results_by_transaction
            }
            assert told == {"t": [(0, 0), (1, 0)], "u": [(0, ErrorCode.TRANSACTION_ABORTABLE), (1, 0)]}
            assert added.error_code == 0

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("timeout_ms", "error"), [(0, 50), (-1, 50), (900_001, 50), (900_000, 0), (1, 0)])
def test_a_time_out_is_within_bounds(version: int, timeout_ms: int, error: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        one = await transactor(alive, "t", version)
        assert await one.init(version, timeout_ms) == error

    run(scenario, tmp_path)


def test_the_offsets_of_a_group_belong_to_a_partition_too(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        one = await transactor(alive, "t")
        for version in range(5):
            assert await one.add_offsets("g", version=version) is NONE
        (listed,) = (alive.broker.coordinators.transactions.describe("t").partitions,)
        assert listed == (("__consumer_offsets", alive.broker.coordinators.groups.partition_of("g")),)
        assert await one.end(True) is NONE
        while alive.broker.coordinators.transactions.describe("t").state != "CompleteCommit":
            await asyncio.sleep(PAUSE_S)

    run(scenario, tmp_path)


def test_transactions_outlast_a_restart_of_their_coordinator(tmp_path: Path) -> None:
    state: list[Transactor] = []

    async def before(alive: Living) -> None:
        await alive.make("a")
        one = await transactor(alive, "t", 5)
        assert await one.write("a", 0, b"x", version=12) is NONE
        state.append(one)

    async def after(alive: Living) -> None:
        one = state[0]
        one.wire = await alive.dial()
        assert "transactions" in vars(alive.broker.coordinators), "nobody would end what has run out of time"
        assert await one.write("a", 0, b"y", version=12) is NONE
        assert await one.end(True, version=5) is NONE
        assert await committed(alive, "a") == [b"x", b"y"]

    run(before, tmp_path)
    run(after, tmp_path)


def test_a_broker_without_transactions_has_no_coordinator_for_them(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire = await alive.dial()
        assert outcomes(await wire.ask(PRODUCE, 12, produce(("a", 0, batch(b"x"))))) == [(0, 0, 0)]
        assert (await wire.ask(INIT_PRODUCER_ID, 5, InitProducerIdRequest(transactional_id=None))).error_code == 0
        assert "transactions" not in vars(alive.broker.coordinators)

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", range(4))
def test_a_client_adds_no_partitions_of_internal_topics(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        one = await transactor(alive, "t")
        topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (TRANSACTIONS_TOPIC, "a", "absent")]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=one.producer_id,
            v3_and_below_producer_epoch=one.epoch,
            v3_and_below_topics=topics,
        )
        reply = await one.wire.ask(ADD_PARTITIONS_TO_TXN, version, request)
        found = [p.partition_error_code for t in reply.results_by_topic_v3_and_below for p in t.results_by_partition]
        assert found == [
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    run(scenario, tmp_path)
