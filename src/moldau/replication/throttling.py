"""The throttles of a broker's replication (KIP-73): one for what its leaders send, one for what its followers fetch.

A throttle covers the replicas on this broker that their topics list (`leader.replication.throttled.replicas`,
`follower.replication.throttled.replicas`). All of them share its rate; what in-sync replicas fetch counts, but is never
held back. While no rate is set nothing is measured.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from moldau.config import BrokerConfig, TopicConfig
from moldau.names import BrokerId
from moldau.replication.quota import ReplicationQuota, is_listed
from moldau.replication.replica import Replica


class Throttle:
    """One side: the replicas that share the rate of `quota`. `broker` is this broker, `listed` returns a topic's
    replicas."""

    def __init__(self, broker: BrokerId, listed: Callable[[TopicConfig], tuple[str, ...]], quota: ReplicationQuota):
        self.quota: Final = quota
        self._broker = broker
        self._listed = listed
        self._listeners: list[Callable[[], None]] = []

    @property
    def is_on(self) -> bool:
        """Whether a rate is set."""
        return self.quota.limit is not None

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call this whenever settings have changed: what was held back may be free now, or earlier than before."""
        self._listeners.append(changed)

    def announce(self) -> None:
        """Settings have changed."""
        for changed in self._listeners:
            changed()

    def covers(self, replica: Replica) -> bool:
        """Whether the replica here is one of those that share the rate."""
        return is_listed(self._listed(replica.config), replica.tp.partition, self._broker)


class Throttles:
    """Both sides of one broker."""

    def __init__(self, broker: BrokerId, config: BrokerConfig):
        samples, sample_ms = config.replication_quota_window_num, config.replication_quota_window_size_seconds * 1000
        self.leader: Final = Throttle(
            broker, attrgetter("leader_replication_throttled_replicas"), ReplicationQuota(samples, sample_ms)
        )
        self.follower: Final = Throttle(
            broker, attrgetter("follower_replication_throttled_replicas"), ReplicationQuota(samples, sample_ms)
        )
        self.follow(config)

    def follow(self, config: BrokerConfig) -> None:
        """Take the rates in force now. The replicas must have their topics' settings and their roles already: a change
        of these is announced as well."""
        for throttle, rate in (
            (self.leader, config.leader_replication_throttled_rate),
            (self.follower, config.follower_replication_throttled_rate),
        ):
            was_on, throttle.quota.limit = throttle.is_on, rate
            if throttle.is_on or was_on:
                throttle.announce()
