"""What holds for the result of every assignor, and groups to try it with."""

from hypothesis import strategies as st

from moldau.assignors import Assignment, Subscriptions
from moldau.names import TopicPartition

PARTITIONS = st.dictionaries(st.sampled_from("tuvw"), st.integers(0, 7))
SUBSCRIPTION = st.lists(st.sampled_from("tuvwx"), max_size=4, unique=True)
MEMBERS = st.dictionaries(st.sampled_from("abcdef"), SUBSCRIPTION)
INSTANCES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["one", "two", "three"]))


def names(assignment: Assignment) -> dict[str, str]:
    return {member: " ".join(f"{tp.topic}{tp.partition}" for tp in owned) for member, owned in assignment.items()}


def partitions_of(members: Subscriptions, partitions: dict[str, int]) -> list[TopicPartition]:
    """Those that somebody subscribes to."""
    wanted = {topic for topics in members.values() for topic in topics}
    return sorted(TopicPartition(topic, p) for topic, n in partitions.items() if topic in wanted for p in range(n))


def check(assignment: Assignment, members: Subscriptions, partitions: dict[str, int]) -> None:
    """Every partition has one owner, which subscribes to its topic; every member has an entry."""
    assert list(assignment) == sorted(members)
    assert sorted(tp for own in assignment.values() for tp in own) == partitions_of(members, partitions)
    assert all(tp.topic in members[member] for member, own in assignment.items() for tp in own)
