"""Heartbeats that are decided outside of the event loop are decided as the group itself does."""

import random
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from moldau.cluster.state.image import Image
from moldau.coordinators.consumer.groups import ConsumerGroups
from moldau.coordinators.consumer.large_heartbeats import LARGE
from moldau.coordinators.consumer.messages import ConsumerHeartbeatReply
from moldau.coordinators.consumer.records import read_consumer_group_record
from moldau.coordinators.decision import Decision, InternalRecord, Now, Ticket
from moldau.errors import ErrorCode
from moldau.protocol.primitives import read_int16
from tests.coordinators.consumer.scene import beat_of, consumer_settings, matching, with_topic

TICKET = Ticket(1)


class Group:
    """The groups of a shard, with an image that changes."""

    def __init__(self) -> None:
        self.image = Image("")
        ids = count()
        settings = consumer_settings({"max_size": 4})
        self.groups = ConsumerGroups(settings, lambda: f"id-{next(ids)}", lambda: self.image, matching, pytest.fail)
        list(self.groups.start(Now(0, 0), Decision()))

    def topic(self, name: str, partitions: int) -> None:
        self.image = with_topic(self.image, name, partitions)

    def beat(self, name: str, pairs: dict[str, str], now: Now) -> Decision:
        return self.groups.beat(beat_of(name, pairs), TICKET, now)

    def beat_elsewhere(self, name: str, pairs: dict[str, str], now: Now) -> Decision:
        large = self.groups.large(beat_of(name, pairs), now)
        large.decide()
        assert self.groups.fits("g", large)
        return self.groups.take_over(large, TICKET, now)


def apply(group: Group, records: list[InternalRecord], now: Now) -> None:
    for record in records:
        number, at = read_int16(record.key, 0)
        read = read_consumer_group_record(number, record, at)
        assert read is not None
        group.groups.apply(read, now)


def script(chance: random.Random, replies: dict[str, ConsumerHeartbeatReply]) -> Iterator[tuple[str, dict[str, str]]]:
    """Heartbeats of members that join, stay at the epoch they were told, and are wrong at times."""
    for _ in range(300):
        name = f"m{chance.randrange(6)}"
        told = replies.get(name)
        pairs = {"epoch": "0" if told is None or chance.random() < 0.1 else str(told.epoch)}
        if chance.random() < 0.4:
            pairs["topics"] = "+".join(chance.sample("tuvw", 2))
        elif chance.random() < 0.4:
            pairs["expression"] = chance.choice(["[tu].*", "v", ".*", "("])
        if pairs["epoch"] != "0" and chance.random() < 0.5:
            pairs["owns"] = "-"
        if chance.random() < 0.3:
            pairs["hidden"] = chance.choice("tuvw")
        if chance.random() < 0.2:
            pairs["instance"] = f"i{name}"
        yield name, pairs


@pytest.mark.parametrize("seed", range(20))
def test_what_is_decided_elsewhere_is_what_the_group_itself_decides(seed: int) -> None:
    chance = random.Random(seed)
    here, elsewhere = Group(), Group()
    replies: dict[str, ConsumerHeartbeatReply] = {}
    waiting: list[tuple[Decision, Decision]] = []
    refused = written = 0
    for at, (name, pairs) in enumerate(script(chance, replies)):
        now = Now(at * 10, at * 10)
        if chance.random() < 0.1:
            topic, partitions = chance.choice("tuvw"), chance.randrange(4)
            here.topic(topic, partitions)
            elsewhere.topic(topic, partitions)
            elsewhere.image = here.image
        one, other = here.beat(name, pairs, now), elsewhere.beat_elsewhere(name, pairs, now)
        assert [tuple(record) for record in other.records] == [tuple(record) for record in one.records]
        assert other.replies == one.replies
        assert elsewhere.groups.live == here.groups.live
        assert elsewhere.groups.deadlines.next_ms() == here.groups.deadlines.next_ms()
        waiting.append((one, other))
        written += len(one.records)
        for _, reply in one.replies:
            refused += reply.error is not ErrorCode.NONE
            replies[name] = reply
        if chance.random() < 0.3:
            for first, second in waiting:
                apply(here, first.records, now)
                apply(elsewhere, second.records, now)
            waiting.clear()
            assert elsewhere.groups.stored == here.groups.stored
    assert written > 100
    assert refused > 10


def test_a_decision_is_not_taken_over_once_its_group_or_the_topics_have_changed() -> None:
    group, now = Group(), Now(0, 0)
    group.topic("t", 2)
    joins = {"epoch": "0"}
    first = group.groups.large(beat_of("a", joins), now)
    first.decide()
    assert group.groups.fits("g", first)
    assert group.groups.live == {}
    apply(group, group.beat("b", joins, now).records, now)
    assert not group.groups.fits("g", first)  # somebody else has made the group

    second = group.groups.large(beat_of("a", joins), now)
    second.decide()
    (told,) = (reply for _, reply in group.beat("b", {"epoch": "2"}, now).replies)
    assert told.error is ErrorCode.NONE
    assert group.groups.fits("g", second)  # a heartbeat that changes nothing
    group.topic("u", 1)
    assert not group.groups.fits("g", second)

    third = group.groups.large(beat_of("a", joins), now)
    third.decide()
    group.beat("c", joins, now)
    assert not group.groups.fits("g", third)
    assert set(group.groups.live["g"].members) == {"b", "c"}


def test_a_record_that_was_decided_here_is_read_as_its_bytes_are() -> None:
    group, now = Group(), Now(0, 0)
    group.topic("t", 2)
    out = group.beat("a", {"epoch": "0", "expression": "t"}, now)
    assert len(out.records) > 4
    for record in out.records:
        number, at = read_int16(record.key, 0)
        plain = InternalRecord(record.key, record.value)
        assert read_consumer_group_record(number, record, at) == read_consumer_group_record(number, plain, at)


@pytest.mark.parametrize(
    ("pairs", "is_large"),
    [
        ({"epoch": "0", "topics": "+".join(f"t{number}" for number in range(LARGE))}, True),
        ({"epoch": "0", "topics": "+".join(f"t{number}" for number in range(LARGE - 1))}, False),
        ({"epoch": "0", "expression": "t.*"}, True),
        ({"epoch": "0", "expression": "u.*"}, False),
        ({"epoch": "0", "expression": "("}, False),
        ({"epoch": "-1", "topics": "+".join(f"t{number}" for number in range(LARGE))}, False),
    ],
)
def test_a_heartbeat_about_many_topics_is_large(pairs: dict[str, str], is_large: bool) -> None:
    group = Group()
    for number in range(LARGE):
        group.topic(f"t{number}", 1)
    assert group.groups.is_large(beat_of("a", pairs)) is is_large


def test_a_member_that_has_everything_sends_small_heartbeats_in_a_large_group() -> None:
    group, now = Group(), Now(0, 0)
    for number in range(LARGE):
        group.topic(f"t{number}", 1)
    reply: Any = group.beat("a", {"epoch": "0", "expression": "t.*"}, now).replies[0][1]
    assert not group.groups.is_large(beat_of("a", {"epoch": str(reply.epoch)}))
    assert group.groups.is_large(beat_of("a", {"epoch": str(reply.epoch), "expression": "t1"}))
    assert group.groups.is_large(beat_of("b", {"epoch": "0", "topics": "t1"}))
    group.topic("new", 1)
    assert group.groups.is_large(beat_of("a", {"epoch": str(reply.epoch)}))
