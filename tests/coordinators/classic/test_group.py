"""A group's states explain themselves, its books balance, and what members say about themselves cannot hurt it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinators.classic.group import NEXT, ClassicGroup, ClassicGroupState, ClassicMember
from moldau.coordinators.decision import Ticket
from moldau.protocol import schema
from moldau.protocol.consumer import ConsumerProtocolSubscription, OwnedPartitions
from tests.coordinators.groups.scene import subscription

NAMES = st.lists(st.sampled_from(["range", "sticky", "roundrobin"]), min_size=1, unique=True)


def member(name: str, *protocols: tuple[str, bytes], instance_id: str | None = None) -> ClassicMember:
    return ClassicMember(name, instance_id, "c", "/h", 10_000, 30_000, protocols)


def group(*members: ClassicMember, protocol_type: str = "consumer") -> ClassicGroup:
    made = ClassicGroup("g", protocol_type=protocol_type)
    for one in members:
        made.add(one)
    return made


def test_every_state_explains_itself_and_says_where_it_may_lead() -> None:
    assert set(NEXT) == set(ClassicGroupState)
    assert all(len(state.meaning.split()) > 5 for state in ClassicGroupState)
    assert [state.value for state in ClassicGroupState] == [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
    ]


@pytest.mark.parametrize("start", ClassicGroupState)
@pytest.mark.parametrize("end", ClassicGroupState)
def test_a_move_that_is_not_in_the_table_is_a_defect(start: ClassicGroupState, end: ClassicGroupState) -> None:
    one = ClassicGroup("g", state=start)
    if end in NEXT[start]:
        one.move_to(end, 7)
        assert (one.state, one.before, one.since_ms) == (end, start, 7)
    else:
        with pytest.raises(AssertionError):
            one.move_to(end, 7)


@given(st.lists(NAMES, min_size=1, max_size=6))
def test_the_elected_protocol_is_one_that_all_speak_and_most_want(offers: list[list[str]]) -> None:
    one = group()
    for number, names in enumerate(offers):
        protocols = tuple((name, b"") for name in names)
        if one.speaks("consumer", protocols):
            one.add(member(str(number), *protocols))
    spoken = [[name for name, _ in m.protocols] for m in one.members.values()]
    common = [name for name in spoken[0] if all(name in names for names in spoken)]
    votes = [next(name for name in names if name in common) for names in spoken]
    elected = one.elected_protocol()
    assert elected in common
    assert votes.count(elected) == max(votes.count(name) for name in common)


def test_the_leader_is_the_first_and_then_the_next_who_is_there() -> None:
    one = group(member("a", ("range", b"")), member("b", ("range", b"")), member("c", ("range", b"")))
    assert one.leader == "a"
    one.remove("a")
    assert one.leader == "b"
    one.park_join(one.members["c"], Ticket(1))
    assert one.elect_joined_leader()
    assert one.leader == "c"
    one.remove("b")
    one.remove("c")
    assert (one.leader, one.joining, dict(one.offers)) == (None, 0, {})


def test_a_renamed_member_keeps_its_place_and_its_role() -> None:
    one = group(member("a", ("range", b""), instance_id="A"), member("b", ("range", b"")))
    one.unsynced = {"a": None, "b": None}
    one.rename(one.members["a"], "a2")
    assert (list(one.members), list(one.unsynced), one.leader, one.statics) == (
        ["a2", "b"],
        ["a2", "b"],
        "a2",
        {"A": "a2"},
    )


def test_a_group_is_subscribed_to_what_any_member_reads() -> None:
    one = group(member("a", ("range", subscription("t"))), member("b", ("range", subscription("u", "v"))))
    one.move_to(ClassicGroupState.PREPARING_REBALANCE, 0)
    one.begin_generation(0)
    assert [topic for topic in "tuvw" if one.is_subscribed(topic)] == ["t", "u", "v"]


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 99])
def test_subscriptions_of_any_version_are_understood(version: int) -> None:
    owned = [OwnedPartitions(topic="o", partitions=[1])]
    said = ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned, generation_id=1, rack_id="r")
    metadata = version.to_bytes(2) + schema.write(said, min(version, 3), False) + (b"more" if version > 3 else b"")
    one = group(member("a", ("range", bytes(metadata))))
    one.move_to(ClassicGroupState.PREPARING_REBALANCE, 0)
    one.begin_generation(0)
    assert one.topics == frozenset({"t"})


@pytest.mark.parametrize("version", [1, 2, 3, 99, -1])
def test_a_member_that_says_another_version_than_it_writes_reads_what_version_0_says(version: int) -> None:
    one = group(member("a", ("range", version.to_bytes(2, signed=True) + subscription("t")[2:])))
    one.move_to(ClassicGroupState.PREPARING_REBALANCE, 0)
    one.begin_generation(0)
    assert [topic for topic in "tu" if one.is_subscribed(topic)] == ["t"]


@given(st.binary(max_size=40))
def test_metadata_that_is_no_subscription_leaves_the_topics_unknown(metadata: bytes) -> None:
    one = group(member("a", ("range", subscription("t"))), member("b", ("range", b"\0\1" + metadata[:3])))
    one.move_to(ClassicGroupState.PREPARING_REBALANCE, 0)
    one.begin_generation(0)
    assert one.topics is None
    assert one.is_subscribed("anything")
    other = group(member("a", ("range", metadata)), protocol_type="connect")
    other.move_to(ClassicGroupState.PREPARING_REBALANCE, 0)
    other.begin_generation(0)
    assert not other.is_subscribed("anything")


def test_generations_go_on_after_the_largest() -> None:
    one = group(member("a", ("range", b"")))
    one.generation = 2**31 - 1
    one.move_to(ClassicGroupState.PREPARING_REBALANCE, 0)
    one.begin_generation(0)
    assert one.generation == 1


def test_a_revived_group_is_what_was_written() -> None:
    one = group(member("a", ("range", subscription("t")), instance_id="A"), member("b", ("range", subscription("u"))))
    one.move_to(ClassicGroupState.PREPARING_REBALANCE, 5)
    one.begin_generation(6)
    one.members["a"].assignment = b"all"
    again = ClassicGroup.revived("g", one.value())
    assert again.state is ClassicGroupState.STABLE
    assert again.value() == one.value()
    assert (again.topics, again.statics, again.leader) == (frozenset({"t", "u"}), {"A": "a"}, "a")
    assert not any(m.new for m in again.members.values())
