"""A model of one replicated partition: brokers with logs, a controller that decides by the rules, and faults at random.

It is not our replication, it is what that has to do: a leader moves the high watermark over its ISR and whoever it has
proposed, and not while there are eligible leaders; a follower truncates to what it has in common with the leader; every
broker acts by an image that is a little old. After every step:

- every member of ISR or ELR has everything below every high watermark there was;
- no two leaders have committed different records.
"""

import random
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from moldau.cluster.state import eligibility, isr_changes
from moldau.cluster.state.elections import NOBODY, elections, with_elected
from moldau.cluster.state.eligibility import LogEnd
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.isr_changes import UNSEEN, ProposedIsr
from moldau.errors import ErrorCode

TOPIC = uuid.UUID(int=1)
HOST = (Endpoint("PLAINTEXT", "PLAINTEXT", "host", 9092),)


class Record(NamedTuple):
    epoch: int
    number: int


class Broken(AssertionError):
    """The rules, or the model, have lost something."""


@dataclass
class Host:
    """A broker. `least` is its own `min.insync.replicas`, which may be another than the controller's; `log` is what is
    in its page cache, the first `flushed` records are on its disk."""

    id: int
    least: int
    log: list[Record] = field(default_factory=list)
    flushed: int = 0
    watermark: int = 0
    is_up: bool = True
    may_have_lost: bool = False
    epoch: int = 0
    seen: int = 0
    """The number of the image it acts by."""
    led_since: int = 0
    """The end of its log when it became the leader."""
    ends: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    """The broker epochs in the followers' latest fetches."""
    proposed: ProposedIsr | None = None


class Model:
    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        ids = range(1, 2 + self.chance.randint(1, 3))
        self.least = self.chance.randint(1, 3)
        self.faults = self.chance.choice((0.005, 0.02, 0.06))
        self.hosts = {one: Host(one, self.chance.randint(1, 3), epoch=one) for one in ids}
        part = PartitionImage(1, 0, tuple(ids), tuple(ids))
        brokers = {one: BrokerImage(one, HOST, None, (), one) for one in ids}
        self.image = Image("c", 1, brokers).with_topics({"t": TopicImage("t", TOPIC, (part,), {})})
        self.images = [self.image]
        self.sent: list[tuple[int, ProposedIsr]] = []
        self.committed: list[Record] = []
        self.broker_epoch, self.records = 100, 0
        self.silent: set[int] = set()
        """Brokers whose sessions live and that ask the controller for nothing."""
        self.since = 0
        """The leader epoch of the latest election that may have lost records."""
        self.moves = 0

    @property
    def part(self) -> PartitionImage:
        return self.image.topics["t"].partitions[0]

    def known(self, host: Host) -> PartitionImage:
        return self.images[host.seen].topics["t"].partitions[0]

    def step(self) -> None:
        up = [host for host in self.hosts.values() if host.is_up]
        faults = [self.kill, self.lose_power, self.bounce, self.expire, self.change_least, self.fall_silent]
        repairs = [self.come_back, self.come_back, self.notice, self.recover, self.speak_again]
        works = [self.append, self.fetch, self.advance, self.hear, self.hear, self.propose]
        kind = self.chance.random()
        if kind < self.faults:
            self.chance.choice(faults)()
        elif kind < 3 * self.faults or not up:
            self.chance.choice(repairs)()
        elif kind > 0.85:
            self.judge()
        else:
            self.chance.choice(works)(self.chance.choice(up))
        self.check()

    def check(self) -> None:
        for one in (*self.part.isr, *self.part.elr):
            host = self.hosts[one]
            if not host.may_have_lost and host.log[: len(self.committed)] != self.committed:
                raise Broken(f"broker {one} lacks what is committed: {self.part}")

    # What the brokers do.

    def append(self, host: Host) -> None:
        if self.known(host).leader == host.id:
            self.records += 1
            host.log.append(Record(self.known(host).leader_epoch, self.records))

    def fetch(self, host: Host) -> None:
        part = self.known(host)
        leader = self.hosts.get(part.leader)
        if leader is None or leader is host or not leader.is_up:
            return
        theirs = self.known(leader)
        if (theirs.leader, theirs.leader_epoch) != (leader.id, part.leader_epoch):
            return
        common = 0
        while host.log[common : common + 1] == leader.log[common : common + 1] != []:
            common += 1
        del host.log[common:]
        host.flushed = min(host.flushed, common)
        leader.ends[host.id], leader.epochs[host.id] = common, host.epoch
        host.log += leader.log[common : common + self.chance.randint(0, 3)]
        host.watermark = min(leader.watermark, len(host.log))
        if self.chance.random() < 0.2:
            host.flushed = len(host.log)

    def advance(self, host: Host) -> None:
        """Move the watermark."""
        part = self.known(host)
        if part.leader != host.id or not self.may_advance(host, part):
            return
        counted = {*part.isr, *(one for one, _ in (host.proposed.isr if host.proposed else ()))}
        end = min(len(host.log) if one == host.id else host.ends.get(one, 0) for one in counted)
        if end <= host.watermark:
            return
        host.watermark = end
        if part.leader_epoch >= self.since:
            new = host.log[:end]
            shorter = min(len(new), len(self.committed))
            if new[:shorter] != self.committed[:shorter]:
                raise Broken(f"broker {host.id} commits other records than before")
            self.moves += len(new) > len(self.committed)
            self.committed = max(new, self.committed, key=len)

    def may_advance(self, host: Host, part: PartitionImage) -> bool:
        return not part.elr and len(part.isr) >= min(host.least, len(part.replicas))

    def hear(self, host: Host) -> None:
        """The next image."""
        if host.seen + 1 < len(self.images):
            before = self.known(host)
            host.seen += 1
            part = self.known(host)
            if part != before:
                host.proposed = None
            if part.leader == host.id and part.leader_epoch != before.leader_epoch:
                host.ends, host.epochs, host.led_since = {}, {}, len(host.log)

    def propose(self, host: Host) -> None:
        part = self.known(host)
        if part.leader != host.id or host.proposed is not None:
            return
        others = [one for one in part.replicas if one != host.id]
        one = self.chance.choice(others)
        isr = {*part.isr, host.id} ^ {one}
        if one not in isr and self.chance.random() < 0.9:
            return
        if one in isr and not max(host.watermark, host.led_since) <= host.ends.get(one, -1):
            return
        named = tuple((other, host.epochs.get(other, UNSEEN)) for other in sorted(isr))
        host.proposed = ProposedIsr(TOPIC, 0, part.leader_epoch, part.partition_epoch, named)
        self.sent.append((host.id, host.proposed))

    # What the controller does.

    def judge(self) -> None:
        if not self.sent:
            return
        sender, proposal = self.sent.pop(self.chance.randrange(len(self.sent)))
        host = self.hosts[sender]
        found = isr_changes.judged(self.image, sender, proposal, self.least, self.silent)
        if isinstance(found, ErrorCode):
            if host.proposed is proposal:
                host.proposed = None
        else:
            self.show(found[1])

    def show(self, part: PartitionImage) -> None:
        if part != self.part:
            part = part._replace(partition_epoch=self.part.partition_epoch + 1)
            self.image = self.image.with_topics({"t": self.image.topics["t"]._replace(partitions=(part,))})
            self.images.append(self.image)

    def is_here(self, broker: int) -> bool:
        return broker in self.image.brokers and broker not in self.silent

    def elect(self, anew: Mapping[int, Collection[str]] = NOBODY) -> None:
        found = elections(self.image, lambda _: self.least, self.silent, anew)
        for topic in with_elected(self.image, found):
            self.show(topic.partitions[0])

    def change_least(self) -> None:
        if self.chance.random() < 0.3:
            self.least = self.chance.randint(1, 3)
            self.elect()

    def notice(self) -> None:
        """Sessions of brokers that are down are over."""
        gone = [one for one, host in self.hosts.items() if not host.is_up and one in self.image.brokers]
        for one in gone[:1]:
            self.without(one)

    def without(self, broker: int) -> None:
        brokers = {one: image for one, image in self.image.brokers.items() if one != broker}
        self.image = replace(self.image, brokers=brokers)
        self.elect()

    def expire(self) -> None:
        """The session of a broker is over, which goes on for a while."""
        up = [one for one, host in self.hosts.items() if host.is_up and one in self.image.brokers]
        if up and self.chance.random() < 0.3:
            self.without(self.chance.choice(up))

    def fall_silent(self) -> None:
        self.silent.add(self.chance.choice(list(self.hosts)))
        self.elect()

    def speak_again(self) -> None:
        self.silent.clear()
        self.elect()

    def recover(self) -> None:
        """The longest log leads, or an unclean election is asked for."""
        unclean = self.chance.random() < 0.05
        asked = eligibility.candidates(self.part, self.is_here, unclean=unclean)
        logs = {one: self.hosts[one].log for one in asked if self.hosts[one].is_up}
        ends = {one: LogEnd(log[-1].epoch if log else -1, len(log)) for one, log in logs.items()}
        after = eligibility.led_by_longest(self.part, ends, self.least, unclean=unclean)
        if after.leader == NO_LEADER:
            return
        had_all = [one for one, log in logs.items() if log[: len(self.committed)] == self.committed]
        if had_all and not unclean and after.leader not in had_all:
            raise Broken(f"of {sorted(had_all)}, which have everything, none is elected")
        log = self.hosts[after.leader].log
        while log[: len(self.committed)] != self.committed:
            self.committed.pop()
        self.since = after.leader_epoch
        self.show(after)

    # Faults.

    def kill(self) -> None:
        host = self.chance.choice(list(self.hosts.values()))
        host.is_up = False

    def lose_power(self) -> Host | None:
        host = self.chance.choice(list(self.hosts.values()))
        if self.chance.random() < 0.5:
            return None
        host.is_up = False
        host.may_have_lost = True
        del host.log[self.chance.randint(host.flushed, len(host.log)) :]
        return host

    def bounce(self) -> None:
        """It is back before anybody has noticed."""
        host = self.lose_power()
        if host is not None:
            self.start(host)

    def come_back(self) -> None:
        away = [host for host in self.hosts.values() if not host.is_up or host.id not in self.image.brokers]
        if away:
            self.start(self.chance.choice(away))

    def start(self, host: Host) -> None:
        self.broker_epoch += 1
        host.epoch, host.proposed = self.broker_epoch, None
        if not host.is_up:
            host.is_up, host.ends, host.epochs = True, {}, {}
            host.watermark = self.chance.randint(0, min(host.watermark, len(host.log)))
        brokers = {**self.image.brokers, host.id: BrokerImage(host.id, HOST, None, (), host.epoch)}
        self.image = replace(self.image, brokers=dict(sorted(brokers.items())))
        self.register(host)
        host.may_have_lost = False
        before = self.known(host)
        host.seen = len(self.images) - 1
        if self.known(host).leader == host.id and self.known(host).leader_epoch != before.leader_epoch:
            host.led_since, host.ends, host.epochs = len(host.log), {}, {}

    def register(self, host: Host) -> None:
        self.elect({host.id: () if host.may_have_lost else ("",)})
