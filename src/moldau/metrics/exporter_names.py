"""The names of kafka_exporter, a process beside a cluster: Grafana's dashboard 7589 and one of Strimzi's ask for them.
Pure.

kafka_exporter is one process that asks the whole cluster. Here each broker serves its part: a partition's numbers come
from its leader, a group's from its coordinator, and what there is once in a cluster (brokers, topics, partitions that
have no leader) from the controller. A sum over all brokers is therefore what kafka_exporter would have told.
"""

from collections.abc import Iterable, Iterator

from moldau.metrics.families import Family, MetricKind, gauge, label_value, labels, one
from moldau.metrics.jmx_names import partition_labels
from moldau.metrics.snapshot import Snapshot
from moldau.records.lag import NOT_KNOWN, lag_records, lag_seconds


def exporter_families(snapshot: Snapshot) -> Iterator[Family]:
    if snapshot.controls:
        yield one("kafka_brokers", "Brokers in the cluster.", len(snapshot.brokers))
        yield gauge(
            "kafka_broker_info",
            "The id and address of each broker.",
            [(labels(id=one.id, address=f"{one.host}:{one.port}"), 1) for one in snapshot.brokers],
        )
        yield gauge(
            "kafka_topic_partitions",
            "Partitions of a topic.",
            [(f'{{topic="{topic.name}"}}', topic.partitions) for topic in snapshot.topics],
        )
    yield from _partitions(snapshot)
    yield from _groups(snapshot)


def _partitions(snapshot: Snapshot) -> Iterator[Family]:
    led = [(partition_labels(row), row) for row in snapshot.partitions if row.leads]
    orphans = [(f'{{topic="{row.topic}",partition="{row.partition}"}}', row) for row in snapshot.leaderless]

    def family(name: str, sentence: str, samples: list[str], of_orphans: Iterable[str] = ()) -> Family:
        return Family(f"kafka_topic_partition_{name}", MetricKind.GAUGE, sentence, [*samples, *of_orphans])

    yield family(
        "current_offset",
        "The offset of the next record that consumers will see.",
        [f"{at} {row.high_watermark}" for at, row in led],
    )
    yield family("oldest_offset", "The first offset of a partition.", [f"{at} {row.start}" for at, row in led])
    yield family(
        "leader",
        "The id of a partition's leader; -1 without one.",
        [f"{at} {row.leader}" for at, row in led],
        (f"{at} -1" for at, _ in orphans),
    )
    yield family(
        "leader_is_preferred",
        "1 if the first of a partition's replicas leads it.",
        [f"{at} {1 if row.is_preferred else 0}" for at, row in led],
        (f"{at} 0" for at, _ in orphans),
    )
    yield family(
        "replicas",
        "Replicas of a partition.",
        [f"{at} {row.replicas}" for at, row in led],
        (f"{at} {orphan.replicas}" for at, orphan in orphans),
    )
    yield family(
        "in_sync_replica",
        "In-sync replicas of a partition.",
        [f"{at} {row.isr}" for at, row in led],
        (f"{at} {orphan.isr}" for at, orphan in orphans),
    )
    yield family(
        "under_replicated_partition",
        "1 if a replica of a partition is not in sync.",
        [f"{at} {1 if row.isr < row.replicas else 0}" for at, row in led],
        (f"{at} {1 if orphan.isr < orphan.replicas else 0}" for at, orphan in orphans),
    )


def _groups(snapshot: Snapshot) -> Iterator[Family]:
    offsets: list[tuple[str, float]] = []
    lags: list[tuple[str, float]] = []
    seconds: list[tuple[str, float]] = []
    offset_sums: dict[str, int] = {}
    lag_sums: dict[str, int] = {}
    for group in snapshot.groups:
        name = f'{{consumergroup="{label_value(group.group)}"'
        for topic, partition, offset, end, waiting_ms, start in group.offsets:
            of_topic = f'{name},topic="{topic}"'
            at = f'{of_topic},partition="{partition}"}}'
            offsets.append((at, offset))
            offset_sums[of_topic + "}"] = offset_sums.get(of_topic + "}", 0) + offset
            if end is not None:
                records = lag_records(offset, start, end)
                lags.append((at, records))
                lag_sums[of_topic + "}"] = lag_sums.get(of_topic + "}", 0) + records
            if waiting_ms != NOT_KNOWN:
                seconds.append((at, lag_seconds(snapshot.now_ms, waiting_ms)))
    of = "kafka_consumergroup_"
    yield gauge(f"{of}current_offset", "The committed offset of a group.", offsets)
    yield gauge(f"{of}lag", "Offsets between a group's committed offset and the end of the partition.", lags)
    yield gauge(
        f"{of}lag_seconds",
        "The age of the oldest record that a group has not read, by the record's timestamp; 0 if it has read all.",
        seconds,
    )
    yield gauge(f"{of}current_offset_sum", "The committed offsets of a group in a topic, added.", offset_sums.items())
    yield gauge(f"{of}lag_sum", "The lag of a group in all partitions of a topic.", lag_sums.items())
    yield gauge(
        f"{of}members",
        "Members of a group.",
        [(f'{{consumergroup="{label_value(group.group)}"}}', group.members) for group in snapshot.groups],
    )
