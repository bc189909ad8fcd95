"""What was read of a broker at one moment: plain numbers, from which the families are made in another thread. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.log.traffic import Traffic
from moldau.net.durations import Durations


class PartitionNumbers(NamedTuple):
    """A replica that this broker hosts. `isr` and `replicas` are numbers of brokers. `least_in_sync`: the smallest
    number of in-sync replicas with which the partition takes writes with acks=all."""

    topic: str
    partition: int
    leads: bool
    leader: int
    is_preferred: bool
    replicas: int
    isr: int
    least_in_sync: int
    start: int
    end: int
    high_watermark: int
    stable: int
    size: int
    segments: int


class GroupOffset(NamedTuple):
    """A committed offset. `end` is None where nobody could say where the partition ends; `waiting_ms` is the timestamp
    of the first record that the group has not read, None if there is no such record (`records.lag`). `start` is where
    the log begins."""

    topic: str
    partition: int
    offset: int
    end: int | None
    waiting_ms: int | None
    start: int = 0


class GroupNumbers(NamedTuple):
    """A consumer group that this broker coordinates."""

    group: str
    protocol_type: str
    state: str
    kind: str
    members: int
    offsets: Sequence[GroupOffset]


class BrokerNumbers(NamedTuple):
    """A broker that is up, and where other brokers reach it."""

    id: int
    host: str
    port: int
    rack: str | None


class TopicNumbers(NamedTuple):
    """`replication_factor` is the largest of its partitions."""

    name: str
    partitions: int
    replication_factor: int
    cleanup_policy: str


class LeaderlessPartition(NamedTuple):
    topic: str
    partition: int
    replicas: int
    isr: int


@dataclass
class Snapshot:
    """All of it. What concerns the whole cluster is there only if this broker `controls` it, so that a sum over all
    brokers counts it once."""

    now_ms: int
    broker_id: int
    cluster_id: str
    controls: bool
    brokers: Sequence[BrokerNumbers] = ()
    topics: Sequence[TopicNumbers] = ()
    leaderless: Sequence[LeaderlessPartition] = ()
    partitions: list[PartitionNumbers] = field(default_factory=list)
    traffic: Mapping[str, Traffic] = field(default_factory=dict)
    """By topic."""
    traffic_gone: Traffic = field(default_factory=Traffic)
    """Of topics that this broker does not host any more."""
    groups: list[GroupNumbers] = field(default_factory=list)
    transactions: Mapping[str, int] = field(default_factory=dict)
    """The number of transactional ids in each state, of those that this broker coordinates."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """By API."""
    durations: Mapping[str, Durations] = field(default_factory=dict)
    """By API: from the arrival of a request to its reply."""
    loop_delay: Durations = field(default_factory=Durations)
    loop_idle: float = 1.0
    connections: Mapping[str, int] = field(default_factory=dict)
    """By listener."""
    values: dict[str, float] = field(default_factory=dict)
    """Single numbers, by the name of their row in `own_names.VALUES`."""
    directories: Sequence[tuple[str, bool, int]] = ()
    """Each folder of log.dirs: its path, whether it is online, the bytes of its logs."""
    process: Mapping[str, float] = field(default_factory=dict)
    """What the operating system says of the process, by the names of Prometheus' own clients."""
