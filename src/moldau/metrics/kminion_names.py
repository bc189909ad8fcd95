"""The names of kminion, another exporter beside a cluster, for its dashboards: `metrics.names=kminion`. Pure.

Served are its metrics of brokers, topics, partitions and groups; those of its own end-to-end test are not. Sums over
all brokers are right, as in `exporter_names`: a topic has a series of each broker that leads some of its partitions.
"""

from collections.abc import Iterator

from moldau.metrics.families import Family, gauge, label_value, labels
from moldau.metrics.snapshot import Snapshot
from moldau.records.lag import lag_records

OF = "kminion_kafka_"
STABLE = "Stable"


def kminion_families(snapshot: Snapshot) -> Iterator[Family]:
    yield from _cluster(snapshot)
    yield from _topics(snapshot)
    yield from _groups(snapshot)


def _cluster(snapshot: Snapshot) -> Iterator[Family]:
    if snapshot.controls:
        of_cluster = labels(
            broker_count=len(snapshot.brokers),
            cluster_id=snapshot.cluster_id,
            cluster_version="v4.3",
            controller_id=snapshot.broker_id,
        )
        yield gauge(f"{OF}cluster_info", "The cluster.", [(of_cluster, 1)])
        yield gauge(
            f"{OF}broker_info",
            "The brokers.",
            [
                (
                    labels(
                        address=one.host,
                        broker_id=one.id,
                        is_controller=str(one.id == snapshot.broker_id).lower(),
                        port=one.port,
                        rack_id=one.rack or "",
                    ),
                    1,
                )
                for one in snapshot.brokers
            ],
        )
    size = sum(row.size for row in snapshot.partitions)
    yield gauge(
        f"{OF}broker_log_dir_size_total_bytes", "Bytes of all logs.", [(labels(broker_id=snapshot.broker_id), size)]
    )


def _topics(snapshot: Snapshot) -> Iterator[Family]:
    yield gauge(
        f"{OF}topic_info",
        "The topics.",
        [
            (
                labels(
                    cleanup_policy=topic.cleanup_policy,
                    partition_count=topic.partitions,
                    replication_factor=topic.replication_factor,
                    topic_name=topic.name,
                ),
                1,
            )
            for topic in snapshot.topics
        ],
    )
    led = [row for row in snapshot.partitions if row.leads]
    at = [f'{{partition_id="{row.partition}",topic_name="{row.topic}"}}' for row in led]
    yield gauge(
        f"{OF}topic_partition_high_water_mark",
        "The end that consumers see.",
        [(place, row.high_watermark) for place, row in zip(at, led, strict=True)],
    )
    yield gauge(
        f"{OF}topic_partition_low_water_mark",
        "The first offset.",
        [(place, row.start) for place, row in zip(at, led, strict=True)],
    )
    high, low, sizes = dict[str, int](), dict[str, int](), dict[str, int]()
    for row in led:
        high[row.topic] = high.get(row.topic, 0) + row.high_watermark
        low[row.topic] = low.get(row.topic, 0) + row.start
    for row in snapshot.partitions:
        sizes[row.topic] = sizes.get(row.topic, 0) + row.size
    for name, sentence, by_topic in (
        ("topic_high_water_mark_sum", "The ends of a topic's partitions, added.", high),
        ("topic_low_water_mark_sum", "The first offsets of a topic's partitions, added.", low),
        ("topic_log_dir_size_total_bytes", "Bytes of a topic's logs, replicas included.", sizes),
    ):
        yield gauge(
            f"{OF}{name}", sentence, [(f'{{topic_name="{topic}"}}', value) for topic, value in by_topic.items()]
        )


def _groups(snapshot: Snapshot) -> Iterator[Family]:
    coordinator = snapshot.broker_id
    yield gauge(
        f"{OF}consumer_group_info",
        "1 if a group is stable.",
        [
            (
                labels(
                    coordinator_id=coordinator,
                    group_id=group.group,
                    protocol="",
                    protocol_type=group.protocol_type,
                    state=group.state,
                ),
                int(group.state == STABLE),
            )
            for group in snapshot.groups
        ],
    )
    yield gauge(
        f"{OF}consumer_group_members",
        "Members of a group.",
        [(labels(group_id=group.group), group.members) for group in snapshot.groups],
    )
    lags: list[tuple[str, float]] = []
    lag_sums, offset_sums = dict[str, int](), dict[str, int]()
    for group in snapshot.groups:
        name = f'group_id="{label_value(group.group)}"'
        for topic, partition, offset, end, _, start in group.offsets:
            of_topic = f'{{{name},topic_name="{topic}"}}'
            offset_sums[of_topic] = offset_sums.get(of_topic, 0) + offset
            if end is not None:
                lag = lag_records(offset, start, end)
                lags.append((f'{{{name},partition_id="{partition}",topic_name="{topic}"}}', lag))
                lag_sums[of_topic] = lag_sums.get(of_topic, 0) + lag
    yield gauge(f"{OF}consumer_group_topic_partition_lag", "The lag of a group in a partition.", lags)
    yield gauge(f"{OF}consumer_group_topic_lag", "The lag of a group in a topic.", lag_sums.items())
    yield gauge(f"{OF}consumer_group_topic_offset_sum", "The committed offsets in a topic, added.", offset_sums.items())
