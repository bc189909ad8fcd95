"""Records and bytes per second of a whole cluster, as its partitions grow: for clusters whose metrics are not known."""

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.cluster_view import TopicView
from moldau.names import TopicPartition

PARTITIONS_MAX = 5_000
"""In larger clusters, asking for the end of each partition would cost brokers too much."""
GROWTH_KEPT_S, FORGOTTEN_S = 20.0, 60.0
"""A look is kept for at most so long, however long it took; one that is older than `FORGOTTEN_S` is no beginning of a
rate: nobody has watched since."""


class GrowthLook(NamedTuple):
    """How far all logs were at one moment: their ends, and the bytes of the leaders' replicas."""

    at_s: float
    ends: Mapping[TopicPartition, int]
    sizes: Mapping[TopicPartition, int]


def leaders_of(topics: Mapping[str, TopicView]) -> dict[TopicPartition, int]:
    """The leader of each partition that has one, except those of internal topics."""
    return {
        TopicPartition(name, number): view.leader
        for name, topic in topics.items()
        if not topic.internal
        for number, view in topic.partitions.items()
        if view.leader >= 0
    }


def growth(before: GrowthLook | None, now: GrowthLook) -> dict[str, float]:
    """Records and bytes per second between two looks; empty without an earlier one. A partition that only one of
    them has does not count, and what was deleted meanwhile is not subtracted. Pure."""
    if before is None or now.at_s - before.at_s > FORGOTTEN_S:
        return {}
    took_s = max(now.at_s - before.at_s, 1e-9)
    records = sum(max(end - before.ends.get(tp, end), 0) for tp, end in now.ends.items())
    stored = sum(max(size - before.sizes.get(tp, size), 0) for tp, size in now.sizes.items())
    return {"records in": round(records / took_s, 1), "bytes in": round(stored / took_s, 1)}
