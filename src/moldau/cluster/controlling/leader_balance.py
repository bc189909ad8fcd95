"""When the controller lets preferred replicas lead again by the clock (`auto.leader.rebalance.enable`).

Every `leader.imbalance.check.interval.seconds` it looks which brokers do not lead more than
`leader.imbalance.per.broker.percentage` of the partitions whose preferred replica they have, and lets them lead those
that they are in sync for. As in Kafka, each broker is judged on its own.

With `auto.leader.rebalance.in.sync.enable`, which Kafka does not have, it also looks within a second of every change,
and whatever the percentage is: a broker that is in every ISR again, such as one that was restarted, then leads what it
is preferred for. One that still lacks records anywhere has its disk and network for catching up.
"""

from collections import Counter
from collections.abc import Collection
from math import inf

from moldau.cluster.state.elections import preferred_elections
from moldau.cluster.state.image import Image
from moldau.config import BrokerConfig
from moldau.names import TopicPartition

IN_SYNC_EVERY_S = 1.0
"""At most once in this time the image is searched for brokers that are in sync again."""


class LeaderBalance:
    """Times are seconds of a clock that never jumps."""

    def __init__(self, config: BrokerConfig):
        self._every_s = config.leader_imbalance_check_interval_seconds if config.auto_leader_rebalance_enable else inf
        self._percentage = config.leader_imbalance_per_broker_percentage
        self._due_s = inf
        in_sync = config.auto_leader_rebalance_enable and config.auto_leader_rebalance_in_sync_enable
        self._in_sync_every_s = IN_SYNC_EVERY_S if in_sync else inf
        self._in_sync_due_s = inf
        self._searched: Image | None = None

    def begin(self, now_s: float) -> None:
        """This broker is the controller from now on."""
        self._due_s = now_s + self._every_s
        self._in_sync_due_s = now_s + self._in_sync_every_s
        self._searched = None

    def due_in_s(self, now_s: float) -> float:
        """How long until it has to look."""
        return min(self._due_s, self._in_sync_due_s) - now_s

    def look(self, image: Image, away: Collection[int], now_s: float) -> list[TopicPartition]:
        """The partitions whose preferred replicas are to lead again; none before it is time."""
        if now_s >= self._due_s:
            self._due_s = now_s + self._every_s
            return led_elsewhere(image, away, self._percentage)
        if now_s < self._in_sync_due_s:
            return []
        self._in_sync_due_s = now_s + self._in_sync_every_s
        if image is self._searched:
            return []
        self._searched = image
        return led_elsewhere(image, {*away, *lagging(image)}, 0)


def lagging(image: Image) -> set[int]:
    """The brokers that are out of sync in a partition."""
    return {
        broker
        for topic in image.topics.values()
        for part in topic.partitions
        if len(part.isr) < len(part.replicas)
        for broker in part.replicas
        if broker not in part.isr
    }


def led_elsewhere(image: Image, away: Collection[int], percentage: int) -> list[TopicPartition]:
    """The partitions that their preferred replicas could lead and do not, of brokers that are up and do not lead more
    than this percentage of theirs."""
    has: Counter[int] = Counter()
    by_preferred: dict[int, list[TopicPartition]] = {}
    for topic in image.topics.values():
        for number, part in enumerate(topic.partitions):
            preferred = part.replicas[0]
            has[preferred] += 1
            if part.leader != preferred:
                by_preferred.setdefault(preferred, []).append(TopicPartition(topic.name, number))
    wanted = [
        tp
        for broker, those in by_preferred.items()
        if broker in image.brokers and broker not in away and 100 * len(those) > percentage * has[broker]
        for tp in those
    ]
    return [TopicPartition(one.topic, one.number) for one in preferred_elections(image, wanted)]
