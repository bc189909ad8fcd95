"""The settings of a consumer."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from moldau.client.consuming.assigning import ASSIGNORS, COOPERATIVE
from moldau.client.consuming.fetched.record import Record
from moldau.client.fetching import ISOLATION_LEVELS
from moldau.client.offsets import EARLIEST, LATEST
from moldau.client.settings import one_of, setting, settings
from moldau.client.zookeeper.group_names import GroupLayout, check_group
from moldau.client.zookeeper.zookeeper_settings import ZooKeeperSettings
from moldau.errors import ConfigError

CLASSIC, CONSUMER = "classic", "consumer"
_JAVA_NAMES = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": COOPERATIVE,
}
_JAVA_DESERIALIZERS = {
    "ByteArrayDeserializer": None,
    "ByteBufferDeserializer": None,
    "BytesDeserializer": None,
    "StringDeserializer": bytes.decode,
}
_OF_CLASSIC = {
    "session_timeout_ms": "the broker has group.consumer.session.timeout.ms",
    "heartbeat_interval_ms": "the broker has group.consumer.heartbeat.interval.ms",
    "partition_assignment_strategy": "the broker assigns, see group_remote_assignor",
}
"""Settings that only the classic protocol has, and what takes their place."""
RESETS = {"earliest": EARLIEST, "latest": LATEST}
_OLDER_RESETS = {"smallest": "earliest", "largest": "latest"}
"""The words of Kafka 0.7 and 0.8."""
BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_UNIT_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


class ConsumerInterceptor(Protocol):
    """Sees what a consumer reads and commits (KIP-42)."""

    def on_consume(self, records: list[Record]) -> list[Record]:
        """The records that the caller is to get in place of these."""

    def on_commit(self, offsets: Any) -> object:
        """These offsets were committed: partition -> `OffsetAndMetadata`."""


@settings
class ConsumerSettings(ZooKeeperSettings):
    """The settings of a consumer; sizes are in bytes, times in ms. `subscribe` and `commit` need a `group_id`."""

    owner: ClassVar[str] = "the consumer"

    group_id: str | None = setting(
        default=None, aliases=("groupid",), about="The consumer group, whose members share the partitions."
    )
    group_instance_id: str | None = setting(
        default=None, about="A name that makes this a static member: a restart within the session moves no partition."
    )
    group_protocol: str = setting(
        default=CLASSIC,
        about="How members and group agree: classic (members assign), or consumer (the broker assigns, KIP-848).",
    )
    group_remote_assignor: str | None = setting(
        default=None, about="With group_protocol=consumer, the broker's assignor, such as uniform or range."
    )
    partition_assignment_strategy: str | Sequence[str] = setting(
        default=("range", COOPERATIVE),
        about="With group_protocol=classic, the assignors that this member supports, the preferred one first: range, "
        "roundrobin, sticky, cooperative-sticky. If it is cooperative-sticky alone, partitions that stay are read on "
        "during a rebalance.",
    )
    auto_offset_reset: str = setting(
        aliases=("autooffset_reset",),
        default="latest",
        about="Where to start without a committed offset: earliest, latest, none (an error), or this long ago:"
        " by_duration:P1DT2H.",
    )
    isolation_level: str = setting(
        default="read_uncommitted", about="read_committed leaves out records of open and aborted transactions."
    )
    enable_auto_commit: bool = setting(
        default=True,
        aliases=("autocommit_enable",),
        about="Commit the offsets of processed records automatically.",
    )
    auto_commit_interval_ms: int = setting(
        default=5_000, low=0, aliases=("autocommit_interval_ms",), about="The time between automatic commits."
    )
    zookeeper_layout: str = setting(
        default="0.8", about="The layout of the group's nodes in ZooKeeper: that of Kafka 0.8, or of 0.7."
    )
    rebalance_backoff_ms: int = setting(
        default=2_000,
        low=0,
        about="With zookeeper_connect: the wait before partitions that another member still owns are claimed again.",
    )
    rebalance_retries_max: int = setting(
        default=4,
        low=1,
        aliases=("rebalance_max_retries",),
        about="With zookeeper_connect: how often partitions are claimed before `poll` raises an error.",
    )
    session_timeout_ms: int = setting(
        default=45_000, low=1, about="A member that sends no heartbeat for this long is taken out of the group."
    )
    heartbeat_interval_ms: int = setting(default=3_000, low=1, about="The time between heartbeats.")
    max_poll_interval_ms: int = setting(
        default=300_000, low=1, about="A member that does not poll for this long leaves the group."
    )
    max_poll_records: int = setting(default=500, low=1, about="The most records that one `poll` returns.")
    fetch_max_bytes: int = setting(default=50 * 1024 * 1024, low=1, about="The most that one Fetch returns.")
    max_partition_fetch_bytes: int = setting(
        default=1024 * 1024, low=1, about="The most that one Fetch returns of a partition."
    )
    fetch_min_bytes: int = setting(default=1, low=0, about="A Fetch waits until this many bytes are there.")
    fetch_max_wait_ms: int = setting(default=500, low=0, about="A Fetch waits at most this long for `fetch_min_bytes`.")
    client_rack: str = setting(
        default="",
        about="The rack of this client: range assigns it partitions with a replica there, from which it reads.",
    )
    key_deserializer: Callable[[bytes], Any] | None = setting(
        default=None,
        classes=_JAVA_DESERIALIZERS,
        about="Makes a record's key of its bytes; a key that is None stays None.",
    )
    value_deserializer: Callable[[bytes], Any] | None = setting(
        default=None,
        classes=_JAVA_DESERIALIZERS,
        about="Makes a record's value of its bytes; a value that is None stays None.",
    )
    interceptors: Sequence[ConsumerInterceptor] = setting(
        default=(), about="Objects with on_consume(records) and on_commit(offsets), called in order."
    )

    def check(self) -> None:
        super().check()
        reset_time(self.auto_offset_reset, 0)
        one_of("isolation_level", self.isolation_level, ISOLATION_LEVELS)
        one_of("group_protocol", self.group_protocol, (CLASSIC, CONSUMER))
        names = self.assignors
        for name in names:
            one_of("partition_assignment_strategy", name, ASSIGNORS)
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"partition_assignment_strategy={names!r} does not name one or more different assignors")
        if self.group_protocol == CLASSIC and self.group_remote_assignor is not None:
            raise ConfigError("group_remote_assignor needs group_protocol='consumer'")
        if self.zookeeper_connect is not None:
            self._check_zookeeper()
        for field in dataclasses.fields(self) if self.group_protocol == CONSUMER else ():
            instead = _OF_CLASSIC.get(field.name)
            if instead is not None and getattr(self, field.name) != field.default:
                raise ConfigError(f"{field.name} has no effect with group_protocol='consumer': {instead}")

    def _check_zookeeper(self) -> None:
        one_of("zookeeper_layout", self.zookeeper_layout, [layout.value for layout in GroupLayout])
        check_group(self.group_id or "")
        for name in ("group_protocol", "group_instance_id", "partition_assignment_strategy"):
            if getattr(self, name) != ConsumerSettings.__dataclass_fields__[name].default:
                raise ConfigError(f"{name} has no effect with zookeeper_connect: the group is in ZooKeeper")

    @property
    def reply_bytes_max(self) -> int:
        """The longest reply that is taken: what a Fetch asks for, and 1 MiB. A limit below the default does not count,
        since brokers return a first batch that is larger."""
        return max(self.fetch_max_bytes, self.max_partition_fetch_bytes, 50 * 1024 * 1024) + 1024 * 1024

    @property
    def assignors(self) -> tuple[str, ...]:
        """The names of the assignors of the classic protocol; names of Java's classes are understood."""
        given = self.partition_assignment_strategy
        names = given.split(",") if isinstance(given, str) else given
        return tuple(_JAVA_NAMES.get(str(name).strip().rpartition(".")[2], str(name).strip()) for name in names)

    @property
    def committed(self) -> bool:
        """Whether the consumer reads with isolation level read_committed."""
        return self.isolation_level == ISOLATION_LEVELS[1]


def reset_time(policy: str, now_ms: int) -> int | None:
    """Where `auto_offset_reset` starts: `EARLIEST`, `LATEST`, a time in ms, or None for an error. A duration is ISO
    8601, of days and smaller units (KIP-1106). Raises `ConfigError`."""
    if policy.startswith(BY_DURATION):
        parts = _DURATION.fullmatch(policy, len(BY_DURATION))
        given = {unit: float(text) for unit, text in parts.groupdict().items() if text} if parts is not None else {}
        if not given:
            raise ConfigError(f"auto_offset_reset={policy!r} has no duration such as PT1H or P7D behind by_duration:")
        return now_ms - int(sum(_UNIT_MS[unit] * number for unit, number in given.items()))
    policy = _OLDER_RESETS.get(policy, policy)
    one_of("auto_offset_reset", policy, (*RESETS, "none", f"{BY_DURATION}PT1H"))
    return RESETS.get(policy)
