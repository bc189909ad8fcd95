"""Partitions that records wait for, and that their topic does not have any more: it was created again with fewer.

Metadata may lack a partition for a moment, while a broker lags behind the cluster. So a partition counts as gone once
metadata have lacked it for `GONE_S`. A topic that is missing altogether never does: it may be created again, so its
records wait for the delivery time-out, as those of Java's producer. No I/O, no clock.
"""

from moldau.client.cluster_view import ClusterView
from moldau.client.producing.outgoing import no_such_partition
from moldau.errors import NoSuchPartition
from moldau.names import TopicPartition

GONE_S = 5.0


class GonePartitions:
    """Those of one producer: since when each has been missing, in seconds of the loop's clock."""

    def __init__(self) -> None:
        self._since_s: dict[TopicPartition, float] = {}

    def failure(self, tp: TopicPartition, view: ClusterView, now_s: float) -> NoSuchPartition | None:
        """The failure of the records that wait for this partition, by metadata that were asked for just now; None
        unless it is gone."""
        topic = view.topics.get(tp.topic)
        if topic is None or tp.partition in topic.partitions:
            self._since_s.pop(tp, None)
            return None
        if now_s - self._since_s.setdefault(tp, now_s) < GONE_S:
            return None
        del self._since_s[tp]
        return no_such_partition(*tp, len(topic.partitions))
