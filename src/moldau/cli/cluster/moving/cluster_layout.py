"""Where a cluster's replicas are: what plans are made from. Pure.

A plan maps partitions to their new replicas, the preferred leader first. It has no partition that stays as it is.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from moldau.names import TopicPartition

MovePlan: TypeAlias = Mapping[TopicPartition, tuple[int, ...]]


class BrokerSpace(NamedTuple):
    """A broker that runs. `disk_bytes` and `free_bytes` are those of the file systems of its log folders together, None
    if it does not say."""

    rack: str | None = None
    disk_bytes: int | None = None
    free_bytes: int | None = None


class HeldPartition(NamedTuple):
    """The replicas of a partition, the preferred leader first, and the bytes of its largest one."""

    replicas: tuple[int, ...]
    bytes: int = 0


@dataclass(frozen=True)
class ClusterLayout:
    """The brokers that run, by id, and all partitions, whose replicas may be on brokers that do not."""

    brokers: Mapping[int, BrokerSpace]
    partitions: Mapping[TopicPartition, HeldPartition]

    def after(self, plan: MovePlan) -> "ClusterLayout":
        """The layout when the plan is carried out."""
        moved = {tp: self.partitions[tp]._replace(replicas=replicas) for tp, replicas in plan.items()}
        return ClusterLayout(self.brokers, {**self.partitions, **moved})

    @property
    def racks_are_known(self) -> bool:
        return all(broker.rack is not None for broker in self.brokers.values())

    def bytes_by_broker(self) -> Counter[int]:
        held: Counter[int] = Counter(dict.fromkeys(self.brokers, 0))
        for part in self.partitions.values():
            for broker in part.replicas:
                held[broker] += part.bytes
        return held

    def replicas_by_broker(self) -> Counter[int]:
        return Counter(broker for part in self.partitions.values() for broker in part.replicas)

    def leaders_by_broker(self) -> Counter[int]:
        """How many partitions each broker is the preferred leader of."""
        return Counter(part.replicas[0] for part in self.partitions.values())

    def copies(self, plan: MovePlan) -> dict[TopicPartition, int]:
        """The bytes that a plan copies, by partition; 0 for one whose replicas only change their order."""
        return {
            tp: len({*replicas} - {*self.partitions[tp].replicas}) * self.partitions[tp].bytes
            for tp, replicas in plan.items()
        }


def changed(layout: ClusterLayout, wanted: MovePlan) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions that are not as wanted, in the order of names."""
    return {tp: wanted[tp] for tp in sorted(wanted) if wanted[tp] != layout.partitions[tp].replicas}
