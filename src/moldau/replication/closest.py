"""The replica that a reader in a rack is sent on to (KIP-392, `RackAwareReplicaSelector`). Pure.

    the leader is in the rack           the leader
    candidates                          in-sync followers in that rack that have the offset: log start <= offset <= end.
                                        Followers out of sync may lag for ever, and their readers with them
    several candidates                  the furthest one; of those, the one that was level with the leader last
    none                                the leader

A candidate must be up in the life in which it asked this leader, must not be about to stop, and must have the listener
that the reader came to: the reader could not find it otherwise, and would be sent on again and again.
Source: Kafka's `ReplicaManager.findPreferredReadReplica`.
"""

from collections.abc import Mapping

from moldau.cluster.state.image import BrokerImage
from moldau.names import BrokerId
from moldau.replication.leadership import Leadership


def closest(
    leadership: Leadership, brokers: Mapping[int, BrokerImage], rack: str, listener: str, offset: int
) -> BrokerId | None:
    """The follower that a reader in `rack`, who came to `listener`, is to read from `offset` on; None if it is to read
    from this broker. `brokers`: those that are up."""
    if not leadership.leads:
        return None
    leader = brokers.get(leadership.local)
    if leader is not None and leader.rack == rack:
        return None
    candidates = [
        (follower.end, follower.level_ms, broker)
        for broker, follower in leadership.in_sync_followers()
        if follower.log_start <= offset <= follower.end
        and _is_readable(brokers.get(broker), follower.broker_epoch, rack, listener)
    ]
    return max(candidates)[2] if candidates else None


def _is_readable(broker: BrokerImage | None, epoch: int, rack: str, listener: str) -> bool:
    """Whether readers in `rack`, who come to `listener`, may read from this broker, which asked with that epoch."""
    return (
        broker is not None
        and broker.rack == rack
        and broker.epoch == epoch
        and not broker.leaving
        and broker.endpoint(listener) is not None
    )
