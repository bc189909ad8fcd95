"""Our own names: what neither Kafka nor kafka_exporter has a name for. All begin with `moldau_`, except those that
Prometheus' own clients use for a process. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from moldau.metrics.families import Family, MetricKind, counter, gauge, histogram, labels, one
from moldau.metrics.snapshot import Snapshot
from moldau.net.durations import by_label, samples_of


class ValueRow(NamedTuple):
    """A single number: its name in `Snapshot.values`, the name shown, its kind and its sentence."""

    key: str
    name: str
    kind: MetricKind
    sentence: str


G, C = MetricKind.GAUGE, MetricKind.COUNTER
VALUES = (
    ValueRow("records_in", "moldau_traffic_records_in", C, "Records appended, in all topics together."),
    ValueRow("bytes_in", "moldau_traffic_bytes_in", C, "Bytes of record batches appended, in all topics together."),
    ValueRow("bytes_out", "moldau_traffic_bytes_out", C, "Bytes of records sent to consumers, of all topics together."),
    ValueRow("long_turns", "moldau_loop_long_turns", C, "Turns of the event loop above 100 ms of processor time."),
    ValueRow("longest_turn_s", "moldau_loop_longest_turn_seconds", G, "The longest turn since the start."),
    ValueRow("request_bytes", "moldau_request_memory_bytes", G, "Memory for requests that are not handled yet."),
    ValueRow("request_bytes_max", "moldau_request_memory_limit_bytes", G, "Its limit, queued.max.request.bytes."),
    ValueRow("connections_waiting", "moldau_connections_waiting", G, "Connections that wait for their share."),
    ValueRow("handshakes", "moldau_tls_handshakes_open", G, "TLS handshakes that are not done."),
    ValueRow("wide_bytes", "moldau_wide_requests_bytes", G, "Bytes of wide requests that wait or are worked on."),
    ValueRow("open_files", "moldau_log_open_files", G, "Files of logs that are open."),
    ValueRow("held_files", "moldau_log_held_files", G, "Files that unsent replies hold."),
    ValueRow("unflushed", "moldau_log_unflushed_records", G, "Records behind the recovery points of all logs."),
    ValueRow("cleanings", "moldau_compaction_cleanings", C, "Logs that were compacted."),
    ValueRow("cleaned_bytes", "moldau_compaction_removed_bytes", C, "Bytes that compaction has removed."),
    ValueRow("cleaner_bytes", "moldau_compaction_moved_bytes", C, "Bytes that compaction has read and written."),
    ValueRow("cleaner_s", "moldau_compaction_seconds", C, "Time spent on compaction."),
    ValueRow("uncleanable", "moldau_compaction_uncleanable_logs", G, "Damaged logs that are not compacted."),
    ValueRow("catching_up", "moldau_replication_replicas_behind", G, "Followers here that are not in sync."),
    ValueRow("telemetry_clients", "moldau_client_metrics_instances", G, "Clients that push metrics, or asked which."),
    ValueRow("telemetry_pushes", "moldau_client_metrics_pushes", C, "Pushes of metrics by clients."),
    ValueRow("telemetry_bytes", "moldau_client_metrics_bytes", C, "Bytes of metrics taken, as they were pushed."),
    ValueRow("telemetry_throttled", "moldau_client_metrics_throttled", C, "Requests that came before their time."),
    ValueRow("telemetry_unknown", "moldau_client_metrics_unknown_subscriptions", C, "Pushes of outdated metrics."),
    ValueRow("telemetry_refused", "moldau_client_metrics_refused", C, "Pushes that were too large, or not readable."),
    ValueRow("telemetry_crowded", "moldau_client_metrics_crowded", C, "Pushes put off: too many wait for the topic."),
    ValueRow("telemetry_held", "moldau_client_metrics_held_bytes", G, "Bytes of metrics that wait for the topic."),
    ValueRow("telemetry_written", "moldau_client_metrics_records", C, "Records written to client.metrics.topic."),
    ValueRow("telemetry_lost", "moldau_client_metrics_lost_records", C, "Records that could not be written there."),
    ValueRow("mirrors", "moldau_mirror_partitions", G, "Partitions here that mirror another cluster."),
    ValueRow("collections", "moldau_python_collections", C, "Garbage collections of the whole heap."),
    ValueRow("scrape_s", "moldau_metrics_last_scrape_seconds", G, "How long the scrape before this one took."),
)
_PROCESS = {
    "process_cpu_seconds": (C, "Processor time of the process."),
    "process_resident_memory_bytes": (G, "Memory of the process."),
    "process_virtual_memory_bytes": (G, "Address space of the process."),
    "process_open_fds": (G, "Open file descriptors."),
    "process_max_fds": (G, "The limit of open file descriptors."),
    "process_threads": (G, "Threads of the process."),
    "process_start_time_seconds": (G, "When the process started, in seconds since 1970."),
}


def own_families(snapshot: Snapshot, version: str) -> Iterator[Family]:
    info = labels(version=version, cluster=snapshot.cluster_id, broker=snapshot.broker_id)
    yield gauge("moldau_broker_info", "This broker.", [(info, 1)])
    yield histogram(
        "moldau_request_duration_seconds",
        "The time from a request's arrival to its reply, waiting for records or replicas included.",
        by_label("api", snapshot.durations),
    )
    yield histogram(
        "moldau_loop_delay_seconds",
        "How late the event loop runs a timer: what every client waits in addition.",
        samples_of(snapshot.loop_delay),
    )
    for key, name, kind, sentence in VALUES:
        value = snapshot.values.get(key)
        if value is not None:
            yield (counter(name, sentence, [("", value)]) if kind is C else one(name, sentence, value))
    yield gauge(
        "moldau_groups",
        "Consumer groups that this broker coordinates.",
        _counted((group.kind, group.state) for group in snapshot.groups),
    )
    yield gauge(
        "moldau_transactional_ids",
        "Transactional ids that this broker coordinates, by the state of their transaction.",
        [(labels(state=state), count) for state, count in snapshot.transactions.items()],
    )
    yield gauge(
        "moldau_log_directory_online",
        "1 if a folder of log.dirs is online.",
        [(labels(path=path), int(online)) for path, online, _ in snapshot.directories],
    )
    yield gauge(
        "moldau_log_directory_bytes",
        "Bytes of the logs in a folder of log.dirs.",
        [(labels(path=path), size) for path, _, size in snapshot.directories],
    )
    for name, (kind, sentence) in _PROCESS.items():
        value = snapshot.process.get(name)
        if value is not None:
            yield (counter(name, sentence, [("", value)]) if kind is C else one(name, sentence, value))


def _counted(keys: Iterator[tuple[str, str]]) -> list[tuple[str, float]]:
    counts: dict[tuple[str, str], int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return [(labels(kind=kind, state=state), count) for (kind, state), count in counts.items()]
