"""Throttles that Kafka's tool or ours has set for moves are told from those of an operator, and go with the moves."""

import json
import uuid
from collections.abc import Mapping

import pytest

from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.move_throttles import (
    FOLLOWERS,
    LEADERS,
    LISTS_S,
    RATES_S,
    LeftOverThrottles,
    MoveOver,
    left_over_lists,
    left_over_rates,
    moves_over,
    under_way_in,
    without_throttles_of,
)
from moldau.cluster.state.reassignment import begun
from moldau.errors import ErrorCode
from moldau.metadata_store.store import NodeOperation, Set
from moldau.names import TopicPartition

AT_REST = PartitionImage(1, 0, (1, 2), (1, 2))
RATE, MOVE_RATE = "leader.replication.throttled.rate", "follower.reassignment.throttled.rate"
THROTTLED = {"1": {RATE: "10", "log.cleaner.threads": "2"}, "3": {RATE: "10"}, "<default>": {RATE: "99"}}
CLEARED = {"1": {"log.cleaner.threads": "2"}, "3": {}}


def image(
    leaders: str = "",
    followers: str = "",
    brokers: Mapping[str, Mapping[str, str]] = THROTTLED,
    **more: Mapping[str, str],
) -> Image:
    """Topic `t` has three partitions on 1 and 2, of which the first moves to 2 and 3."""
    moving = begun(AT_REST, (2, 3), 1)
    assert moving is not None
    own = {
        "retention.ms": "1",
        **({LEADERS: leaders} if leaders else {}),
        **({FOLLOWERS: followers} if followers else {}),
    }
    topics = {name: TopicImage(name, uuid.uuid4(), (AT_REST,), one) for name, one in more.items()}
    topics["t"] = TopicImage("t", uuid.UUID(int=9), (moving, AT_REST, AT_REST), own)
    return Image("cluster", 1, broker_overrides=brokers).with_topics(topics)


def at_rest(cluster: Image) -> Image:
    topic = cluster.topics["t"]
    return cluster.with_topics({"t": topic._replace(partitions=(AT_REST,) * 3)})


def written(operations: list[NodeOperation]) -> dict[str, dict[str, str]]:
    """The settings that the operations leave, by the last part of the node's path, in their order."""
    assert all(isinstance(one, Set) for one in operations)
    return {one.path.rpartition("/")[2]: json.loads(one.data)["config"] for one in operations if isinstance(one, Set)}


def over(*numbers: int) -> list[MoveOver]:
    return [MoveOver(TopicPartition("t", number), (1, 2)) for number in numbers]


def test_what_the_tool_has_listed_goes_with_its_move_and_the_rates_with_the_last_list() -> None:
    both = image("0:1,0:2,1:1,1:2", "0:3,1:3")
    assert written(without_throttles_of(both, over(0))) == {
        "t": {"retention.ms": "1", LEADERS: "1:1,1:2", FOLLOWERS: "1:3"}
    }
    found = written(without_throttles_of(both, over(0, 1)))
    assert found == {**CLEARED, "t": {"retention.ms": "1"}}
    assert list(found) == ["1", "3", "t"], "the rates first: a crash in between must leave what the lists bring along"


def test_rates_stay_while_another_topic_lists_replicas() -> None:
    found = written(without_throttles_of(image("0:1,0:2", "0:3", u={LEADERS: "*"}), over(0)))
    assert found == {"t": {"retention.ms": "1"}}


@pytest.mark.parametrize(
    ("leaders", "followers"),
    [
        ("*", "*"),
        ("0:1,0:2", "*"),
        ("0:1", "0:3"),
        ("0:1,0:2,0:3", "0:3"),
        ("0:1,0:2", "0:2"),
        ("", "0:3"),
        ("2:1,2:2", "2:3"),
        ("0:1,0:2,x", "0:3"),
        ("0:1,0:2,9" + "9" * 30, "0:3"),
    ],
)
def test_what_an_operator_has_listed_stays(leaders: str, followers: str) -> None:
    assert without_throttles_of(image(leaders, followers), over(0)) == []


def test_a_plan_that_only_takes_replicas_away_lists_no_followers() -> None:
    assert written(without_throttles_of(image("0:1,0:2"), over(0))) == {**CLEARED, "t": {"retention.ms": "1"}}


def test_moves_that_are_cancelled_refused_or_there_at_once_are_over_and_others_are_not() -> None:
    cluster = image()
    moving, other = (TopicPartition("t", number) for number in (0, 1))
    again = begun(AT_REST, (2, 4), 1)
    assert again is not None
    refused = Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    decided = [(moving, AT_REST), (other, AT_REST), (other, refused)]
    assert [one.tp.partition for one in moves_over(cluster, decided)] == [0, 1, 1]
    assert moves_over(cluster, decided)[0].originals == (2, 1)
    assert moves_over(cluster, [(moving, again), (moving, refused), (other, again)]) == []
    assert moves_over(cluster, [(TopicPartition("none", 0), refused)]) == []
    assert list(under_way_in(cluster.topics.values())) == [MoveOver(moving, (2, 1))]


def test_rates_of_moves_are_left_over_when_none_is_under_way_and_those_for_all_brokers_stay() -> None:
    rates = {"2": {MOVE_RATE: "10", RATE: "5"}, "<default>": {MOVE_RATE: "99"}}
    assert left_over_rates(image(brokers=rates)) == []
    assert written(left_over_rates(at_rest(image(brokers=rates)))) == {"2": {RATE: "5"}}
    assert left_over_rates(at_rest(image(brokers={"<default>": {MOVE_RATE: "99"}}))) == []


def test_lists_of_a_tool_that_died_before_it_began_are_left_over() -> None:
    died = image("0:1,0:2,1:1,1:2,9:1", "0:3,1:2,9:2")
    assert left_over_lists(died) == []
    assert written(left_over_lists(at_rest(died))) == {"t": {"retention.ms": "1", LEADERS: "1:1,1:2", FOLLOWERS: "1:2"}}
    assert left_over_lists(at_rest(image("0:1,0:2", "0:3", {}))) == [], "without a rate they do nothing"
    alone = at_rest(image("0:1,0:2", "0:3", u={"retention.ms": "1"}))
    assert written(left_over_lists(alone)) == {**CLEARED, "t": {"retention.ms": "1"}}


def test_what_is_left_over_waits_for_a_move_that_may_begin_soon() -> None:
    left, rates = LeftOverThrottles(), at_rest(image(brokers={"2": {MOVE_RATE: "10"}}))
    assert left.look(rates, 100.0) == [] and left.due_in_s(110.0) == RATES_S - 10
    assert left.look(rates, 99.0 + RATES_S) == []
    assert written(left.look(rates, 100.0 + RATES_S)) == {"2": {}}
    moving = image(brokers={"2": {MOVE_RATE: "10"}})
    assert left.look(moving, 200.0) == [] and left.due_in_s(0) > LISTS_S
    assert left.look(rates, 201.0) == left.look(rates, 200.0 + RATES_S) == []
    higher = at_rest(image(brokers={"2": {MOVE_RATE: "20"}}))
    assert left.look(higher, 205.0 + RATES_S) == [], "somebody has just set it"
    assert left.look(higher, 205.0 + 2 * RATES_S) != []


def test_both_kinds_that_are_left_over_on_one_broker_go_one_after_the_other() -> None:
    left = LeftOverThrottles()
    cluster = at_rest(image("0:1,0:2", "0:3", {"1": {RATE: "1", MOVE_RATE: "2"}}))
    assert left.look(cluster, 0.0) == []
    assert written(left.look(cluster, LISTS_S)) == {"1": {RATE: "1"}}
    after = at_rest(image("0:1,0:2", "0:3", {"1": {RATE: "1"}}))
    assert left.look(after, LISTS_S) == [], "the image has changed"
    assert written(left.look(after, 2 * LISTS_S)) == {"1": {}, "t": {"retention.ms": "1"}}
