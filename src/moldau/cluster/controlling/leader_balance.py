"""When the controller lets preferred replicas lead again by the clock (`auto.leader.rebalance.enable`).

Every `leader.imbalance.check.interval.seconds` it looks which brokers do not lead more than
`leader.imbalance.per.broker.percentage` of the partitions whose preferred replica they have, and lets them lead those
that they are in sync for. As in Kafka, each broker is judged on its own.
"""

from collections import Counter
from collections.abc import Collection
from math import inf

from moldau.cluster.state.elections import preferred_elections
from moldau.cluster.state.image import Image
from moldau.config import BrokerConfig
from moldau.names import TopicPartition


class LeaderBalance:
    """Times are seconds of a clock that never jumps."""

    def __init__(self, config: BrokerConfig):
        self._every_s = config.leader_imbalance_check_interval_seconds if config.auto_leader_rebalance_enable else inf
        self._percentage = config.leader_imbalance_per_broker_percentage
        self._due_s = inf

    def begin(self, now_s: float) -> None:
        """This broker is the controller from now on."""
        self._due_s = now_s + self._every_s

    def due_in_s(self, now_s: float) -> float:
        """How long until it has to look."""
        return self._due_s - now_s

    def look(self, image: Image, away: Collection[int], now_s: float) -> list[TopicPartition]:
        """The partitions whose preferred replicas are to lead again; none before it is time."""
        if now_s < self._due_s:
            return []
        self._due_s = now_s + self._every_s
        return led_elsewhere(image, away, self._percentage)


def led_elsewhere(image: Image, away: Collection[int], percentage: int) -> list[TopicPartition]:
    """The partitions that their preferred replicas could lead and do not, of brokers that are up and do not lead more
    than this percentage of theirs."""
    has: Counter[int] = Counter()
    found: dict[int, list[TopicPartition]] = {}
    for topic in image.topics.values():
        for number, part in enumerate(topic.partitions):
            preferred = part.replicas[0]
            has[preferred] += 1
            if part.leader != preferred:
                found.setdefault(preferred, []).append(TopicPartition(topic.name, number))
    wanted = [
        tp
        for broker, those in found.items()
        if broker in image.brokers and broker not in away and 100 * len(those) > percentage * has[broker]
        for tp in those
    ]
    return [TopicPartition(one.topic, one.number) for one in preferred_elections(image, wanted)]
