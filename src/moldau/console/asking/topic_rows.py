"""The rows of the list of topics: what is known at once, and what has to be asked of leaders and coordinators. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.cluster_view import TopicView
from moldau.console.asking.group_questions import Committed
from moldau.names import TopicPartition


class TopicRow(NamedTuple):
    """A topic in the list. `size_bytes` counts every replica; `groups` have a committed offset there, `lag` is the
    largest of theirs, in records. None: not asked, or not known."""

    name: str
    partitions: int
    replicas: int
    leaderless: int
    under_replicated: int
    records: int | None = None
    size_bytes: int | None = None
    groups: int | None = None
    lag: int | None = None


def plain_row(topic: TopicView) -> TopicRow:
    """What metadata tell."""
    views = topic.partitions.values()
    return TopicRow(
        topic.name,
        len(views),
        max((len(p.replicas) for p in views), default=0),
        sum(p.leader < 0 for p in views),
        sum(len(p.isr) < len(p.replicas) for p in views),
    )


def full_row(
    topic: TopicView,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    sizes: Mapping[TopicPartition, Mapping[int, int]],
    lags: Mapping[str, Mapping[str, int]] | None,
) -> TopicRow:
    """`lags` has topic -> group -> records, and is None if the user may not see groups."""
    places = [TopicPartition(topic.name, number) for number in topic.partitions]
    known = [tp for tp in places if tp in starts and tp in ends]
    sized = [tp for tp in places if tp in sizes]
    of_groups = None if lags is None else lags.get(topic.name, {})
    return plain_row(topic)._replace(
        records=sum(ends[tp] - starts[tp] for tp in known) if known else None,
        size_bytes=sum(sum(sizes[tp].values()) for tp in sized) if sized else None,
        groups=None if of_groups is None else len(of_groups),
        lag=max(of_groups.values(), default=None) if of_groups else None,
    )


def lags_by_topic(
    committed: Committed, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[str, dict[str, int]]:
    """Topic -> group -> records that the group has not read, in the partitions with known ends. Deleted records do not
    count."""
    lags: dict[str, dict[str, int]] = {}
    for group_id, offsets in committed.items():
        for tp, offset in offsets.items():
            if tp in ends:
                of_topic = lags.setdefault(tp.topic, {})
                behind = max(ends[tp] - max(offset, starts.get(tp, 0)), 0)
                of_topic[group_id] = of_topic.get(group_id, 0) + behind
    return lags
