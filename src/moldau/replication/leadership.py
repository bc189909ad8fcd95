"""One partition as its leader knows it: the in-sync replicas, and the log end of each.

Pure: this module decides, and `replica` acts. The committed offset is the least log end of the in-sync replicas
(Kafka's replication design, "Committed messages"). What every request asks is an attribute, known when it changes.
"""

from moldau.names import BrokerId, LeaderEpoch, Offset

NOBODY = BrokerId(-1)


class Leadership:
    """`leads`: this broker is the leader. `alone`: no other replica is in sync, so that all this broker appends is
    committed."""

    __slots__ = ("_ends", "alone", "isr", "leader", "leader_epoch", "leads", "local", "replica_count")

    def __init__(self, local: BrokerId):
        self.local = local
        self.leader = NOBODY
        self.leader_epoch = LeaderEpoch(-1)
        self.leads = False
        self.isr: tuple[BrokerId, ...] = ()
        self.alone = False
        self.replica_count = 1
        self._ends: dict[BrokerId, Offset] = {}

    def lead(
        self, leader: BrokerId, leader_epoch: LeaderEpoch, isr: tuple[BrokerId, ...], replica_count: int = 1
    ) -> None:
        """Apply the leader, epoch, ISR and number of replicas that the cluster decided."""
        self.leader, self.leader_epoch, self.isr, self.replica_count = leader, leader_epoch, isr, replica_count
        self.leads = leader == self.local
        self.alone = isr == (self.local,)

    def resign(self) -> None:
        """This broker no longer hosts the partition."""
        self.leader, self.leads = NOBODY, False

    def has_too_few_in_sync(self, min_insync_replicas: int) -> bool:
        """Whether acks=all is refused. A partition with fewer replicas than `min.insync.replicas` needs all it has, as
        in Kafka."""
        return len(self.isr) < min(min_insync_replicas, self.replica_count)

    def reached(self, replica: BrokerId, log_end: Offset) -> Offset:
        """The log of `replica` now ends at `log_end`. Returns the committed offset: every in-sync replica has all that
        is below it."""
        ends = self._ends
        ends[replica] = log_end
        return min(ends.get(broker, Offset(0)) for broker in self.isr)
