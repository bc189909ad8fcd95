"""A leader, its followers and the controller of one partition, as numbers: random steps, and what must hold after each.

The leader's `Leadership` is real. A follower is the offset up to which it has the leader's log, which may fall. The
controller takes a proposal or refuses it, and its answers and news are late, lost or overtaken by newer ones. Now and
then another broker leads for a while; this one then leads anew, and may know an older high watermark.
"""

import random

from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.replication.leadership import IsrProposal, Leadership, PartitionRoles

ME, OTHER, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)
REPLICAS = (ME, OTHER, THIRD)
LAG_MS = 1000


class Walk:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.leadership = Leadership(ME, LAG_MS)
        self.in_sync_min = self.random.choice((1, 2, 2, 3))
        self.leadership.require(self.in_sync_min)
        self.now_ms = 0
        self.end = 0
        self.ends = {OTHER: 0, THIRD: 0}
        self.broker_epochs = {OTHER: 1, THIRD: 1}
        self.high_watermark = 0
        self.committed = 0
        """The highest high watermark that any leader has had."""
        self.roles = PartitionRoles(ME, LeaderEpoch(0), REPLICAS, REPLICAS, 0)
        """What the controller has."""
        self.news: list[PartitionRoles] = []
        self.leadership.take(self.roles, Offset(0), 0)

    def run(self, steps: int = 300) -> str | None:
        """What did not hold, None if all did."""
        names = ["append"] * 4 + ["fetch"] * 8 + ["propose"] * 4 + ["pass_time"] * 3 + ["hear"] * 3
        names += ["lose", "shrink", "restart", "lead_anew"]
        for _ in range(steps):
            getattr(self, self.random.choice(names))()
            wrong = self._moved()
            if wrong:
                return wrong
        return None

    def _moved(self) -> str | None:
        offset = int(self.leadership.reached(Offset(self.end)))
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.committed = max(self.committed, offset)
            holders = [one for one in REPLICAS if self._has(one) >= offset]
            if len(holders) < self.in_sync_min:
                return f"{offset} is committed with {len(holders)} of {self.in_sync_min} replicas"
        without = [one for one in self.roles.isr if self._has(one) < self.committed]
        return f"{without[0]} is in the ISR without {self.committed}" if without else None

    def _has(self, broker: BrokerId) -> int:
        return self.end if broker == ME else self.ends[broker]

    def append(self) -> None:
        self.end += self.random.randint(1, 3)

    def fetch(self) -> None:
        broker = self.random.choice((OTHER, THIRD))
        self.ends[broker] = min(self.end, self.ends[broker] + self.random.choice((0, 1, 2, 100)))
        self._ask(broker)

    def _ask(self, broker: BrokerId) -> None:
        end, epoch = Offset(self.ends[broker]), self.broker_epochs[broker]
        self.leadership.asked(broker, end, epoch, True, Offset(self.end), self.now_ms)

    def lose(self) -> None:
        """A follower comes back without its last records. Nothing that is committed is among them while it is in the
        ISR; outside of it, it has registered anew, as after every power loss."""
        broker = self.random.choice((OTHER, THIRD))
        is_in_sync = broker in self.roles.isr
        least = self.committed if is_in_sync else 0
        self.broker_epochs[broker] += not is_in_sync
        self.ends[broker] = self.random.randint(min(least, self.ends[broker]), self.ends[broker])
        self._ask(broker)

    def restart(self) -> None:
        """A follower registers anew: it is not in the ISR until it has joined again."""
        broker = self.random.choice((OTHER, THIRD))
        self.broker_epochs[broker] += 1
        self._decide(tuple(one for one in self.roles.isr if one != broker))

    def propose(self) -> None:
        """The controller gets what the leader proposes: now, or again where no answer came."""
        proposal = self.leadership.proposal or self.leadership.propose(Offset(self.high_watermark), self.now_ms)
        if proposal is None or self.random.random() < 0.2:
            return
        epochs = dict(zip(proposal.isr, proposal.broker_epochs, strict=True))
        if (proposal.leader_epoch, proposal.partition_epoch) != (self.roles.leader_epoch, self.roles.partition_epoch):
            return  # the leader has to wait for the news
        if any(one != ME and epochs[one] not in (-1, self.broker_epochs[one]) for one in proposal.isr):
            self._answer_refused(proposal)
        else:
            self._decide(proposal.isr)

    def _answer_refused(self, proposal: IsrProposal) -> None:
        if self.random.random() < 0.8:
            self.leadership.refused(proposal, self.now_ms)

    def _decide(self, isr: tuple[BrokerId, ...]) -> None:
        if isr != self.roles.isr:
            self.roles = self.roles._replace(isr=isr, partition_epoch=self.roles.partition_epoch + 1)
            self.news.append(self.roles)

    def shrink(self) -> None:
        """The controller takes a broker that is gone out of the ISR."""
        gone = self.random.choice((OTHER, THIRD))
        self._decide(tuple(one for one in self.roles.isr if one != gone))

    def hear(self) -> None:
        """News of the cluster; an answer may overtake the news before it."""
        if self.news:
            news = self.news.pop(self.random.randrange(len(self.news)))
            self.leadership.take(news, Offset(self.end), self.now_ms)

    def pass_time(self) -> None:
        self.now_ms += self.random.choice((1, 100, 600, 2000))
        self.leadership.look(self.broker_epochs, self.now_ms)

    def lead_anew(self) -> None:
        """Another broker of the ISR led meanwhile, and this one leads again: followers have lost what was not
        committed, and this leader may not know all that was."""
        for broker, end in self.ends.items():
            least = min(end, self.committed) if broker in self.roles.isr else 0
            self.ends[broker] = self.random.randint(least, end)
        self.high_watermark = self.random.randint(0, self.high_watermark)
        epoch = LeaderEpoch(self.roles.leader_epoch + 1)
        self.roles = self.roles._replace(leader_epoch=epoch, partition_epoch=self.roles.partition_epoch + 1)
        self.news.clear()
        self.leadership.take(self.roles, Offset(self.end), self.now_ms)


def first_wrong(seeds: int) -> tuple[int, str] | None:
    """The number of walks after which something did not hold, and what; None if all held."""
    for seed in range(seeds):
        wrong = Walk(seed).run()
        if wrong is not None:
            return seed + 1, wrong
    return None
