"""`broker.fault`: errors, delays and broken connections where a test wants them, and nowhere else."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from harness.patience import within
from moldau import Admin, Producer, TopicPartition
from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.apis import (
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    Api,
)
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.testing import Broker
from tests.handlers.living import Wire, batch, outcomes, produce

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
LATEST = -1


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as one:
        for topic in ("t", "u"):
            one.create_topic(topic)
        yield one


@pytest.fixture
def broker(running: Broker) -> Iterator[Broker]:
    yield running
    running.clear_faults()


def ask(broker: Broker, *asked: tuple[Api, int, Any]) -> list[Any]:
    """The replies to these requests on one connection; None where the connection was closed instead."""

    async def scenario() -> list[Any]:
        wire, found = Wire(*await asyncio.open_connection("127.0.0.1", broker.port)), []
        for api, version, request in asked:
            try:
                found.append(await within(wire.ask(api, version, request)))
            except asyncio.IncompleteReadError:
                found.append(None)
                break
        wire.writer.close()
        return found

    return asyncio.run(scenario())


def end(broker: Broker, topic: str) -> int:
    with Admin(broker.address) as admin:
        return admin.offsets({TopicPartition(topic, 0): LATEST})[TopicPartition(topic, 0)]


def codes(reply: Any) -> list[int]:
    return [outcome[1] for outcome in outcomes(reply)]


def fetch(*topics: str, session_id: int = 0, session_epoch: int = -1, max_wait_ms: int = 0) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            FetchTopic(topic=name, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
            for name in topics
        ],
    )


def fetched(reply: Any) -> dict[str, int]:
    return {topic.topic: part.error_code for topic in reply.responses for part in topic.partitions}


def test_the_next_requests_are_answered_with_the_error_and_take_no_effect(broker: Broker) -> None:
    before = end(broker, "t")
    fault = broker.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    sent = (PRODUCE, 9, produce(("t", 0, batch(b"x"))))
    assert [codes(reply) for reply in ask(broker, sent, sent, sent)] == [[NOT_LEADER], [NOT_LEADER], [0]]
    assert fault.hits == 2
    assert end(broker, "t") == before + 1


def test_a_fault_ends_with_its_block(broker: Broker) -> None:
    sent = (PRODUCE, 9, produce(("t", 0, batch(b"x"))))
    with broker.fault("Produce", error=int(NOT_LEADER)) as fault:
        assert codes(ask(broker, sent)[0]) == [NOT_LEADER]
        assert repr(fault) == "<Fault Produce, NOT_LEADER_OR_FOLLOWER; 1 hits>"
    assert codes(ask(broker, sent)[0]) == [0]


def test_the_newest_fault_counts_and_all_can_be_cleared(broker: Broker) -> None:
    broker.fault("Produce", error="NOT_LEADER_OR_FOLLOWER")
    broker.fault("Produce", error="REQUEST_TIMED_OUT", times=1)
    sent = (PRODUCE, 9, produce(("t", 0, batch(b"x"))))
    assert [codes(r) for r in ask(broker, sent, sent)] == [[ErrorCode.REQUEST_TIMED_OUT], [NOT_LEADER]]
    broker.clear_faults()
    assert codes(ask(broker, sent)[0]) == [0]


@pytest.mark.parametrize("version", [9, 13])
def test_a_produce_fails_for_the_topic_of_the_fault_only(broker: Broker, version: int) -> None:
    before = end(broker, "t"), end(broker, "u")
    names: list[str | bytes] = ["t", "u"]
    if version == 13:
        about = MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="u")])
        names = [topic.topic_id.bytes for topic in ask(broker, (METADATA, 12, about))[0].topics]
    broker.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="t")
    sent = produce((names[0], 0, batch(b"x")), (names[1], 0, batch(b"y")))
    assert codes(ask(broker, (PRODUCE, version, sent))[0]) == [NOT_LEADER, 0]
    assert (end(broker, "t"), end(broker, "u")) == (before[0], before[1] + 1)


def test_a_produce_with_another_refusal_has_both(broker: Broker) -> None:
    """A batch that is refused with a sentence makes the answer a message, to which the fault's topic is added."""
    broker.create_topic("compacted", cleanup_policy="compact")
    broker.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="t")
    sent = produce(("compacted", 0, batch(b"no key")), ("t", 0, batch(b"x")))
    reply = ask(broker, (PRODUCE, 9, sent))[0]
    found = {topic.name: part.error_code for topic in reply.responses for part in topic.partition_responses}
    assert found == {"compacted": ErrorCode.INVALID_RECORD, "t": NOT_LEADER}


def test_a_fetch_fails_for_the_topic_of_the_fault_only_and_does_not_wait(broker: Broker) -> None:
    broker.fault("Fetch", error="OFFSET_OUT_OF_RANGE", topic="u")
    reply = ask(broker, (FETCH, 12, fetch("t", "u", max_wait_ms=600_000)))[0]
    assert fetched(reply) == {"t": 0, "u": ErrorCode.OFFSET_OUT_OF_RANGE}
    assert reply.error_code == 0


def test_a_fetch_in_a_session_names_its_partitions_again_and_then_fails(broker: Broker) -> None:
    """A request of a session names only what has changed, so the error would have no place in its reply."""

    async def scenario() -> tuple[int, dict[str, int]]:
        wire = Wire(*await asyncio.open_connection("127.0.0.1", broker.port))
        begun = await wire.ask(FETCH, 12, fetch("t", session_epoch=0))
        fault = broker.fault("Fetch", error="OFFSET_OUT_OF_RANGE", times=1)
        goes_on = await wire.ask(FETCH, 12, fetch(session_id=begun.session_id, session_epoch=1))
        assert not fault.hits
        again = await wire.ask(FETCH, 12, fetch("t", session_epoch=0))
        wire.writer.close()
        return goes_on.error_code, fetched(again)

    expected = ErrorCode.FETCH_SESSION_ID_NOT_FOUND, {"t": ErrorCode.OFFSET_OUT_OF_RANGE}
    assert asyncio.run(scenario()) == expected


def test_an_error_of_sessions_is_that_of_the_whole_fetch(broker: Broker) -> None:
    broker.fault("Fetch", error="INVALID_FETCH_SESSION_EPOCH", times=1)
    assert ask(broker, (FETCH, 12, fetch("t")))[0].error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize(
    ("api", "version", "request_", "found"),
    [
        (METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name="t")]), lambda r: r.topics[0].error_code),
        (FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]), lambda r: r.coordinators[0].error_code),
        (
            LIST_OFFSETS,
            7,
            ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=-1)])]),
            lambda r: r.topics[0].partitions[0].error_code,
        ),
    ],
)
def test_every_api_has_the_error_in_its_place(
    broker: Broker, api: Api, version: int, request_: Any, found: Any
) -> None:
    assert found(ask(broker, (api, version, request_))[0]) == 0
    broker.fault(api.name, error="COORDINATOR_NOT_AVAILABLE")
    assert found(ask(broker, (api, version, request_))[0]) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_request_that_does_not_name_the_topic_is_answered(broker: Broker) -> None:
    broker.fault("Metadata", error="UNKNOWN_TOPIC_OR_PARTITION", topic="t")
    asked = [(METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name=name)])) for name in ("u", "t")]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [reply.topics[0].error_code for reply in ask(broker, *asked)] == [0, unknown]


@pytest.mark.parametrize(("drop", "appended"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("acks", [1, -1, 0])
def test_a_connection_breaks_before_or_after_the_request_takes_effect(
    broker: Broker, drop: str, appended: int, acks: int
) -> None:
    before = end(broker, "t")
    broker.fault("Produce", drop=drop, times=1)
    sent = produce(("t", 0, batch(b"x")), acks=acks)
    after = (METADATA, 12, MetadataRequest(topics=[]))
    assert ask(broker, (PRODUCE, 9, sent), after)[-1] is None
    assert end(broker, "t") == before + appended


def test_a_parked_fetch_is_dropped_when_it_would_be_answered(broker: Broker) -> None:
    broker.create_topic("empty")
    with broker.fault("Fetch", drop="after") as fault:
        assert ask(broker, (FETCH, 12, fetch("empty", max_wait_ms=10))) == [None]
        assert fault.hits == 1


def test_a_delayed_request_is_answered_by_the_brokers_clock(broker: Broker) -> None:
    """The records are read from the frame before it is used for the next request."""
    before = end(broker, "t")

    async def scenario() -> list[int]:
        fault = broker.fault("Produce", delay_ms=3_600_000, times=1)
        wire = Wire(*await asyncio.open_connection("127.0.0.1", broker.port))
        asking = asyncio.ensure_future(wire.ask(PRODUCE, 9, produce(("t", 0, batch(b"late")))))
        while not fault.hits:
            await asyncio.sleep(0.001)
        assert not asking.done()
        assert await asyncio.to_thread(end, broker, "t") == before
        await asyncio.to_thread(broker.clock.advance, hours=1)
        reply = await within(asking)
        wire.writer.close()
        return codes(reply)

    assert asyncio.run(scenario()) == [0]
    assert end(broker, "t") == before + 1


def test_a_delayed_request_can_fail_too(broker: Broker) -> None:
    broker.fault("Produce", delay_ms=1, error="NOT_LEADER_OR_FOLLOWER", times=1)
    assert codes(ask(broker, (PRODUCE, 9, produce(("t", 0, batch(b"x")))))[0]) == [NOT_LEADER]
    broker.fault("Produce", delay_ms=1, drop="after", times=1)
    assert ask(broker, (PRODUCE, 9, produce(("t", 0, batch(b"x"))))) == [None]


def test_our_producer_survives_what_a_broker_may_do(broker: Broker) -> None:
    """Each record is there once, and in order, although its request was refused, cut off, or answered to nobody."""
    topic = broker.create_topic("survived")
    with Producer(broker.address) as producer:
        for number, fault in enumerate(({"error": "NOT_LEADER_OR_FOLLOWER"}, {"drop": "before"}, {"drop": "after"})):
            broker.fault("Produce", times=1, **fault)
            producer.send(topic, b"%d" % number).result()
    assert end(broker, topic) == 3


def test_our_producer_fails_with_an_error_that_is_not_retriable(broker: Broker) -> None:
    broker.fault("Produce", error="TOPIC_AUTHORIZATION_FAILED", times=1)
    with Producer(broker.address) as producer, pytest.raises(KafkaError) as refused:
        producer.send("t", b"x").result()
    assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("api", "options", "sentence"),
    [
        ("produce", {"delay_ms": 1}, "there is no API 'produce'; did you mean Produce"),
        ("Produce", {"error": "NOT_LEADER"}, "did you mean NOT_LEADER_OR_FOLLOWER"),
        ("Produce", {}, "needs an error, a delay_ms or a drop"),
        ("Produce", {"drop": "during"}, "not 'during'"),
        ("Produce", {"drop": "after", "error": 6}, "not both"),
        ("Produce", {"delay_ms": -1}, "not negative"),
        ("Produce", {"error": 4711}, "there is no error 4711"),
        ("Produce", {"drop": "after", "times": 0}, "at least 1"),
    ],
)
def test_a_fault_that_cannot_be_is_refused_in_one_sentence(
    broker: Broker, api: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        broker.fault(api, **options)
