"""ElectLeaders: one broker's partitions are led by their only replica, or by nobody."""

import asyncio
import uuid
from collections.abc import Awaitable, Sequence

import pytest

from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.errors import ErrorCode
from moldau.handlers.cluster.elections import PREFERRED, UNCLEAN, ElectLeaders
from moldau.names import TopicPartition
from moldau.protocol.apis import ELECT_LEADERS
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.turns import turn
from tests.requests.calling import call

LED, OFFLINE = PartitionImage(1, 0, (1,), (1,)), PartitionImage(-1, 1, (1,), (1,))
IMAGE = Image("c", 1, {1: BrokerImage(1, (Endpoint("PLAINTEXT", "PLAINTEXT", "h", 1),))}).with_topics(
    {"a": TopicImage("a", uuid.UUID(int=1), (LED, OFFLINE), {}), "b": TopicImage("b", uuid.UUID(int=2), (LED,), {})}
)
CALL = call(ELECT_LEADERS, 2)


def elected(
    wanted: list[tuple[str, list[int]]] | None, election: int = PREFERRED, timeout_ms: int = 1000
) -> tuple[int, dict[str, list[tuple[int, ErrorCode]]]]:
    topics = None if wanted is None else [TopicPartitions(topic=name, partitions=numbers) for name, numbers in wanted]
    request = ElectLeadersRequest(election_type=election, topic_partitions=topics, timeout_ms=timeout_ms)
    steps = ElectLeaders(lambda: IMAGE)(request, CALL)
    assert not isinstance(steps, Awaitable)
    reply = turn(steps)
    results = {
        topic.topic: [(one.partition_id, ErrorCode(one.error_code)) for one in topic.partition_result]
        for topic in reply.replica_election_results
    }
    return reply.error_code, results


@pytest.mark.parametrize(
    ("election", "offline"),
    [(PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
)
def test_what_is_led_needs_no_election_and_what_is_offline_cannot_have_one(election: int, offline: ErrorCode) -> None:
    needless, unknown = ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elected([("a", [0, 1, 2]), ("c", [0])], election) == (
        0,
        {"a": [(0, needless), (1, offline), (2, unknown)], "c": [(0, unknown)]},
    )
    assert elected(None, election) == (0, {"a": [(1, offline)], "b": []})


@pytest.mark.parametrize(
    ("election", "timeout_ms", "code"),
    [(7, 1000, ErrorCode.INVALID_REQUEST), (PREFERRED, 0, ErrorCode.REQUEST_TIMED_OUT)],
)
def test_a_request_that_is_wrong_as_a_whole_elects_nobody(election: int, timeout_ms: int, code: ErrorCode) -> None:
    assert elected([("a", [0])], election, timeout_ms) == (code, {"a": [(0, code)]})


def test_the_controller_of_several_elects_and_the_rest_is_answered_as_before() -> None:
    asked: list[tuple[list[TopicPartition], bool]] = []

    async def elect(wanted: Sequence[TopicPartition], *, unclean: bool) -> set[TopicPartition]:
        asked.append((list(wanted), unclean))
        return {TopicPartition("a", 1)}

    async def scenario() -> dict[str, list[tuple[int, int]]]:
        request = ElectLeadersRequest(election_type=UNCLEAN, topic_partitions=None, timeout_ms=1000)
        steps = ElectLeaders(lambda: IMAGE, elect)(request, CALL)
        assert isinstance(steps, Awaitable)
        reply = turn(await steps)
        return {
            topic.topic: [(one.partition_id, one.error_code) for one in topic.partition_result]
            for topic in reply.replica_election_results
        }

    assert asyncio.run(scenario()) == {"a": [(1, 0)], "b": []}
    assert asked == [([TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)], True)]
