"""What a leader of ours assigns is what Java's client assigned to the same members, and members say the same bytes.

`range` and `roundrobin` give the same partitions to everyone. The sticky ones may choose other partitions, but give as
even shares and move no more.
"""

import random
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from harness.quick_jvm import QUICK_JVM
from moldau.assignors import Assignment
from moldau.assignors.sticky import Claim
from moldau.client.consuming.assigning import ASSIGNORS, KnownRacks, Subscriber, read_subscription, subscription_bytes
from moldau.names import TopicPartition
from tests import refereed
from tests.environments import java_class, kafka_jars

ROUNDS, SEED = 150, 14
Members = Mapping[str, tuple[str | None, bytes]]
"""The instance id of each member, and its subscription."""
JVM = ("-Xmx128m", *QUICK_JVM, "-Xshare:auto")


class Java:
    """What the program `Assignors` says, line by line: as recorded, or it is asked."""

    def __init__(self, known: refereed.Answers) -> None:
        self._known = known
        self._process: subprocess.Popen[str] | None = None

    def ask(self, *words: str) -> str:
        line = " ".join(words)
        answer: str = self._known.to(line, lambda: self._exchange(line))
        return answer

    def _exchange(self, line: str) -> str:
        if self._process is None:
            source = Path(__file__).parent / "Assignors.java"
            command = ["java", *JVM, "-cp", java_class(source, kafka_jars()), "Assignors"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "Java has ended"
        return answer.rstrip("\n")

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()


@pytest.fixture(scope="module")
def java() -> Iterator[Java]:
    with refereed.answers(Path(__file__).parent / "recordings" / "assignors.jsonl.xz") as known:
        started = Java(known)
        yield started
        started.close()


def topics_of(known: KnownRacks) -> str:
    places = {topic: "/".join("".join(sorted(racks)) or "." for racks in some) for topic, some in known.items()}
    return ",".join(f"{topic}={racks}" for topic, racks in places.items() if racks) or "-"


def javas(java: Java, name: str, known: KnownRacks, members: Members) -> Assignment:
    words = [f"{member},{instance or '-'},{data.hex()}" for member, (instance, data) in members.items()]
    answer = java.ask("assign", name, topics_of(known), *words)
    shares = (share.partition("=") for share in answer.split(";"))
    return {
        member: [TopicPartition(one[0], int(one[1:])) for one in partitions.split()] for member, _, partitions in shares
    }


def ours(name: str, known: KnownRacks, members: Members) -> Assignment:
    read = {member: Subscriber(instance, read_subscription(data)) for member, (instance, data) in members.items()}
    return ASSIGNORS[name](read, known)


def drawn(rng: random.Random, racks: str = "") -> tuple[KnownRacks, dict[str, list[str]]]:
    """Topics with replicas in these racks, and subscriptions; in half of the groups, everybody has the same."""
    sizes = rng.choice([range(10), [6]])
    counts = {
        topic: [frozenset(rng.sample(racks, rng.randint(0, len(racks)))) for _ in range(rng.choice(sizes))]
        for topic in "tuv"[: rng.randint(1, 3)]
    }
    alike = rng.random() < 0.5
    same = rng.sample(sorted(counts), rng.randint(1, len(counts)))
    return counts, {
        member: list(same) if alike else rng.sample(sorted(counts), rng.randint(1, len(counts)))
        for member in rng.sample("abcdefgh", rng.randint(1, 6))
    }


def moved(before: Assignment, after: Assignment) -> int:
    """How many partitions a member that stays has lost to another."""
    return sum(len(set(own) - set(after[member])) for member, own in before.items() if member in after)


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_everyone_gets_what_java_would_give(java: Java, name: str) -> None:
    rng = random.Random(f"{name} {SEED}")
    for _ in range(ROUNDS):
        counts, subscriptions = drawn(rng)
        members = {
            member: (
                rng.choice([None, None, f"i{rng.randint(0, 99)}-{member}"]),
                subscription_bytes(name, topics, [], Claim()),
            )
            for member, topics in subscriptions.items()
        }
        assert ours(name, counts, members) == javas(java, name, counts, members), (counts, members)


def test_range_gives_partitions_to_members_in_the_racks_where_java_would(java: Java) -> None:
    rng = random.Random(f"racks {SEED}")
    for _ in range(4 * ROUNDS):
        known, subscriptions = drawn(rng, "ABC")
        members = {
            member: (None, subscription_bytes("range", topics, [], Claim(), rng.choice([None, *"ABCD"])))
            for member, topics in subscriptions.items()
        }
        expected = {member: sorted(own) for member, own in javas(java, "range", known, members).items()}
        mine = {member: sorted(own) for member, own in ours("range", known, members).items()}
        assert mine == expected, (known, members)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_sticky_shares_are_as_even_as_javas_and_no_more_partitions_move(java: Java, name: str) -> None:
    rng = random.Random(f"{name} {SEED}")
    for _ in range(ROUNDS):
        counts, subscriptions = drawn(rng)
        members = {m: (None, subscription_bytes(name, topics, [], Claim())) for m, topics in subscriptions.items()}
        before = ours(name, counts, members)
        assert _sizes(before) == _sizes(javas(java, name, counts, members))
        gone, comes = rng.choice([*subscriptions, ""]), rng.random() < 0.5
        after = {m: topics for m, topics in subscriptions.items() if m != gone} or subscriptions
        if comes:
            after = {**after, "z": rng.choice(list(subscriptions.values()))}
        told = {
            m: (
                None,
                subscription_bytes(
                    name, topics, before.get(m, ()) if name != "sticky" else (), Claim(before.get(m, ()), 1)
                ),
            )
            for m, topics in after.items()
        }
        mine, theirs = ours(name, counts, told), javas(java, name, counts, told)
        assert moved(before, mine) <= moved(before, theirs), (counts, told)
        if len({tuple(sorted(topics)) for topics in after.values()}) == 1:
            assert sum(_sizes(mine)) == sum(_sizes(theirs)), "as much waits for its owner to give it up"


def _sizes(assignment: Assignment) -> list[int]:
    return sorted(len(own) for own in assignment.values())


@pytest.mark.parametrize("name", list(ASSIGNORS))
@pytest.mark.parametrize("owned", ["-", "t0", "t0,t2,u1"])
@pytest.mark.parametrize("generation", [-1, 7])
def test_a_member_says_what_javas_says(java: Java, name: str, owned: str, generation: int) -> None:
    if generation < 0 and owned != "-":
        owned = "-"
    partitions = [TopicPartition(one[0], int(one[1:])) for one in owned.split(",") if one != "-"]
    kept = partitions if name == "cooperative-sticky" else []
    said = subscription_bytes(name, ["t", "u"], kept, Claim(partitions, generation))
    assert said.hex() == java.ask("subscribe", name, "t,u", owned, str(generation))
