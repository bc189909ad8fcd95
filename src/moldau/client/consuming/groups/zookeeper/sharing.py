"""How the members of a group in ZooKeeper share partitions: Algorithm 1 of the Kafka paper. Pure.

Each topic by itself: its partitions in order (Kafka 0.7: names as text, so `0-10` is before `0-2`; 0.8: numbers), the
streams of all members as text. Of n partitions each of m streams gets n // m in a row, the first n % m one more. All
members compute it from the same registry, and the owner nodes decide if they did not see the same one.

Source: `RangeAssignor` and `ZookeeperConsumerConnector` of Kafka 0.8.2, `ZookeeperConsumerConnector` of 0.7.2.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.client.consuming.groups.streams_wanted import StreamsWanted
from moldau.client.consuming.groups.zookeeper.registered_members import (
    GroupNodes,
    stream_ids,
    topics_of,
)
from moldau.client.zookeeper.group_names import GroupLayout
from moldau.names import TopicPartition


class OwnedPartition(NamedTuple):
    """A partition that a stream is to read: the stream's id and number, and the partition's name in the registry."""

    stream: str
    number: int
    name: str


def share_of(
    member: str,
    members: Mapping[str, StreamsWanted],
    topics: Mapping[str, Mapping[int, int]],
    nodes: GroupNodes,
) -> dict[TopicPartition, OwnedPartition]:
    """The partitions for the streams of a member. `topics`: the existing ones, partition -> its first replica."""
    own = topics_of(members[member], topics)
    wanted = {name: topics_of(one, topics) for name, one in members.items()}
    share: dict[TopicPartition, OwnedPartition] = {}
    for topic, streams in sorted(own.items()):
        every = sorted(
            stream for name, counts in wanted.items() if topic in counts for stream in stream_ids(name, counts[topic])
        )
        names = {number: nodes.partition_name(number, first) for number, first in topics[topic].items()}
        named = in_order(names, nodes)
        place = {stream: at for at, stream in enumerate(every)}
        for number, stream in enumerate(stream_ids(member, streams)):
            for partition, name in slice_of(named, place[stream], len(every)):
                share[TopicPartition(topic, partition)] = OwnedPartition(stream, number, name)
    return share


def in_order(names: Mapping[int, str], nodes: GroupNodes) -> list[tuple[int, str]]:
    """The partitions of a topic with their names, in the order of the layout."""
    if nodes.layout is GroupLayout.KAFKA_0_7:
        return sorted(names.items(), key=lambda one: one[1])
    return sorted(names.items())


def slice_of(partitions: Sequence[tuple[int, str]], place: int, streams: int) -> Sequence[tuple[int, str]]:
    """What the stream at this place of that many gets."""
    each, more = divmod(len(partitions), streams)
    start = each * place + min(place, more)
    return partitions[start : start + each + (place < more)]
