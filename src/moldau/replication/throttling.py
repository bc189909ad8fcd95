"""The throttles of a broker's replication: one for what its leaders send, one for what its followers fetch.

Two kinds of rates set one: that of `*.replication.throttled.rate` (KIP-73) covers the replicas that their topics list
(`*.replication.throttled.replicas`), that of `*.reassignment.throttled.rate` (KIP-542) those that a reassignment adds.
All that a throttle covers share one rate, the lower one if both are set. What listed replicas that are in sync fetch
counts, but is never held back; an added replica that is in sync is not covered any more. While no rate is set nothing
is measured.
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
        self._covers_listed, self._covers_added = True, False
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

    def limit(self, listed: int | None, added: int | None) -> None:
        """Take the rates, in bytes a second, of listed replicas and of those that reassignments add."""
        was_on = self.is_on
        self._covers_listed, self._covers_added = listed is not None, added is not None
        self.quota.limit = min((one for one in (listed, added) if one is not None), default=None)
        if self.is_on or was_on:
            self.announce()

    def covers(self, replica: Replica, follower: BrokerId) -> bool:
        """Whether what this follower fetches of the replica here, or the replica itself if it is the follower, shares
        the rate."""
        if self._covers_added:
            roles = replica.leadership
            if follower in roles.adding and follower not in roles.isr:
                return True
        return self._covers_listed and is_listed(self._listed(replica.config), replica.tp.partition, self._broker)


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
        self.leader.limit(config.leader_replication_throttled_rate, config.leader_reassignment_throttled_rate)
        self.follower.limit(config.follower_replication_throttled_rate, config.follower_reassignment_throttled_rate)
