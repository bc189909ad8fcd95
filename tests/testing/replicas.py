"""What the brokers of a cluster in this process have of a topic, byte for byte."""

from functools import partial

from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.names import TopicPartition
from moldau.records.batch import batches
from moldau.replication.replica import Replica
from moldau.testing import Cluster


def in_sync(admin: Admin, topic: str) -> list[list[int]]:
    """The ISR of each partition, as the cluster shows it."""
    parts = admin.describe_topics([topic])[topic].partitions
    return [sorted(parts[number].isr) for number in sorted(parts)]


def leader_of(admin: Admin, topic: str, partition: int = 0) -> int:
    return admin.describe_topics([topic])[topic].partitions[partition].leader


def replicas(cluster: Cluster, tp: TopicPartition) -> list[Replica]:
    """Those on the brokers that run."""
    lives = [broker._running() for broker in cluster.brokers if broker.running]
    found = [life._broker.replicas.hosted.get(tp) for life in lives]
    return [replica for replica in found if replica is not None]


def assert_equal_below_watermark(cluster: Cluster, topic: str, partitions: int, at_least: int = 0) -> None:
    """All replicas get to the same high watermark, and are the same bytes below it."""
    for number in range(partitions):
        found = replicas(cluster, TopicPartition(topic, number))
        assert wait_until(partial(_are_level, found))
        end = found[0].high_watermark
        assert end >= at_least
        assert len({committed_bytes(one, end) for one in found}) == 1


def _are_level(found: list[Replica]) -> bool:
    return len({one.high_watermark for one in found}) == 1


def committed_bytes(replica: Replica, end: int) -> bytes:
    offset, pieces = int(replica.log_start_offset), list[bytes]()
    while offset < end:
        data = replica.log.read_batches(offset, 1 << 20)
        for at, header in batches(data):
            if header.last_offset >= end:
                return b"".join(pieces)
            pieces.append(data[at : at + header.size])
            offset = header.next_offset
    return b"".join(pieces)
