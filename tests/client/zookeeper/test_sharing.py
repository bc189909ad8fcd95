"""Algorithm 1: who reads which partition, computed by hand for the layouts of Kafka 0.7 and 0.8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client.consuming.groups.streams_wanted import STATIC, WHITE_LIST, StreamsWanted
from moldau.client.consuming.groups.zookeeper.registered_members import GroupNodes
from moldau.client.consuming.groups.zookeeper.sharing import share_of
from moldau.client.zookeeper.group_names import GroupLayout
from moldau.names import TopicPartition

NEW, OLD = GroupNodes("g", GroupLayout.KAFKA_0_8), GroupNodes("g", GroupLayout.KAFKA_0_7)


def shares(nodes: GroupNodes, members: dict[str, StreamsWanted], topics: dict[str, int]) -> dict[str, list[str]]:
    """The partitions of each stream, as `topic/name`."""
    existing = {topic: dict.fromkeys(range(count), 0) for topic, count in topics.items()}
    found: dict[str, list[str]] = {}
    for member in members:
        for tp, owned in share_of(member, members, existing, nodes).items():
            assert owned.stream == f"{member}-{owned.number}"
            found.setdefault(owned.stream, []).append(f"{tp.topic}/{owned.name}")
    return found


def one(topic: str, streams: int) -> StreamsWanted:
    return StreamsWanted(STATIC, {topic: streams})


def test_the_first_streams_get_one_more() -> None:
    """The example in the documentation of Kafka 0.8's range assignor."""
    members = {"C1": one("t", 2), "C2": one("t", 2)}
    assert shares(NEW, members, {"t": 5}) == {"C1-0": ["t/0", "t/1"], "C1-1": ["t/2"], "C2-0": ["t/3"], "C2-1": ["t/4"]}


def test_streams_are_in_the_order_of_text_and_partitions_in_that_of_numbers() -> None:
    found = shares(NEW, {"C": one("t", 11)}, {"t": 12})
    assert found["C-0"] == ["t/0", "t/1"]
    assert found["C-1"] == ["t/2"]
    assert found["C-10"] == ["t/3"], "C-10 is before C-2"
    assert found["C-9"] == ["t/11"]


def test_partitions_of_the_older_layout_are_in_the_order_of_text() -> None:
    found = shares(OLD, {"C": one("t", 2)}, {"t": 12})
    assert found["C-0"] == ["t/0-0", "t/0-1", "t/0-10", "t/0-11", "t/0-2", "t/0-3"]
    assert found["C-1"] == ["t/0-4", "t/0-5", "t/0-6", "t/0-7", "t/0-8", "t/0-9"]


@pytest.mark.re2
def test_each_topic_is_shared_by_those_that_want_it() -> None:
    members = {"A": StreamsWanted(STATIC, {"x": 1, "y": 1}), "B": one("y", 1), "C": StreamsWanted(WHITE_LIST, {"x": 1})}
    assert shares(NEW, members, {"x": 2, "y": 3, "z": 1}) == {
        "A-0": ["x/0", "y/0", "y/1"],
        "B-0": ["y/2"],
        "C-0": ["x/1"],
    }


def test_more_streams_than_partitions_leave_some_without() -> None:
    members = {"A": one("t", 3), "B": one("t", 3)}
    assert shares(NEW, members, {"t": 2}) == {"A-0": ["t/0"], "A-1": ["t/1"]}


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 40), st.sampled_from([NEW, OLD]))
def test_each_partition_goes_to_one_stream_and_the_shares_differ_by_one(
    streams: list[int], partitions: int, nodes: GroupNodes
) -> None:
    members = {f"m{number}": one("t", count) for number, count in enumerate(streams)}
    existing = {"t": dict.fromkeys(range(partitions), 1)}
    given: list[TopicPartition] = []
    sizes: dict[str, int] = {f"{name}-{n}": 0 for name, wanted in members.items() for n in range(wanted.streams["t"])}
    for member in members:
        for tp, owned in share_of(member, members, existing, nodes).items():
            given.append(tp)
            sizes[owned.stream] += 1
    assert sorted(given) == [TopicPartition("t", number) for number in range(partitions)]
    assert max(sizes.values()) - min(sizes.values()) <= 1
