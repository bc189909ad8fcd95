"""Layouts of clusters for the tests of plans."""

import random
from collections.abc import Mapping, Sequence

from moldau.cli.cluster.moving.cluster_layout import BrokerSpace, ClusterLayout, HeldPartition, MovePlan
from moldau.names import TopicPartition

MB = 1_000_000


def layout(
    *held: tuple[Sequence[int], int],
    brokers: Sequence[int] = (1, 2, 3),
    racks: Mapping[int, str] | None = None,
    used: Mapping[int, int] | None = None,
) -> ClusterLayout:
    """Partitions `t-0`, `t-1` ... with these replicas and bytes. `used` are the bytes used on disks of 100 MB."""
    spaces = {one: BrokerSpace((racks or {}).get(one)) for one in brokers}
    for one, bytes_used in (used or {}).items():
        spaces[one] = spaces[one]._replace(disk_bytes=100 * MB, free_bytes=100 * MB - bytes_used)
    parts = {TopicPartition("t", n): HeldPartition(tuple(who), size) for n, (who, size) in enumerate(held)}
    return ClusterLayout(spaces, parts)


def drawn(seed: int, brokers: int, partitions: int, *, tells_racks: bool = True) -> ClusterLayout:
    """Replicas in three racks, of random sizes, on all brokers but the last one."""
    chance, racks = random.Random(seed), 3
    spaces = {one: BrokerSpace(f"rack-{one % racks}" if tells_racks else None) for one in range(1, brokers + 1)}
    held = {}
    for number in range(partitions):
        who = [chance.choice([b for b in spaces if b % racks == rack and b != brokers]) for rack in range(racks)]
        chance.shuffle(who)
        size = int(chance.expovariate(1 / MB)) if number % 10 else 0
        held[TopicPartition(f"t{number % 7}", number // 7)] = HeldPartition(tuple(who), size)
    return ClusterLayout(spaces, held)


def check(before: ClusterLayout, plan: MovePlan) -> ClusterLayout:
    """The layout after a plan, which keeps what every plan has to keep."""
    after = before.after(plan)
    for tp, replicas in plan.items():
        old = before.partitions[tp].replicas
        assert len(replicas) == len(set(replicas)) == len(old), tp
        assert {*replicas} - {*old} <= before.brokers.keys(), tp
        assert replicas != old, tp
        if before.racks_are_known:
            assert _racks(before, replicas) >= _racks(before, [one for one in old if one in before.brokers]), tp
    return after


def _racks(cluster: ClusterLayout, replicas: Sequence[int]) -> int:
    return len({cluster.brokers[one].rack for one in replicas})
