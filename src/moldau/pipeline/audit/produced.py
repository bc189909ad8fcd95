"""The producers' side of the audit: monitoring events, added up by topic and window.

Events of one instance are numbered: an event that was sent twice counts once, and a missing one is noticed. What an
instance sent late counts as late or as replayed (`reported.py`), which is known when all of its events were read.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from moldau.client.fetching import EARLIEST, LATEST, list_offsets, read_columns, topic_partitions
from moldau.client.monitoring import InvalidEvent, MonitoringEvent, from_json
from moldau.errors import ConfigError
from moldau.names import TopicPartition, counted
from moldau.pipeline.audit.reported import Reported, Sent, report_of


@dataclass
class Instance:
    """One run of one producer: which of its events were read, and what they said of each audited topic."""

    producer: str
    server: str
    started_ms: int
    seen: set[int] = field(default_factory=set)
    closed: bool = False
    sent: dict[str, Sent] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        return max(self.seen) + 1 - len(self.seen)


@dataclass
class Produced:
    """What the producers have reported about some topics."""

    topics: dict[str, Reported]
    instances: dict[str, Instance]
    invalid: int = 0

    def notes(self) -> list[str]:
        """A sentence for each thing that makes the producers' counts incomplete."""
        sentences = []
        if self.invalid:
            sentences.append(f"The audit topic has {counted(self.invalid, 'record')} that cannot be read as an event.")
        for instance in sorted(self.instances.values(), key=lambda one: (one.producer, one.server)):
            name = f"Producer {instance.producer} on {instance.server}"
            if instance.missing:
                sentences.append(
                    f"{name}: {counted(instance.missing, 'monitoring event')} missing from the audit topic."
                )
            if not instance.closed:
                sentences.append(f"{name} still runs, or ended without its last report.")
        return sentences


def produced(bootstrap: str, audit_topic: str, topics: Collection[str], length_ms: int) -> Produced:
    """Read all monitoring events about these topics. Raises `KafkaError`, and `ConfigError` if a producer's windows do
    not fit into windows of this length."""
    return add_up(_events(bootstrap, audit_topic), topics, length_ms)


def add_up(events: Iterable[MonitoringEvent | None], topics: Collection[str], length_ms: int) -> Produced:
    """Add up events in any order; None stands for a record that is not an event."""
    instances: dict[str, Instance] = {}
    invalid = 0
    for event in events:
        if event is None:
            invalid += 1
            continue
        # a producer of format 1 does not say when it started: its first event is at most audit_interval_ms later
        started_ms = event.sent_ms if event.started_ms is None else event.started_ms
        instance = instances.setdefault(event.instance, Instance(event.producer, event.server, started_ms))
        if event.sequence in instance.seen:
            continue
        instance.seen.add(event.sequence)
        instance.closed = instance.closed or event.closed
        instance.started_ms = min(instance.started_ms, started_ms)
        if event.topic not in topics:
            continue
        if length_ms % event.window_ms:
            raise ConfigError(
                f"producer {event.producer} counts by windows of {event.window_ms} ms (audit_window_ms), of which "
                f"--window must be a multiple, not {length_ms} ms"
            )
        instance.sent.setdefault(event.topic, Sent(event.window_ms)).add(event.window_start_ms, event.digest)
    reports = {topic: _report(topic, instances.values(), length_ms) for topic in topics}
    return Produced(reports, instances, invalid)


def _report(topic: str, instances: Iterable[Instance], length_ms: int) -> Reported:
    having = [one for one in instances if topic in one.sent]
    return report_of([(one.producer, one.server, one.started_ms, one.sent[topic]) for one in having], length_ms)


def _events(bootstrap: str, audit_topic: str) -> Iterator[MonitoringEvent | None]:
    partitions = [TopicPartition(audit_topic, p) for p in topic_partitions(bootstrap, [audit_topic])[audit_topic]]
    first = list_offsets(bootstrap, dict.fromkeys(partitions, EARLIEST))
    last = list_offsets(bootstrap, dict.fromkeys(partitions, LATEST))
    for tp in partitions:
        for batch in read_columns(bootstrap, *tp, first[tp], last[tp], isolation_level="read_uncommitted"):
            for value in batch.column("value").to_pylist():
                try:
                    yield from_json(value or b"")
                except InvalidEvent:
                    yield None
