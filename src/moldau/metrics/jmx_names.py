"""The names that Prometheus' JMX exporter makes of Kafka's own metrics: Strimzi's dashboards ask for them. Pure.

Rules of that exporter: everything in lower case, `...PerSec` of a count becomes `_total`, `...Percent` becomes
`_percent`, quantiles are gauges with a label. What a follower hosts has the same names as what a leader does; gauges
that only a leader can know are 0 on followers, as in Kafka, so that sums over all brokers count each partition once.
"""

from collections.abc import Iterator

from moldau.log.traffic import Traffic
from moldau.metrics.families import Family, MetricKind, counter, gauge, labels, one
from moldau.metrics.snapshot import PartitionNumbers, Snapshot
from moldau.net.durations import quantile

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

TRAFFIC = (
    ("messagesin", "records_in", "Records appended."),
    ("bytesin", "bytes_in", "Bytes of record batches appended."),
    ("bytesout", "bytes_out", "Bytes of records sent to consumers."),
    ("totalproducerequests", "produces", "Batches that Produce requests had for partitions here."),
    ("failedproducerequests", "failed_produces", "Batches that were refused because they, or their log, are bad."),
    ("totalfetchrequests", "fetches", "Partitions read for Fetch requests."),
    ("failedfetchrequests", "failed_fetches", "Partitions that could not be read."),
    ("replicationbytesout", "replicated_out", "Bytes of records sent to followers."),
    ("replicationbytesin", "replicated_in", "Bytes of records that followers here have taken from leaders."),
)
"""Behind `kafka_server_brokertopicmetrics_`, with the number in `Traffic` and the sentence."""


def partition_labels(row: PartitionNumbers) -> str:
    return f'{{topic="{row.topic}",partition="{row.partition}"}}'  # a topic's name needs no escapes


def jmx_families(snapshot: Snapshot) -> Iterator[Family]:
    yield from _traffic(snapshot)
    yield from _partitions(snapshot)
    yield from _replica_manager(snapshot)
    yield from _controller(snapshot)
    yield from _network(snapshot)


def _traffic(snapshot: Snapshot) -> Iterator[Family]:
    total = Traffic()
    for topic_traffic in (*snapshot.traffic.values(), snapshot.traffic_gone):
        total.add(topic_traffic)
    named = [("", total), *((f'{{topic="{topic}"}}', one) for topic, one in snapshot.traffic.items())]
    for name, value, sentence in TRAFFIC:
        # The sample without a topic is the broker's own sum, as in Kafka.
        samples = [(topic, getattr(one, value)) for topic, one in named]
        yield counter(f"kafka_server_brokertopicmetrics_{name}", sentence, samples)


def _partitions(snapshot: Snapshot) -> Iterator[Family]:
    rows = [(partition_labels(row), row) for row in snapshot.partitions]
    led = [(at, row.leads, row.replicas, row.isr, row.least_in_sync) for at, row in rows]
    log, of = "kafka_log_log_", "kafka_cluster_partition_"

    def family(name: str, sentence: str, samples: list[str]) -> Family:
        return Family(name, MetricKind.GAUGE, sentence, samples)

    # One expression for each sample, without a call: there may be a hundred thousand.
    yield family(f"{log}size", "Bytes of a partition's segments.", [f"{at} {row.size}" for at, row in rows])
    yield family(f"{log}logstartoffset", "First offset of a partition.", [f"{at} {row.start}" for at, row in rows])
    yield family(f"{log}logendoffset", "The offset of the next record.", [f"{at} {row.end}" for at, row in rows])
    yield family(f"{log}numlogsegments", "Segments of a partition.", [f"{at} {row.segments}" for at, row in rows])
    yield family(
        f"{of}replicascount",
        "Replicas; 0 on followers.",
        [f"{at} {count if leads else 0}" for at, leads, count, *_ in led],
    )
    yield family(
        f"{of}insyncreplicascount",
        "In-sync replicas; 0 on followers.",
        [f"{at} {isr if leads else 0}" for at, leads, _, isr, _ in led],
    )
    yield family(
        f"{of}underreplicated",
        "1 if replicas are not in sync.",
        [f"{at} {1 if leads and isr < count else 0}" for at, leads, count, isr, _ in led],
    )
    yield family(
        f"{of}underminisr",
        "1 if fewer replicas are in sync than min.insync.replicas.",
        [f"{at} {1 if leads and isr < least else 0}" for at, leads, _, isr, least in led],
    )
    yield family(
        f"{of}atminisr",
        "1 if exactly min.insync.replicas are in sync.",
        [f"{at} {1 if leads and isr == least else 0}" for at, leads, _, isr, least in led],
    )
    yield family(
        f"{of}laststableoffsetlag",
        "Offsets between the last stable offset and the end of the log.",
        [f"{at} {row.end - row.stable if row.end > row.stable else 0}" for at, row in rows],
    )


def _replica_manager(snapshot: Snapshot) -> Iterator[Family]:
    rows, values = snapshot.partitions, snapshot.values
    led = [row for row in rows if row.leads]
    manager = "kafka_server_replicamanager_"
    yield one(f"{manager}partitioncount", "Replicas on this broker.", len(rows))
    yield one(f"{manager}leadercount", "Partitions that this broker leads.", len(led))
    yield one(
        f"{manager}underreplicatedpartitions",
        "Partitions led here with replicas that are not in sync.",
        sum(row.isr < row.replicas for row in led),
    )
    yield one(
        f"{manager}underminisrpartitioncount",
        "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
        sum(row.isr < row.least_in_sync for row in led),
    )
    yield one(
        f"{manager}atminisrpartitioncount",
        "Partitions led here with exactly min.insync.replicas in sync.",
        sum(row.isr == row.least_in_sync for row in led),
    )
    yield one(
        f"{manager}offlinereplicacount",
        "Replicas of this broker whose log folder is offline.",
        values.get("offline_replicas", 0),
    )
    for name, sentence in (
        ("isrshrinks", "Changes of in-sync replicas that took one away."),
        ("isrexpands", "Changes of in-sync replicas that added one."),
        ("failedisrupdates", "Changes of in-sync replicas that the controller refused."),
    ):
        yield counter(f"{manager}{name}", sentence, [("", values.get(name, 0))])
    offline = sum(not online for _, online, _ in snapshot.directories)
    yield one("kafka_log_logmanager_offlinelogdirectorycount", "Folders of log.dirs that failed.", offline)


def _controller(snapshot: Snapshot) -> Iterator[Family]:
    controls, of = snapshot.controls, "kafka_controller_kafkacontroller_"
    partitions = sum(topic.partitions for topic in snapshot.topics)
    yield one(f"{of}activecontrollercount", "1 on the controller, 0 on all other brokers.", int(controls))
    yield one(f"{of}offlinepartitionscount", "Partitions without a leader.", len(snapshot.leaderless))
    yield one(f"{of}globaltopiccount", "Topics of the cluster; 0 on other brokers.", len(snapshot.topics))
    yield one(f"{of}globalpartitioncount", "Partitions of the cluster; 0 on other brokers.", partitions)
    yield one(f"{of}activebrokercount", "Brokers that are up; 0 on other brokers.", len(snapshot.brokers))
    yield counter(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Leaders that were elected although they may lack records.",
        [("", snapshot.values.get("unclean_elections", 0))],
    )


def _network(snapshot: Snapshot) -> Iterator[Family]:
    idle, values = snapshot.loop_idle, snapshot.values
    yield one(
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "The share of the last minute in which the event loop's thread did nothing (0 to 1).",
        idle,
    )
    yield one(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "The same: requests are handled on the event loop.",
        idle,
    )
    yield gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Open connections.",
        [(labels(listener=name, networkProcessor=0), count) for name, count in snapshot.connections.items()],
    )
    yield counter(
        "kafka_network_requestmetrics_requests",
        "Requests.",
        [(labels(request=api), count) for api, count in snapshot.requests.items()],
    )
    total = "kafka_network_requestmetrics_totaltimems"
    yield gauge(
        total,
        "Milliseconds from a request's arrival to its reply, since the start.",
        [
            (labels(request=api, quantile=share), quantile(one, share) * 1000)
            for api, one in snapshot.durations.items()
            for share in QUANTILES
        ],
    )
    yield gauge(  # not a counter: the name of one would end in `_total`
        f"{total}_count",
        "Requests whose time was measured.",
        [(labels(request=api), one.count) for api, one in snapshot.durations.items()],
    )
    yield one(
        "kafka_network_requestchannel_requestqueuesize",
        "Connections whose next request waits for its share of the loop.",
        values.get("connections_waiting", 0),
    )
    yield gauge(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Requests that wait for records or replicas.",
        [(labels(delayedOperation=name), values.get(f"waiting_{name}", 0)) for name in ("Produce", "Fetch")],
    )
    for direction in ("read", "write"):
        done = snapshot.process.get(f"disk_{direction}_bytes")
        if done is not None:
            yield one(
                f"kafka_server_kafkaserver_linux_disk_{direction}_bytes",
                f"Bytes that this process made the disks {direction}.",
                done,
            )
