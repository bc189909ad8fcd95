"""A second replica of a partition, which only its leader's books know."""

from moldau.names import BrokerId, Offset
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica

FOLLOWER = BrokerId(2)


def in_sync(replica: Replica, *brokers: int) -> None:
    """The cluster decides that the partition has two replicas, and that these are in sync."""
    leadership = replica.leadership
    isr = tuple(BrokerId(broker) for broker in brokers)
    both = (leadership.local, FOLLOWER)
    epochs = leadership.leader_epoch, leadership.partition_epoch + 1
    replica.take_roles(PartitionRoles(leadership.leader, epochs[0], isr, both, epochs[1]), 0)


def reached(replica: Replica, end: int) -> None:
    """The follower has the log up to this offset."""
    assert replica.follower_asked(FOLLOWER, Offset(end), 1, True, 0)
