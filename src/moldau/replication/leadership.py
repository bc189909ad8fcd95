"""One partition as its leader knows it: the committed ISR, a change of it that is proposed, and each follower's end.

Pure: this module decides, and `replica` acts. The rules:

    high watermark   the least end over the committed ISR, the followers that are proposed to join it, and those about
                     to join (they had everything a moment ago: under load nobody could join otherwise). It stands still
                     while the committed ISR has fewer members than `min.insync.replicas` asks for, while the cluster
                     shows eligible leaders outside of it (KIP-966), and while the end of any of these is not known
    ends             forgotten when a leader epoch begins: what a follower had under another leader says nothing
    joining          at or above the high watermark and the offset at which the epoch began
    leaving          not level with the leader for `replica.lag.time.max.ms`
    low watermark    the least log start of the replicas whose brokers are up. A follower's is not known before it has
                     asked in this leader epoch and in its present life (KIP-107)
    proposals        one at a time. Until the controller has answered, the committed ISR counts, and what is proposed to
                     join counts as well: either may be what the controller has. Refused: back to what is committed. If
                     the outcome is unknown, or the controller has another state by now, the proposal stays until the
                     cluster shows a later partition epoch

Source: Kafka's replication design, "Committed messages"; KIP-107, KIP-497, KIP-841, KIP-903, KIP-966.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.replication.in_sync import UNKNOWN, Follower

NOBODY: Final = BrokerId(-1)
PAUSE_MS: Final = 500
"""After a refusal, before the next proposal."""


class PartitionRoles(NamedTuple):
    """The cluster's decision about a partition. `isr` is committed; `partition_epoch` is a higher one after every
    change of leader or ISR. `has_eligible`: there are eligible leaders outside the ISR, which have everything that is
    committed, so that nothing more must be. `adding`: the replicas that a reassignment adds."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    partition_epoch: int = 0
    has_eligible: bool = False
    adding: tuple[BrokerId, ...] = ()


class IsrProposal(NamedTuple):
    """Another ISR, with the broker epoch of each member as the leader saw it (-1: not in this leader epoch). Valid for
    this leader and partition epoch only."""

    isr: tuple[BrokerId, ...]
    broker_epochs: tuple[int, ...]
    leader_epoch: LeaderEpoch
    partition_epoch: int


class Leadership:
    """`leads`: this broker is the leader. `alone`: all that this broker appends is committed, because no other replica
    is in sync or about to be. Facts that every request needs are attributes, set when they change. `lag_ms_max` is
    `replica.lag.time.max.ms`. All is unknown before the first `take`."""

    __slots__ = (
        "_about_to_join", "_followers", "_has_eligible", "_in_sync_min", "_lag_ms_max", "_not_before_ms", "adding",
        "alone", "epoch_start", "isr", "leader", "leader_epoch", "leads", "local", "own_end", "partition_epoch",
        "proposal", "replicas",
    )  # fmt: skip

    def __init__(self, local: BrokerId, lag_ms_max: int = 30_000):
        self.local = local
        self.leader = NOBODY
        self.leader_epoch = LeaderEpoch(-1)
        self.partition_epoch = -1
        self.isr: tuple[BrokerId, ...] = ()
        self.replicas: tuple[BrokerId, ...] = ()
        self.adding: tuple[BrokerId, ...] = ()
        self.leads = False
        self.alone = False
        self.proposal: IsrProposal | None = None
        """The change of the ISR that the controller has not decided yet, as far as this leader knows."""
        self._lag_ms_max = lag_ms_max
        self._in_sync_min = 1
        self._has_eligible = False
        self.epoch_start = Offset(0)
        """The end of this broker's log when the leader epoch began."""
        self.own_end = Offset(0)
        """The end of this broker's log, as far as it counts."""
        self._followers: dict[BrokerId, Follower] = {}
        self._about_to_join: dict[BrokerId, None] = {}
        self._not_before_ms = 0

    def take(self, roles: PartitionRoles, log_end: Offset, now_ms: int) -> bool:
        """Apply what the cluster decided; False if it is not news. `log_end` is the end of this broker's log."""
        if (roles.leader_epoch, roles.partition_epoch) < (self.leader_epoch, self.partition_epoch):
            return False
        before = (self.leader, self.leader_epoch, self.isr, self.replicas, self.partition_epoch, self._has_eligible)
        if roles == (*before, self.adding):
            return False
        if roles.leader_epoch != self.leader_epoch or roles.leader != self.leader:
            self._begin_epoch(log_end, now_ms)
        elif self.proposal is not None and roles.partition_epoch > self.proposal.partition_epoch:
            self.proposal = None  # accepted or refused: what the cluster shows says which
        self.leader, self.leader_epoch, self.isr, self.replicas, self.partition_epoch, self._has_eligible = roles[:-1]
        self.adding = roles.adding
        self.leads = roles.leader == self.local
        for broker in roles.isr:
            if broker != self.local and broker not in self._followers:
                self._followers[broker] = Follower(level_ms=now_ms)
        others = set(roles.replicas).difference(roles.isr)
        self._about_to_join = {broker: None for broker in self._about_to_join if broker in others}
        self._note_alone()
        return True

    def _begin_epoch(self, log_end: Offset, now_ms: int) -> None:
        self._followers = {}
        self._about_to_join = {}
        self.proposal = None
        self._not_before_ms = now_ms
        self.epoch_start = self.own_end = log_end

    def resign(self) -> None:
        """This broker no longer hosts the partition."""
        self.leader, self.leads, self.alone = NOBODY, False, False
        self.proposal = None

    def require(self, min_insync_replicas: int) -> None:
        """`min.insync.replicas` is this many now."""
        self._in_sync_min = min_insync_replicas
        self._note_alone()

    @property
    def has_too_few_in_sync(self) -> bool:
        """Whether acks=all is refused. A partition with fewer replicas than `min.insync.replicas` needs all it has, as
        in Kafka."""
        return len(self.isr) < min(self._in_sync_min, len(self.replicas))

    @property
    def _stands_still(self) -> bool:
        """Whether nothing more is committed, however far the followers are."""
        return self._has_eligible or self.has_too_few_in_sync

    def _note_alone(self) -> None:
        self.alone = (
            self.leads
            and self.isr == (self.local,)
            and self.proposal is None
            and not self._about_to_join
            and not self._stands_still
        )

    def reached(self, log_end: Offset) -> Offset:
        """The log of this broker, the leader, now ends at `log_end`. Returns the committed offset: all below it is
        committed. It may be lower than before: what was committed once stays so."""
        self.own_end = log_end
        return self.committed()

    def committed(self) -> Offset:
        """The committed offset; `UNKNOWN` while nothing more can be committed."""
        if self._stands_still:
            return UNKNOWN
        joining = self.proposal.isr if self.proposal is not None else ()
        end, followers, local = self.own_end, self._followers, self.local
        for broker in (*self.isr, *joining, *self._about_to_join):
            if broker != local:
                follower = followers.get(broker)
                if follower is None:
                    return UNKNOWN
                if follower.end < end:
                    end = follower.end
        return end

    def asked(
        self, broker: BrokerId, offset: Offset, broker_epoch: int, may_join: bool, log_end: Offset, now_ms: int
    ) -> bool:
        """A follower asked for what follows `offset`, and agrees with this leader about all that is before it. False if
        the request must not count: it is not of a replica, or of an earlier life of one. `may_join`: the cluster shows
        the broker with that broker epoch."""
        if broker == self.local or broker not in self.replicas:
            return False
        follower = self._followers.get(broker)
        if follower is None:
            follower = self._followers[broker] = Follower()
        if broker_epoch < follower.broker_epoch:
            return False
        follower.asked(offset, broker_epoch, may_join, log_end, now_ms)
        if broker not in self.isr:
            self._about_to_join.pop(broker, None)
            if may_join and offset >= self.epoch_start and follower.is_level(log_end, now_ms, self._lag_ms_max):
                self._about_to_join[broker] = None
            self._note_alone()
        return True

    def asks_no_more(self, broker: BrokerId) -> bool:
        """The follower has ceased to ask for this partition, so that it is not about to join any more. True if that may
        commit more."""
        if broker not in self._about_to_join:
            return False
        del self._about_to_join[broker]
        self._note_alone()
        return self.leads

    def is_member(self, broker: BrokerId) -> bool:
        """Whether the broker is in the ISR, or in the proposed one: then the high watermark waits for it."""
        return broker in self.isr or (self.proposal is not None and broker in self.proposal.isr)

    def starts_at(self, broker: BrokerId, log_start: Offset) -> bool:
        """The log of a follower that asked begins at this offset; False if that is not news."""
        follower = self._followers[broker]
        is_news = follower.log_start != log_start
        follower.log_start = log_start
        return is_news

    def low_watermark(self, own_start: Offset, alive: Mapping[int, int]) -> Offset:
        """No replica on these brokers (id -> broker epoch) has a record below it; `UNKNOWN` as long as the start of one
        is not known. `own_start`: of this leader's log."""
        start = own_start
        for broker in self.replicas:
            if broker != self.local and broker in alive:
                follower = self._followers.get(broker)
                if follower is None or follower.broker_epoch != alive[broker]:
                    return UNKNOWN
                start = min(start, follower.log_start)
        return start

    def successors(self, unclean: bool) -> list[BrokerId]:
        """The other replicas that may be elected while this one leads, as far as this one knows: only a proposal of its
        own adds to the ISR. `unclean`: those that are not in sync too."""
        proposed = self.proposal.isr if self.proposal is not None else ()
        able = self.replicas if unclean or self._has_eligible else (*self.isr, *proposed)
        return [one for one in dict.fromkeys(able) if one != self.local]

    def in_sync_followers(self) -> Iterator[tuple[BrokerId, Follower]]:
        """The followers in the committed ISR that are known to this leader."""
        for broker in self.isr:
            follower = self._followers.get(broker)
            if follower is not None and broker != self.local:
                yield broker, follower

    def diverged(self, broker: BrokerId) -> None:
        """The follower's log is not a beginning of this leader's."""
        follower = self._followers.get(broker)
        if follower is not None:
            follower.diverged()
            self._about_to_join.pop(broker, None)
            self._note_alone()

    def look(self, alive: Mapping[int, int], now_ms: int) -> None:
        """Time has passed, and these brokers (id -> broker epoch) are up: followers that cannot join any more hold
        nobody back, and are not proposed with others that can."""
        for broker, follower in self._followers.items():
            follower.may_join = alive.get(broker) == follower.broker_epoch
            follower.looked_at(self.own_end, now_ms)
        for broker in list(self._about_to_join):
            if not self._followers[broker].may_join or not self._is_level(broker, now_ms):
                del self._about_to_join[broker]
        self._note_alone()

    def restart_clocks(self, now_ms: int) -> None:
        """This leader stood still: it could not answer its followers."""
        for follower in self._followers.values():
            follower.restart_clock(now_ms)

    def _is_level(self, broker: BrokerId, now_ms: int) -> bool:
        return self._followers[broker].is_level(self.own_end, now_ms, self._lag_ms_max)

    def propose(self, high_watermark: Offset, now_ms: int) -> IsrProposal | None:
        """A change of the ISR that is due now, which is `proposal` from then on; None if there is none, or while
        another one is undecided."""
        if not self.leads or self.proposal is not None or now_ms < self._not_before_ms:
            return None
        kept = [one for one in self.isr if one == self.local or self._is_level(one, now_ms)]
        joining = [one for one in self.replicas if one not in self.isr and self._is_joining(one, high_watermark)]
        isr = (*kept, *joining)
        if isr == self.isr:
            return None
        epochs = tuple(self._followers[one].broker_epoch if one in self._followers else -1 for one in isr)
        self.proposal = IsrProposal(isr, epochs, self.leader_epoch, self.partition_epoch)
        self._note_alone()
        return self.proposal

    def _is_joining(self, broker: BrokerId, high_watermark: Offset) -> bool:
        follower = self._followers.get(broker)
        return follower is not None and follower.may_join and follower.end >= max(high_watermark, self.epoch_start)

    def refused(self, proposal: IsrProposal, now_ms: int) -> None:
        """The controller has refused this proposal, and will not carry it out later: back to what is committed."""
        if self.proposal is proposal:
            self.proposal = None
            self._not_before_ms = now_ms + PAUSE_MS
            for broker in proposal.isr:
                self._about_to_join.pop(broker, None)
            self._note_alone()
