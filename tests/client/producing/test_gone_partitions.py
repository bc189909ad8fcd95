"""When records for a partition that metadata do not have any more are given up."""

from moldau.client.cluster_view import ClusterView
from moldau.client.producing.gone_partitions import GONE_S, GonePartitions
from moldau.names import TopicPartition
from moldau.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

TP = TopicPartition("t", 1)


def metadata(partitions: int | None) -> ClusterView:
    """Metadata of a topic with that many partitions; None if the topic is missing."""
    view = ClusterView()
    topic = MetadataResponseTopic(error_code=0 if partitions else 3, name=TP.topic)
    topic.partitions = [MetadataResponsePartition(partition_index=number) for number in range(partitions or 0)]
    view.apply(MetadataResponse(topics=[topic]), everything=True)
    return view


def test_a_partition_is_gone_once_its_topic_has_lacked_it_for_long_enough() -> None:
    gone = GonePartitions()
    assert gone.failure(TP, metadata(1), 100.0) is None
    assert gone.failure(TP, metadata(1), 99.9 + GONE_S) is None
    failure = gone.failure(TP, metadata(1), 100.0 + GONE_S)
    assert failure is not None and not failure.retriable
    assert str(failure) == "topic t has no partition 1: it has 1 partition, 0"


def test_a_partition_that_a_broker_lacked_for_a_moment_is_not_gone() -> None:
    gone = GonePartitions()
    assert gone.failure(TP, metadata(1), 0.0) is None
    assert gone.failure(TP, metadata(2), 1.0) is None
    assert gone.failure(TP, metadata(1), GONE_S) is None
    assert gone.failure(TP, metadata(1), 2 * GONE_S) is not None


def test_a_topic_that_is_missing_may_come_back() -> None:
    gone = GonePartitions()
    assert gone.failure(TP, metadata(None), 0.0) is None
    assert gone.failure(TP, metadata(None), 9 * GONE_S) is None
