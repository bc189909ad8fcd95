"""One partition as its leader knows it: the in-sync replicas, and the log end of each.

Pure: this module decides, and `replica` acts. The high watermark is the least log end of the in-sync replicas and never
goes back while this broker leads (Kafka's replication design, "Committed messages").
"""

from moldau.names import BrokerId, LeaderEpoch, Offset

NOBODY = BrokerId(-1)


class Leadership:
    __slots__ = ("_alone", "_ends", "high_watermark", "isr", "leader", "leader_epoch", "local", "replica_count")

    def __init__(self, local: BrokerId, high_watermark: Offset):
        self.local = local
        self.leader = NOBODY
        self.leader_epoch = LeaderEpoch(-1)
        self.isr: tuple[BrokerId, ...] = ()
        self.replica_count = 1
        self.high_watermark = high_watermark
        self._ends: dict[BrokerId, Offset] = {}
        self._alone = False

    @property
    def leads(self) -> bool:
        return self.leader == self.local

    def has_too_few_in_sync(self, min_insync_replicas: int) -> bool:
        """Whether acks=all is refused. A partition with fewer replicas than `min.insync.replicas` needs all it has, as
        in Kafka."""
        return len(self.isr) < min(min_insync_replicas, self.replica_count)

    def lead(
        self,
        leader: BrokerId,
        leader_epoch: LeaderEpoch,
        isr: tuple[BrokerId, ...],
        log_end: Offset,
        replica_count: int = 1,
    ) -> bool:
        """Apply the leader, epoch, ISR and number of replicas that the cluster decided. True if the watermark moved."""
        self.leader, self.leader_epoch, self.isr, self.replica_count = leader, leader_epoch, isr, replica_count
        self._alone = isr == (self.local,)
        return self.reached(self.local, log_end) if self.leads else False

    def reached(self, replica: BrokerId, log_end: Offset) -> bool:
        """The log of `replica` now ends at `log_end`. True if the watermark moved."""
        if self._alone and replica == self.local:
            committed = log_end
        else:
            ends = self._ends
            ends[replica] = log_end
            committed = min(ends.get(broker, Offset(0)) for broker in self.isr)
        if committed > self.high_watermark:
            self.high_watermark = committed
            return True
        return False
