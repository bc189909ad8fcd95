"""Elections as readable transcripts: one partition, what happens to its brokers, and what the controller makes of it.

Each line is `event | state`; a state is `LEADER@EPOCH isr=...`, and `elr=...` and `last=...` if there are some. Events:

    starts 1,2,3 least 2      all in sync, the first leads, min.insync.replicas is 2
    goes 1,2                  their sessions are over
    back 1, back 1 lost       it registers again, after it was gone or before anybody noticed; `lost`: it may have lost
                              records
    least 1                   min.insync.replicas is another
    1 asks 1,2                AlterPartition of broker 1 for that ISR, with what it knows now
    1 asked 1,2               the same, but it is older than the latest event: it has the epochs of before
    longest 2=3:40 3=1:80     brokers have answered with the epoch and offset of their logs' ends
    unclean 2=3:40            the same, and an unclean election is allowed

A refusal comes before the state: `FENCED_LEADER_EPOCH 2@1 isr=2`.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from moldau.cluster.state.elections import NOBODY, elections, with_elected
from moldau.cluster.state.eligibility import LogEnd, candidates, led_by_longest
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.isr_changes import ProposedIsr, judged
from moldau.errors import ErrorCode

TOPIC = uuid.UUID(int=1)
HOST = (Endpoint("PLAINTEXT", "PLAINTEXT", "host", 9092),)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(","))


def state(part: PartitionImage) -> str:
    leader = "-" if part.leader == NO_LEADER else str(part.leader)
    lists = (("isr", part.isr), ("elr", part.elr), ("last", part.last_elr))
    shown = [f"{name}={','.join(map(str, who))}" for name, who in lists if who or name == "isr"]
    return " ".join([f"{leader}@{part.leader_epoch}", *shown])


class Played:
    """The controller of one partition."""

    def __init__(self, replicas: tuple[int, ...], least: int):
        self.least = least
        self._epoch = 100
        part = PartitionImage(replicas[0], 0, replicas, replicas)
        brokers = {one: BrokerImage(one, HOST, None, (), one) for one in replicas}
        self.image = Image("c", 1, brokers).with_topics({"t": TopicImage("t", TOPIC, (part,), {})})
        self.before = self.image

    @property
    def part(self) -> PartitionImage:
        return self.image.topics["t"].partitions[0]

    def show(self, part: PartitionImage) -> None:
        if part != self.part:
            part = part._replace(partition_epoch=self.part.partition_epoch + 1)
            self.image = self.image.with_topics({"t": self.image.topics["t"]._replace(partitions=(part,))})

    def elect(self, anew: Mapping[int, Collection[str]] = NOBODY) -> None:
        found = elections(self.image, lambda _: self.least, (), anew)
        for topic in with_elected(self.image, found):
            self.show(topic.partitions[0])

    def goes(self, gone: Sequence[int]) -> None:
        brokers = {number: one for number, one in self.image.brokers.items() if number not in gone}
        self.image = replace(self.image, brokers=brokers)
        self.elect()

    def back(self, broker: int, *, lost: bool) -> None:
        self._epoch += 1
        brokers = {**self.image.brokers, broker: BrokerImage(broker, HOST, None, (), self._epoch)}
        self.image = replace(self.image, brokers=dict(sorted(brokers.items())))
        self.elect({broker: () if lost else ("",)})

    def asks(self, sender: int, isr: Sequence[int], knowing: Image) -> str:
        part = knowing.topics["t"].partitions[0]
        proposal = ProposedIsr(
            TOPIC,
            0,
            part.leader_epoch,
            part.partition_epoch,
            tuple((one, knowing.brokers[one].epoch if one in knowing.brokers else 0) for one in isr),
        )
        found = judged(self.image, sender, proposal, self.least)
        if isinstance(found, ErrorCode):
            return f"{found.name} "
        self.show(found[1])
        return ""

    def longest(self, answers: Sequence[str], *, unclean: bool) -> None:
        asked = candidates(self.part, lambda one: one in self.image.brokers, unclean=unclean)
        ends = {}
        for answer in answers:
            broker, _, end = answer.partition("=")
            epoch, _, offset = end.partition(":")
            if int(broker) in asked:
                ends[int(broker)] = LogEnd(int(epoch), int(offset))
        if asked:
            self.show(led_by_longest(self.part, ends, self.least, unclean=unclean))

    def happens(self, event: str) -> str:
        knowing, self.before = self.before, self.image
        match event.split():
            case ["goes", gone]:
                self.goes(numbers(gone))
            case ["back", broker, *lost]:
                self.back(int(broker), lost=lost == ["lost"])
            case ["least", least]:
                self.least = int(least)
                self.elect()
            case [sender, "asks", isr]:
                return self.asks(int(sender), numbers(isr), self.image)
            case [sender, "asked", isr]:
                return self.asks(int(sender), numbers(isr), knowing)
            case [("longest" | "unclean") as kind, *answers]:
                self.longest(answers, unclean=kind == "unclean")
            case _:
                raise ValueError(event)
        return ""


def checked(transcript: str) -> None:
    """Play it, and compare it as a whole."""
    lines = [line.strip() for line in transcript.strip().splitlines()]
    events = [line.partition("|")[0].rstrip() for line in lines]
    _, replicas, _, least = events[0].split()
    played = Played(numbers(replicas), int(least))
    found = [f"{events[0]:<25} | {state(played.part)}"]
    for event in events[1:]:
        refused = played.happens(event)
        found.append(f"{event:<25} | {refused}{state(played.part)}")
    expected = [line.partition("|")[2].strip() for line in lines]
    assert found == [f"{event:<25} | {one}" for event, one in zip(events, expected, strict=True)]
