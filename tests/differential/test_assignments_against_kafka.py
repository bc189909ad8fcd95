"""Members joined and left at a real Kafka, one after the other; what its assignors gave them is what ours would.

After every change our assignor is given what Kafka's last target was. Where Kafka's hash maps decide who of equals gets
a partition, the loads are the same and no more partitions move. Kafka's targets are recorded.
"""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import apache_kafka
from harness.apache_kafka import FOR_KAFKA
from moldau.coordinators.consumer.server_assignors import ASSIGNORS, Given, MemberSpec
from moldau.protocol.apis import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    CREATE_TOPICS,
    FIND_COORDINATOR,
    METADATA,
    Api,
)
from tests import refereed
from tests.differential.brokers import SETTINGS
from tests.differential.playing import Player
from tests.differential.script import Step, Tree, step
from tests.differential.steps.consumer_groups import assigned

pytestmark = pytest.mark.timeout(300)

AT_ONCE = {"group.consumer.min.assignment.interval.ms": "0", "group.consumer.assignment.interval.ms": "0"}
TOPICS = {"t": 6, "u": 6, "v": 5, "w": 4, "x": 1}
IDS = {name: uuid.UUID(int=number) for number, name in enumerate(TOPICS, 1)}
COUNTS = {IDS[name]: count for name, count in TOPICS.items()}


class Kafka:
    """A Kafka that has the topics."""

    def __init__(self, player: Player, runner: asyncio.Runner):
        self._player, self._runner = player, runner
        wanted = [{"name": name, "num_partitions": count, "replication_factor": 1} for name, count in TOPICS.items()]
        self.ask(CREATE_TOPICS, 5, {"topics": wanted})
        find = {"key_type": 0, "coordinator_keys": ["g"]}
        self._play(
            step("find", FIND_COORDINATOR, 4, find, until=lambda reply: not reply["coordinators"][0]["error_code"])
        )
        named = {"topics": [{"name": name} for name in TOPICS]}
        ready = step(
            "topics", METADATA, 12, named, until=lambda reply: not any(t["error_code"] for t in reply["topics"])
        )
        self._names = {topic["topic_id"]: topic["name"] for topic in self._play(ready)["topics"]}
        self._wait_for_the_coordinator()

    def _wait_for_the_coordinator(self) -> None:
        """It hears of topics later than everybody else: somebody reads all of them until all are given."""
        joining = {
            "group_id": "first of all",
            "member_id": "reader",
            "member_epoch": 0,
            "rebalance_timeout_ms": 300_000,
            "subscribed_topic_names": list(TOPICS),
            "topic_partitions": [],
        }
        given = assigned(sum(TOPICS.values()))
        self._play(step("read all topics", CONSUMER_GROUP_HEARTBEAT, 1, joining, until=given))
        self.beat("first of all", "reader", -1)

    def ask(self, api: Api, version: int, fields: dict[str, object]) -> Tree:
        return self._play(step("ask", api, version, fields))

    def _play(self, one: Step) -> Tree:
        outcome = self._runner.run(self._player.play_one(one))
        assert outcome.kind == "reply", outcome
        return outcome.tree

    def beat(self, group: str, member: str, epoch: int, **more: object) -> None:
        fields = {"group_id": group, "member_id": member, "member_epoch": epoch, **more}
        assert self.ask(CONSUMER_GROUP_HEARTBEAT, 1, fields)["error_code"] == 0

    def members(self, group: str) -> Tree:
        return self.ask(CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [group]})["groups"][0]["members"]

    def target(self, group: str) -> dict[str, dict[str, list[int]]]:
        """The partitions of each member, by the names of topics."""
        return {
            member["member_id"]: {
                self._names[topic["topic_id"]]: sorted(topic["partitions"])
                for topic in member["target_assignment"]["topic_partitions"]
            }
            for member in self.members(group)
        }


class Played:
    """A group at a Kafka: its targets after each event as recorded, or Kafka is asked."""

    def __init__(self, known: refereed.Answers, stack: ExitStack):
        self._known, self._stack = known, stack
        self._kafka: Kafka | None = None

    def target(self, group: str, assignor: str, events: list[str]) -> Given:
        """After these events, of which all but the last are played already."""
        question = f"{assignor}: {events}"
        said = self._known.to(question, lambda: self._ask(group, assignor, events[-1]), alike=lambda *_: True)
        return {member: {IDS[name]: own[name] for name in own} for member, own in said.items()}

    def _ask(self, group: str, assignor: str, event: str) -> dict[str, dict[str, list[int]]]:
        if self._kafka is None:
            broker = self._stack.enter_context(apache_kafka.running({**SETTINGS, **FOR_KAFKA, **AT_ONCE}))
            runner, player = self._stack.enter_context(asyncio.Runner()), Player(broker)
            self._stack.callback(lambda: runner.run(player.close()))
            self._kafka = Kafka(player, runner)
        kafka = self._kafka
        who, *topics = event.split()
        if who.startswith("-"):
            kafka.beat(group, who[1:], -1)
            first = kafka.members(group)[0]
            kafka.beat(group, first["member_id"], first["member_epoch"])
        else:
            who, _, instance = who.partition("/")
            kafka.beat(
                group,
                who,
                0,
                instance_id=instance or None,
                rebalance_timeout_ms=300_000,
                subscribed_topic_names=topics,
                topic_partitions=[],
                server_assignor=assignor,
            )
        return kafka.target(group)


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    path = Path(__file__).parent / "recordings" / "assignments.jsonl.xz"
    with ExitStack() as stack, refereed.answers(path) as known:
        yield Played(known, stack)


def loads(given: Given) -> list[int]:
    return sorted(sum(map(len, own.values())) for own in given.values())


def stayed(given: Given, members: dict[str, MemberSpec]) -> int:
    """How many partitions are where they were."""
    return sum(
        len(members[member].assigned.get(topic, frozenset()) & set(partitions))
        for member, own in given.items()
        for topic, partitions in own.items()
    )


@pytest.mark.parametrize(
    ("assignor", "events"),
    [
        ("range", ["b t", "a t", "c t", "d/z t", "-b", "e t u", "f u", "-a"]),
        ("range", ["a t u v", "b t u v", "c t u v", "d t u", "e/i x t", "-b"]),
        ("uniform", ["a t", "b t", "c t", "d t", "-b", "-a", "e t", "-e"]),
        ("uniform", ["a t w", "b t w", "c t w", "d t w", "e t w", "-c", "-b"]),
        ("uniform", ["a t u", "b t", "c u", "d t u w", "-a", "-b"]),
        ("uniform", ["a t", "b t u", "c u v", "d v w", "e w", "-c"]),
        ("uniform", ["a t u v w", "b x", "c t", "d t u", "-d"]),
    ],
)
def test_kafka_assigns_the_same(played: Played, assignor: str, events: list[str]) -> None:
    """`member topics` joins, `member/instance topics` with an instance id, `-member` leaves."""
    group, members = f"g-{uuid.uuid4().hex}", dict[str, MemberSpec]()
    for number, event in enumerate(events, 1):
        who, *topics = event.split()
        if who.startswith("-"):
            del members[who[1:]]
        else:
            who, _, instance = who.partition("/")
            members[who] = MemberSpec(frozenset(IDS[name] for name in topics), instance or None, None, {})
        theirs, ours = played.target(group, assignor, events[:number]), ASSIGNORS[assignor](members, COUNTS)
        if assignor == "range":
            assert ours == theirs, event
        assert loads(ours) == loads(theirs), event
        assert stayed(ours, members) >= stayed(theirs, members), event
        members = {
            member: spec._replace(assigned={t: frozenset(partitions) for t, partitions in theirs[member].items()})
            for member, spec in members.items()
        }
