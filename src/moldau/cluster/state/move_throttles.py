"""Throttles that were set for moves of partitions, and which of them are over. Pure: an image in, operations out.

Two kinds of throttles are set for moves, and nobody has to take them away:

    *.reassignment.throttled.rate    on single brokers, by `moldau cluster` with `--throttle`. They cover only replicas
                                     that a move adds. They are left over when no move has been under way for `RATES_S`:
                                     the command sets them before it begins moves, a few at a time. A rate for all
                                     brokers is a lasting limit of the operator, and stays.
    *.replication.throttled.*        by `kafka-reassign-partitions --throttle`, which takes them away only when somebody
                                     runs it with `--verify` or `--cancel`. It lists in each topic, for each partition
                                     of its plan, the brokers that have it as leaders and those that it adds as
                                     followers, and sets the rates of all these brokers.

An operator sets `*.replication.throttled.*` too, for example for a broker that returns after a long time. So what is
listed of a partition belongs to its move only if it is what the tool lists: as leaders exactly the replicas from before
the move, as followers none of them. It goes in the step in which the move ends, is cancelled or is refused; the other
entries of a topic stay, and so does `*`. The rates of the brokers go together with the last list of the cluster. The
tool may die before the move begins. Then its lists name followers that are no replicas, and are left over when no move
has been under way for `LISTS_S`.

Operations come in an order in which a controller that dies between two steps of the store leaves nothing behind: the
rates, the lists, then the moves, by which the next controller finds what is left to do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.reassignment import is_under_way, originals_of
from moldau.metadata_store.store import NodeOperation
from moldau.names import TopicPartition

LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES = frozenset(("leader.replication.throttled.rate", "follower.replication.throttled.rate"))
MOVE_RATES = frozenset(("leader.reassignment.throttled.rate", "follower.reassignment.throttled.rate"))
RATES_S = 30.0
LISTS_S = 600.0

Overrides = Mapping[str, str]


class MoveOver(NamedTuple):
    """A partition that does not move any more, or was not moved. `originals`: its replicas from before."""

    tp: TopicPartition
    originals: tuple[int, ...]


def moves_over(image: Image, decided: Iterable[tuple[TopicPartition, PartitionImage | object]]) -> list[MoveOver]:
    """Those of these partitions that will not be under way. Each comes as it will be, or with the reason why it stays
    as it is in the image."""
    over = []
    for tp, result in decided:
        part = image.partition(tp)
        after = result if isinstance(result, PartitionImage) else part
        if part is not None and after is not None and not is_under_way(after):
            over.append(MoveOver(tp, originals_of(part)))
    return over


def under_way_in(topics: Iterable[TopicImage]) -> Iterator[MoveOver]:
    """The moves of these topics, which are about to end."""
    for topic in topics:
        for number, part in enumerate(topic.partitions):
            if is_under_way(part):
                yield MoveOver(TopicPartition(topic.name, number), originals_of(part))


def without_throttles_of(image: Image, over: Iterable[MoveOver]) -> list[NodeOperation]:
    """What takes away the throttles of these moves."""
    by_topic: dict[str, dict[int, tuple[int, ...]]] = {}
    for (name, number), originals in over:
        if _is_listing(image.topics[name].overrides):
            by_topic.setdefault(name, {})[number] = originals

    def without(name: str, moves: Mapping[int, tuple[int, ...]]) -> Overrides:
        def is_of_a_move(number: int, leaders: set[int], followers: set[int]) -> bool:
            originals = moves.get(number)
            return originals is not None and leaders == {*originals} and followers.isdisjoint(originals)

        return _without(image.topics[name].overrides, is_of_a_move)

    return _lists_gone(image, {name: without(name, moves) for name, moves in by_topic.items()})


def left_over_rates(image: Image) -> list[NodeOperation]:
    """What takes away the rates that were set for moves, if none is under way."""
    return [] if not _has(image, MOVE_RATES) or _moves(image) else _without_rates(image, MOVE_RATES)


def left_over_lists(image: Image) -> list[NodeOperation]:
    """What takes away the lists of moves that never began, if none is under way. A list without a rate does nothing: it
    is not looked for."""
    if not _has(image, RATES) or not (listing := _listing(image, {})) or _moves(image):
        return []

    def without(topic: TopicImage) -> Overrides:
        def is_left_over(number: int, leaders: set[int], followers: set[int]) -> bool:
            part = topic.partitions[number] if number < len(topic.partitions) else None
            return part is None or not followers.issubset(part.replicas)

        return _without(topic.overrides, is_left_over)

    return _lists_gone(image, {name: without(image.topics[name]) for name in listing})


class FoundLeftOver(NamedTuple):
    """What takes away something that is left over, in which term of the controller, and the settings of brokers then: a
    rate that was set just now is not left over."""

    controller_epoch: int
    broker_overrides: Mapping[str, Overrides]
    operations: Sequence[NodeOperation]


class LeftOverThrottles:
    """When the controller takes away what no move has taken along. Times are seconds of a clock that never jumps."""

    def __init__(self) -> None:
        self._kinds: Sequence[tuple[Callable[[Image], list[NodeOperation]], float]] = (
            (left_over_rates, RATES_S),
            (left_over_lists, LISTS_S),
        )
        self._found: dict[float, tuple[FoundLeftOver, float]] = {}
        """By limit: what was found, and since when."""

    def due_in_s(self, now_s: float) -> float:
        """How long until something is left over for long enough."""
        return min((since_s + limit_s - now_s for limit_s, (_, since_s) in self._found.items()), default=inf)

    def look(self, image: Image, now_s: float) -> list[NodeOperation]:
        """What has been left over for long enough, without any change."""
        for find, limit_s in self._kinds:
            operations = find(image)
            found = FoundLeftOver(image.controller_epoch, image.broker_overrides, operations)
            if not operations:
                self._found.pop(limit_s, None)
            elif limit_s not in self._found or self._found[limit_s][0] != found:
                self._found[limit_s] = found, now_s
            elif now_s >= self._found[limit_s][1] + limit_s:
                return operations  # one kind at a time: both may write the node of a broker
        return []


def _moves(image: Image) -> bool:
    return any(is_under_way(part) for topic in image.topics.values() for part in topic.partitions)


def _is_listing(overrides: Overrides) -> bool:
    return LEADERS in overrides or FOLLOWERS in overrides


def _listing(image: Image, changed: Mapping[str, Overrides]) -> list[str]:
    """The topics that list replicas after these changes."""
    return [name for name, topic in image.topics.items() if _is_listing(changed.get(name, topic.overrides))]


def _has(image: Image, rates: frozenset[str]) -> bool:
    return any(
        not rates.isdisjoint(own) for name, own in image.broker_overrides.items() if name != layout.DEFAULT_BROKER
    )


def _without_rates(image: Image, rates: frozenset[str]) -> list[NodeOperation]:
    return [
        layout.config(
            f"{layout.BROKER_CONFIGS}/{broker}",
            {name: value for name, value in own.items() if name not in rates},
            is_new=False,
        )
        for broker, own in image.broker_overrides.items()
        if broker != layout.DEFAULT_BROKER and not rates.isdisjoint(own)
    ]


def _lists_gone(image: Image, overrides: Mapping[str, Overrides]) -> list[NodeOperation]:
    """From the lists of topics to these, and the rates of brokers away with the last list."""
    changed = {name: own for name, own in overrides.items() if own != image.topics[name].overrides}
    if not changed:
        return []
    rates = [] if _listing(image, changed) else _without_rates(image, RATES)
    return [*rates, *(layout.topic_overrides(name, own) for name, own in changed.items())]


def _without(overrides: Overrides, is_over: Callable[[int, set[int], set[int]], bool]) -> Overrides:
    """The settings of a topic without the entries of some partitions. `is_over` is asked with a partition, and the
    brokers that are listed for it as leaders and as followers."""
    leaders, followers = _entries(overrides.get(LEADERS, "")), _entries(overrides.get(FOLLOWERS, ""))
    if leaders is None or followers is None:
        return overrides
    listed = leaders.keys() | followers.keys()
    over = {one for one in listed if is_over(one, leaders.get(one, set()), followers.get(one, set()))}
    if not over:
        return overrides
    after = dict(overrides)
    for name, entries in ((LEADERS, leaders), (FOLLOWERS, followers)):
        kept = [f"{one}:{broker}" for one in sorted(entries.keys() - over) for broker in sorted(entries[one])]
        after.pop(name, None)
        if kept:
            after[name] = ",".join(kept)
    return after


def _entries(text: str) -> dict[int, set[int]] | None:
    """The brokers that a list has for each partition; None if it has other entries, such as `*`."""
    entries: dict[int, set[int]] = {}
    for pair in (one.strip() for one in text.split(",") if one.strip()):
        partition, _, broker = pair.partition(":")
        if not all(part.isascii() and part.isdigit() for part in (partition, broker)):
            return None
        entries.setdefault(int(partition), set()).add(int(broker))
    return entries
