"""How long records take into a mirror: counted by batches, and shown as an average and a maximum."""

from moldau.metrics.families import text_of
from moldau.mirror.latency import WINDOW_S, RecordTimes, ReplicationLatency, latency_families
from moldau.names import TopicPartition
from moldau.records.batch import CONTROL_BIT
from tests.mirror.test_copies import WHOLE

BATCH = WHOLE._replace(max_timestamp=10_000)


def test_records_count_with_the_newest_time_of_their_batch_and_markers_do_not_count() -> None:
    times = RecordTimes().with_batch(BATCH).with_batch(BATCH._replace(count=1, max_timestamp=7_000))
    assert times == RecordTimes(5, 47_000, 7_000)
    for other in (
        BATCH._replace(attributes=CONTROL_BIT),
        BATCH._replace(max_timestamp=-1),
        BATCH._replace(count=0),
    ):
        assert times.with_batch(other) == times


def test_the_maximum_is_that_of_the_last_two_windows() -> None:
    latency = ReplicationLatency()
    latency.arrived(RecordTimes(), 0, 1)
    latency.arrived(RecordTimes(2, 19_000, 9_000), 11_000, 100)
    assert (latency.records, latency.total_s, latency.max_s(100)) == (2, 3.0, 2.0)
    latency.arrived(RecordTimes(1, 11_000, 11_000), 11_500, 100 + WINDOW_S)
    assert latency.max_s(100 + WINDOW_S) == 2.0
    assert latency.max_s(100 + 2 * WINDOW_S) == 0.5
    assert latency.max_s(100 + 4 * WINDOW_S) == 0
    latency.arrived(RecordTimes(1, 0, 0), 1_000, 100 + 4 * WINDOW_S)
    assert latency.max_s(100 + 6 * WINDOW_S) == 0


def test_a_timestamp_in_the_future_counts_as_no_latency() -> None:
    latency = ReplicationLatency()
    latency.arrived(RecordTimes(1, 99_000, 99_000), 1_000, 0)
    assert (latency.records, latency.total_s, latency.max_s(0)) == (1, 0, 0)


def test_prometheus_is_told_of_partitions_that_records_have_arrived_in() -> None:
    latency = ReplicationLatency()
    latency.arrived(RecordTimes(4, 40_000, 10_000), 10_500, 5)
    latencies = {TopicPartition("t", 1): latency, TopicPartition("t", 0): ReplicationLatency()}
    lines = text_of(latency_families(latencies, 6), open_metrics=False).decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'moldau_mirror_partition_records_total{topic="t",partition="1"} 4',
        'moldau_mirror_partition_latency_seconds_total{topic="t",partition="1"} 2.0',
        'moldau_mirror_partition_latency_max_seconds{topic="t",partition="1"} 0.5',
    ]
