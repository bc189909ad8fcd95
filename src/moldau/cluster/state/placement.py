"""Which brokers get the replicas of new partitions: the algorithm that Kafka's documentation describes. Pure.

The first replica of the first partition is on a random broker, that of each next partition one broker further. The
other replicas follow at a distance that begins at random and grows by one each time the partitions have gone round all
brokers, so that the partitions of one leader have their followers on different brokers.

If every broker has a rack (KIP-36), the brokers are taken from the racks in turn, and a partition gets a second replica
in a rack only when all racks have one. If some brokers have no rack, racks do not count.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from moldau.cluster.state.image import BrokerImage


class Draw(NamedTuple):
    """The random numbers of one placement, each 0 or above: where the first replicas start, and how far the followers
    are shifted at first."""

    start: int = 0
    shift: int = 0


NO_CHANCE = Draw()


def placed(
    brokers: Mapping[int, BrokerImage], count: int, factor: int, draw: Draw = NO_CHANCE, first: int = 0
) -> list[tuple[int, ...]]:
    """The replicas of `count` partitions, the first of which has the number `first`. `factor` is at most the number of
    brokers."""
    ids = _in_order(brokers)
    racks = [brokers[broker].rack for broker in ids] if _have_racks(brokers) else [None] * len(ids)
    return [_replicas(ids, racks, number, factor, draw) for number in range(first, first + count)]


def start_at(brokers: Mapping[int, BrokerImage], broker: int) -> int:
    """The `start` with which partition 0 has its first replica on this broker, or on the next one if it is away."""
    ids = _in_order(brokers)
    return next((at for at, other in enumerate(ids) if other == broker), sum(other < broker for other in ids))


def _have_racks(brokers: Mapping[int, BrokerImage]) -> bool:
    return all(broker.rack is not None for broker in brokers.values())


def _in_order(brokers: Mapping[int, BrokerImage]) -> list[int]:
    """By id; with racks, one broker of each rack after the other."""
    if not _have_racks(brokers):
        return sorted(brokers)
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(str(brokers[broker].rack), []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for one_round in rounds for broker in one_round if broker is not None]


def _replicas(ids: Sequence[int], racks: Sequence[str | None], number: int, factor: int, draw: Draw) -> tuple[int, ...]:
    count = len(ids)
    leader = (draw.start + number) % count
    different = len(set(racks))
    chosen, used = [leader], {racks[leader]}
    for at in _followers(leader, (draw.shift + number // count) * different, count):
        if len(chosen) == factor:
            break
        if at not in chosen and (racks[at] not in used or len(used) == different):
            chosen.append(at)
            used.add(racks[at])
    return tuple(ids[at] for at in chosen)


def _followers(leader: int, shift: int, count: int) -> Iterator[int]:
    """The places of all other brokers, from one at that distance on; twice, for those that were not taken at first
    because others of their rack went before."""
    for step in range(2 * (count - 1)):
        yield (leader + 1 + (shift + step) % (count - 1)) % count
