"""What changed between two looks at a cluster: rates of topics and groups. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.administration.cluster import ClusterDescription
from moldau.names import TopicPartition


class SummedLag(NamedTuple):
    """What a group has committed in sum, and how far it is behind; `seconds` is None if it is not known."""

    state: str
    committed: int
    lag: int
    seconds: float | None


class PartitionHealth(NamedTuple):
    """`leaderless` and `under_replicated` are numbers of partitions, `replicas` the brokers that have one."""

    leaderless: int = 0
    under_replicated: int = 0
    replicas: frozenset[int] = frozenset()


class ClusterLook(NamedTuple):
    """A cluster at one moment: ends of partitions, groups, and of each API the count below each bound in seconds and
    the sum of seconds. `unread` says what could not be read, and why; `silent` are the brokers that did not answer."""

    at_s: float
    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, SummedLag]
    buckets: Mapping[str, Mapping[float, float]]
    sums: Mapping[str, float]
    health: PartitionHealth = PartitionHealth()
    unread: tuple[str, ...] = ()
    cluster: ClusterDescription = ClusterDescription(None, -1, {}, {})
    silent: frozenset[int] = frozenset()


class TopicRate(NamedTuple):
    """A row about a topic; `end_offsets` is the sum of those of its partitions."""

    topic: str
    partitions: int
    records_per_second: float
    end_offsets: int


class GroupRate(NamedTuple):
    """A row about a group."""

    group: str
    state: str
    records_per_second: float
    lag: int
    lag_seconds: float | None


def topics_between(before: ClusterLook, now: ClusterLook) -> list[TopicRate]:
    """Busiest first. A partition that was not there before, or whose log was truncated, counts from the next look."""
    took_s = max(now.at_s - before.at_s, 1e-9)
    rows: dict[str, list[int]] = {}
    for tp, end in now.ends.items():
        row = rows.setdefault(tp.topic, [0, 0, 0])
        row[0] += 1
        row[1] += max(0, end - before.ends.get(tp, end))
        row[2] += end
    found = [TopicRate(name, parts, written / took_s, end) for name, (parts, written, end) in rows.items()]
    return sorted(found, key=lambda one: (-one.records_per_second, one.topic))


def groups_between(before: ClusterLook, now: ClusterLook) -> list[GroupRate]:
    """Those furthest behind first."""
    took_s = max(now.at_s - before.at_s, 1e-9)
    found = []
    for name, group in now.groups.items():
        was = before.groups.get(name, group)
        read = max(0, group.committed - was.committed)
        found.append(GroupRate(name, group.state, read / took_s, group.lag, group.seconds))
    return sorted(found, key=lambda one: (-one.lag, one.group))
