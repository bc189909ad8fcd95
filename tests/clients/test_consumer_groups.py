"""Consumer groups (KIP-848) with real clients: members that come, go, and are killed.

Members tell when they were given partitions and when they began to give them back. One partition has two owners if the
next was given it before the last began to give it back, or was killed.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from harness.brokers import Broker, ForeignBroker
from tests import versions
from tests.clients.client import DRIVERS, Client, Event
from tests.clients.scenarios import numbered, soon
from tests.clients.test_java_client import QUICK_START
from tests.environments import java_class, kafka_jars, python_with

pytestmark = pytest.mark.check

FAST = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
CONFLUENT, JAVA = "confluent", "java"
PARTITIONS = 6
SECONDS = 40

Start = Callable[..., "Member"]


class Member:
    """A client in a group, and all that it went through so far."""

    def __init__(self, client: Client):
        self.client = client
        self.history: list[Event] = []
        self.ended_ms: int | None = None

    def look(self) -> list[Event]:
        if self.ended_ms is None:
            self.history += self.client.events()
        return self.history

    @property
    def owned(self) -> set[str]:
        owned: set[str] = set()
        for event in self.look():
            owned = owned | set(event.names) if event.what == "assigned" else owned
            owned = owned - set(event.names) if event.what in ("revoked", "lost") else owned
        return set() if self.ended_ms else owned

    @property
    def took(self) -> set[str]:
        return {event.names[0] for event in self.look() if event.what == "took"}

    def leave(self) -> None:
        self.client.leave()
        self.look()
        self.ended_ms = _now_ms()

    def kill(self) -> None:
        """What it went through in its last moments it cannot tell any more."""
        self.look()
        self.client.kill()
        self.ended_ms = _now_ms()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def assert_one_owner_each(members: list[Member]) -> None:
    """Of any two members that owned a partition, one had begun to give it back before the other was given it."""
    turns: dict[str, list[tuple[int, int]]] = {}
    for member in members:
        since: dict[str, int] = {}
        for event in member.look():
            for name in event.names if event.what == "assigned" else ():
                since[name] = event.at_ms
            for name in event.names if event.what in ("revoked", "lost") else ():
                turns.setdefault(name, []).append((since.pop(name), event.at_ms))
        for name, at_ms in since.items():
            turns.setdefault(name, []).append((at_ms, member.ended_ms or _now_ms()))
    assert turns
    for name, spans in turns.items():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(spans)), (name, spans)


def names(topic: str, count: int = PARTITIONS) -> set[str]:
    return {f"{topic}-{number}" for number in range(count)}


def shared(members: list[Member], wanted: set[str], evenly: bool = True) -> Callable[[], bool]:
    """Whether these members have these partitions, each one of them."""

    def holds() -> bool:
        time.sleep(0.02)
        owned = [member.owned for member in members]
        loads = [len(own) for own in owned]
        even = not evenly or max(loads) - min(loads) <= 1
        return set().union(*owned) == wanted and sum(loads) == len(wanted) and even

    return holds


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker | ForeignBroker]:
    if address := os.environ.get("MOLDAU_TEST_BROKER"):
        yield ForeignBroker(address)
        return
    ours = Broker(tmp_path_factory.mktemp("broker"), FAST)
    ours.start()
    yield ours
    ours.stop()


@pytest.fixture
def start(broker: Broker | ForeignBroker, tmp_path: Path) -> Iterator[Start]:
    """Start a client of a kind; it speaks the consumer protocol unless told otherwise."""
    commands: Mapping[str, Callable[[], list[str | Path]]] = {
        CONFLUENT: lambda: [python_with(versions.CONFLUENT), DRIVERS / "confluent.py"],
        JAVA: lambda: [
            "java",
            *QUICK_START,
            "-cp",
            java_class(DRIVERS / "Driver.java", kafka_jars(versions.KAFKA)),
            "Driver",
        ],
    }
    clients: list[Client] = []

    def start(kind: str, protocol: str = "consumer") -> Member:
        clients.append(Client(commands[kind](), broker.address, tmp_path, group_protocol=protocol))
        return Member(clients[-1])

    yield start
    for client in clients:
        client.close()


KINDS = pytest.mark.parametrize(
    "kinds",
    [
        pytest.param((CONFLUENT, CONFLUENT, CONFLUENT), id="confluent", marks=pytest.mark.long),
        pytest.param((JAVA, JAVA, JAVA), id="java", marks=pytest.mark.long),
        pytest.param((JAVA, CONFLUENT, CONFLUENT), id="mixed"),
    ],
)


@KINDS
def test_members_that_come_and_go_share_the_partitions(
    start: Start, kinds: tuple[str, ...], topic: str, group: str
) -> None:
    members = [start(kind) for kind in kinds]
    admin = members[0].client
    admin.create_topic(topic, PARTITIONS)
    sent = numbered(0, 60)
    admin.produce(topic, sent)
    for count, member in enumerate(members, 1):
        member.client.join(group, topic)
        assert soon(shared(members[:count], names(topic)), SECONDS)
    assert admin.members(group) == len(members)
    members[0].leave()
    assert soon(shared(members[1:], names(topic)), SECONDS)
    more = numbered(60, 60)
    admin.produce(topic, more)
    members[1].leave()
    assert soon(shared(members[2:], names(topic)), SECONDS)
    everything = {message.value for message in sent + more}
    assert soon(lambda: set().union(*(member.took for member in members)) == everything, SECONDS)
    assert_one_owner_each(members)


@KINDS
def test_the_others_take_over_from_a_member_that_is_killed(
    start: Start, kinds: tuple[str, ...], topic: str, group: str
) -> None:
    members = [start(kind) for kind in kinds]
    admin = members[0].client
    admin.create_topic(topic, PARTITIONS)
    for member in members:
        member.client.join(group, topic)
    assert soon(shared(members, names(topic)), SECONDS)
    members[-1].kill()
    sent = numbered(0, 60)
    admin.produce(topic, sent)
    assert soon(shared(members[:-1], names(topic)), SECONDS)
    everything = {message.value for message in sent}
    assert soon(lambda: set().union(*(member.took for member in members)) == everything, SECONDS)
    assert_one_owner_each(members)


@pytest.mark.parametrize("kind", [pytest.param(CONFLUENT, marks=pytest.mark.long), JAVA])
def test_an_expression_takes_in_topics_that_come_later(start: Start, kind: str, topic: str, group: str) -> None:
    member, other = start(kind), start(kind)
    member.client.create_topic(f"{topic}-a", 2)
    member.client.join(group, f"^{topic}-.*")
    assert soon(shared([member], names(f"{topic}-a", 2)), SECONDS)
    member.client.create_topic(f"{topic}-b", 3)
    member.client.create_topic(f"x{topic}-b", 3)
    wanted = names(f"{topic}-a", 2) | names(f"{topic}-b", 3)
    assert soon(shared([member], wanted), SECONDS)
    other.client.join(group, f"^{topic}-.*")
    assert soon(shared([member, other], wanted), SECONDS)
    assert_one_owner_each([member, other])


@pytest.mark.parametrize("kind", [CONFLUENT, pytest.param(JAVA, marks=pytest.mark.long)])
def test_members_that_come_back_go_on_where_the_group_was(start: Start, kind: str, topic: str, group: str) -> None:
    first, second = start(kind), start(kind)
    first.client.create_topic(topic, PARTITIONS)
    before, after = numbered(0, 60), numbered(60, 60)
    first.client.produce(topic, before)
    first.client.join(group, topic)
    assert soon(lambda: first.took == {message.value for message in before}, SECONDS)
    first.leave()
    second.client.produce(topic, after)
    second.client.join(group, topic)
    assert soon(lambda: second.took == {message.value for message in after}, SECONDS)
    second.leave()
    assert_one_owner_each([first, second])


@pytest.mark.parametrize("kind", [pytest.param(CONFLUENT, marks=pytest.mark.long), JAVA])
def test_a_group_goes_on_to_the_newer_protocol_and_back_while_its_members_read(
    start: Start, kind: str, topic: str, group: str
) -> None:
    """Classic members, then newer ones beside them, then only newer ones; and the same way back."""
    classic = [start(kind, "classic"), start(CONFLUENT, "classic")]
    newer = [start(kind), start(CONFLUENT)]
    returning = [start(kind, "classic"), start(CONFLUENT, "classic")]
    admin = newer[0].client
    admin.create_topic(topic, PARTITIONS)
    sent = numbered(0, 60)
    admin.produce(topic, sent)
    running: list[Member] = []
    for member in (*classic, *newer):
        member.client.join(group, topic)
        running.append(member)
        assert soon(shared(running, names(topic)), SECONDS)
    for member in classic:
        sent += (more := numbered(len(sent), 30))
        admin.produce(topic, more)
        member.leave()
        running.remove(member)
        assert soon(shared(running, names(topic)), SECONDS)
    for member in returning:
        member.client.join(group, topic)
        running.append(member)
        assert soon(shared(running, names(topic)), SECONDS)
    for member in newer:
        sent += (more := numbered(len(sent), 30))
        returning[0].client.produce(topic, more)
        member.leave() if member is newer[0] else member.kill()
        running.remove(member)
        assert soon(shared(running, names(topic)), SECONDS)
    everyone = [*classic, *newer, *returning]
    everything = {message.value for message in sent}
    assert soon(lambda: set().union(*(member.took for member in everyone)) == everything, SECONDS)
    assert_one_owner_each(everyone)
