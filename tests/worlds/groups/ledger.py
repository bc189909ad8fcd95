"""What the members of groups were told, and the checks of it: who owns what, what was committed, who was turned away.

Places are (topic, partition). Time is the loop's, in seconds. A member is known by its instance id if it has one, by
its process otherwise. Two rules about owners: in one generation (or epoch) a place is given to one member; and no two
members work on a place at the same time, where a member stops working unless it hears in time that all is well. A
group that is deleted and made anew counts its generations from the start: the `Era` is part of every generation.
Whatever does not hold is noted and raised as `Broken`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from tests.worlds.groups.register import OffsetRegister, Write
from tests.worlds.workload import Broken

Era: TypeAlias = int
UNKNOWN_IN_A_ROW_MAX = 5
"""A member that is not known to a coordinator joins with a new id, and may be unlucky a few times; no storm."""
ASKS_S = 15.0
SLOWEST_S = 60.0
"""After that nothing arrives any more of a connection that was given up."""


@dataclass
class Holder:
    """What a process works on, as whom, and until when it may."""

    who: str
    places: frozenset[TopicPartition] = frozenset()
    until_s: float = inf


@dataclass(eq=False)
class Claim:
    """A process asks to be let in with an instance id. `done_s`: when it was answered, whatever the answer was."""

    process: str
    sent_s: float
    done_s: float = inf


@dataclass
class Told:
    """The newest generation in which somebody was given a place."""

    generation: tuple[Era, int]
    who: str
    at_s: float


@dataclass
class GroupLedger:
    now: Callable[[], float]
    retention_s: float
    failures: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    holders: dict[str, dict[str, Holder]] = field(default_factory=dict)
    troubled_s: dict[str, float] = field(default_factory=dict)
    """When each host was last in trouble: cut off, or the broker was down ("")."""
    calm_s: float = inf
    """From when on nothing goes wrong any more, and everybody has had the time to get over it."""

    def __post_init__(self) -> None:
        self._owners: dict[tuple[str, Era, int], dict[TopicPartition, str]] = {}
        self._told: dict[tuple[str, TopicPartition], Told] = {}
        self._epochs: dict[tuple[str, Era, str], int] = {}
        self._instances: dict[tuple[str, str], tuple[str, float]] = {}
        self._unknown: dict[str, Counter[str]] = {}
        self._registers: dict[tuple[str, TopicPartition], OffsetRegister] = {}
        self._excused_s: dict[tuple[str, str], float] = {}
        self._claims: dict[tuple[str, str], list[Claim]] = {}
        self._out_s: dict[tuple[str, str], float] = {}
        self._perhaps_out: set[tuple[str, str]] = set()
        self._newest: dict[tuple[str, Era], int] = {}
        self._assigned: set[tuple[str, str]] = set()
        self._went_s: dict[str, float] = {}
        self._values = 0

    def broken(self, sentence: str) -> Broken:
        self.failures.append(f"at {self.now():.3f} s: {sentence}")
        return Broken(self.failures[-1])

    def check(self) -> None:
        if self.failures:
            raise Broken(self.failures[0])

    # -- owners

    def given(
        self, group: str, era: Era, generation: int, who: str, process: str, places: Iterable[TopicPartition]
    ) -> None:
        """A member was told what is its own in a generation."""
        owners = self._owners.setdefault((group, era, generation), {})
        self._assigned.add((group, process))
        self._newest[group, era] = max(self._newest.get((group, era), 0), generation)
        before = self._epochs.get((group, era, process), 0)
        if generation < before:
            raise self.broken(f"{process} of {group} was in generation {before} and is told {generation}")
        self._epochs[group, era, process] = generation
        for place in places:
            if owners.setdefault(place, who) != who:
                raise self.broken(
                    f"{place} has two owners in generation {generation} of {group}: {owners[place]} and {who}"
                )
            told = self._told.get((group, place))
            if told is None or told.generation < (era, generation) or told.who == who:
                self._told[group, place] = Told((era, generation), who, self.now())

    def newest(self, group: str, era: Era) -> int:
        """The newest generation that anybody was told of."""
        return self._newest.get((group, era), 0)

    def was_in(self, group: str, era: Era, process: str, generation: int) -> bool:
        """Whether the process was told something in that generation, or a later one."""
        return self._epochs.get((group, era, process), -1) >= generation

    def is_newest(self, group: str, generation: int, newest: int, process: str) -> None:
        """A request at that generation was taken; `newest` was when it was sent."""
        if generation < newest:
            raise self.broken(f"{process} of {group} is heard at generation {generation}, after {newest}")

    def given_meanwhile(self, group: str, places: Iterable[TopicPartition]) -> None:
        """A member was told what is its own, in a generation of which nobody knows whether the group was made anew."""
        for place in places:
            self._told.pop((group, place), None)

    def holds(self, group: str, who: str, process: str, places: Collection[TopicPartition], until_s: float) -> None:
        """From now on, and until then, the process works on these and nothing else."""
        holders = self.holders.setdefault(group, {})
        mine = holders[process] = Holder(who, frozenset(places), until_s)
        now = self.now()
        for other, theirs in holders.items():
            both = mine.places & theirs.places if theirs.who != who and theirs.until_s > now < until_s else None
            excused = max(self._excused_s.get((group, one), 0.0) for one in (process, other)) > now
            excused = excused or any((group, one) in self._perhaps_out for one in (who, theirs.who))
            excused = excused or self._is_claimed(group, who, process) or self._is_claimed(group, theirs.who, other)
            if both and not excused:
                raise self.broken(f"{min(both)} of {group} is worked on by {theirs.who} and {who}")

    def _is_claimed(self, group: str, who: str, process: str) -> bool:
        """Whether another process asks for that one's instance id just now: others may hear of it before they do."""
        claims = self._claims.get((group, who), [])
        return any(one.process != process and one.done_s == inf and one.sent_s > self.now() - ASKS_S for one in claims)

    def _excuse(self, group: str, who: str, until_s: float, but: str = "") -> None:
        """Processes that work as that member cannot know yet that they are not it any more."""
        for process, holder in self.holders.get(group, {}).items():
            if holder.who == who and process != but:
                self._excuse_process(group, process, until_s)

    def _excuse_process(self, group: str, process: str, until_s: float) -> None:
        self._excused_s[group, process] = max(self._excused_s.get((group, process), 0.0), until_s)

    def lets_go(self, group: str, process: str) -> None:
        self.holders.get(group, {}).pop(process, None)

    # -- members

    def claims(self, group: str, instance: str, process: str) -> Claim:
        """That process asks for the instance id; say `done_s` once it is answered."""
        self._out_s.pop((group, instance), None)
        claim = Claim(process, self.now())
        self._claims.setdefault((group, instance), []).append(claim)
        self._assigned.discard((group, process))
        return claim

    def joined_as(self, group: str, instance: str, process: str, sent_s: float) -> None:
        """That process has the instance id from now on, and the one before it is fenced, and works until it hears of
        that; of two that join at the same time nobody knows which."""
        _, before_s = self._instances.get((group, instance), ("", 0.0))
        self._excuse(group, instance, inf, but=process)
        if sent_s > before_s:
            self._excused_s.pop((group, process), None)
        is_certain = sent_s > before_s and not self.coordinator_went(group, sent_s)
        self._instances[group, instance] = process if is_certain else "", self.now()

    def may_be_out(self, group: str, instance: str) -> None:
        """An administrator asks to take that member out of the group."""
        self._perhaps_out.add((group, instance))

    def is_out(self, group: str, instance: str, sent_s: float | None, heard_s: float) -> None:
        """The administrator was answered; whoever was thrown out knows it by then. `sent_s`: when it was asked that
        the member be taken out, None if nobody knows whether it was. Who asked to be let in before is out with it."""
        self._perhaps_out.discard((group, instance))
        claims = self._claims.get((group, instance), [])
        self._excuse(group, instance, heard_s)
        for claim in claims:  # its share may be on the way to it
            self._excuse_process(group, claim.process, heard_s)
        if sent_s is not None and claims and all(claim.done_s < sent_s for claim in claims):
            self._out_s[group, instance] = self.now()

    def coordinator_goes(self, group: str) -> None:
        """Who had not been assigned anything yet is in no log, and the next coordinator does not know it."""
        self._unknown.pop(group, None)
        self._went_s[group] = self.now()
        for one in [one for one in self._out_s if one[0] == group]:
            del self._out_s[one]
        for one, (process, at_s) in self._instances.items():
            if one[0] == group and (group, process) not in self._assigned:
                self._instances[one] = "", at_s

    def coordinator_went(self, group: str, since_s: float) -> bool:
        return self._went_s.get(group, 0.0) >= since_s

    def accepted(self, group: str, instance: str | None, process: str, sent_s: float) -> None:
        """The coordinator took something from that process."""
        self._unknown.get(group, Counter()).pop(process, None)
        if sent_s > self._out_s.get((group, instance or ""), inf):
            raise self.broken(f"{process} of {group} was thrown out and is heard")
        holder = self._instances.get((group, instance or ""))
        if instance is not None and holder is not None and holder[0] not in ("", process) and sent_s > holder[1]:
            raise self.broken(f"{process} of {group} was fenced by {holder[0]} at {holder[1]:.3f} s and is heard")

    def fenced(self, group: str, instance: str, process: str, sent_s: float) -> None:
        """The process was told that another one has its instance id: there has to be one, or a request of its own that
        nobody answered. Who was assigned something is in the log with its id."""
        claims = self._claims.get((group, instance), [])
        mine = [claim for claim in claims if claim.process == process and claim.done_s < inf]
        if (group, process) not in self._assigned or not mine:
            return
        others = [claim for claim in claims if claim is not mine[-1]]
        if mine[-1].done_s < sent_s and all(_was_before(claim, mine[-1]) for claim in others):
            raise self.broken(f"{process} of {group} is told FENCED_INSTANCE_ID, and nobody else has {instance}")

    def refused(self, group: str, process: str, error: ErrorCode, sent_s: float) -> None:
        """The coordinator did not take something from a member."""
        self.errors[error.name] += 1
        if error is not ErrorCode.UNKNOWN_MEMBER_ID:
            return
        unknown = self._unknown.setdefault(group, Counter())
        unknown[process] += 1
        if unknown[process] > UNKNOWN_IN_A_ROW_MAX:
            raise self.broken(f"{process} of {group} is told UNKNOWN_MEMBER_ID again and again")
        if sent_s > self.calm_s:
            raise self.broken(f"{process} of {group} is told UNKNOWN_MEMBER_ID though all is well")

    def unanswered(self, host: str, what: str, sent_s: float) -> None:
        """A request was not answered in all the time that it may be parked."""
        if sent_s > max(self.troubled_s.get(host, 0.0), self.troubled_s.get("", 0.0)):
            raise self.broken(f"{what} of {host}, sent at {sent_s:.3f} s, was never answered")

    # -- offsets

    def _register(self, group: str, place: TopicPartition) -> OffsetRegister:
        return self._registers.setdefault((group, place), OffsetRegister(self.retention_s))

    def value(self) -> int:
        """An offset that was never committed before."""
        self._values += 1
        return self._values

    def writes(self, group: str, place: TopicPartition, value: int | None) -> Write:
        """Somebody commits, or deletes with None: it may be done at any time from now on."""
        return self._register(group, place).write(value, self.now())

    def wrote(self, group: str, place: TopicPartition, write: Write, who: str | None = None) -> None:
        """It was acknowledged; `who`: to a member, which must own the place."""
        told = self._told.get((group, place))
        if who is not None and told is not None and told.who != who and told.at_s < write.sent_s:
            raise self.broken(f"{who} commits {place} of {group}, which {told.who} has since {told.at_s:.3f} s")
        self._register(group, place).taken(write, self.now())

    def did_not_write(self, group: str, place: TopicPartition, write: Write) -> None:
        """It was refused for certain."""
        self._register(group, place).refused(write)

    def read(self, group: str, place: TopicPartition, value: int | None, sent_s: float) -> None:
        """Somebody asked at `sent_s` and was answered now."""
        said = self._register(group, place).read(value, sent_s, self.now())
        if said is not None:
            raise self.broken(f"the offset of {place} in {group}, asked for at {sent_s:.3f} s, {said}")

    def places_of(self, group: str) -> list[TopicPartition]:
        """Where the group may have offsets."""
        return [place for other, place in self._registers if other == group]


def _was_before(claim: Claim, other: Claim) -> bool:
    """Whether the coordinator has dealt with the one for certain before it got the other."""
    return claim.done_s < other.sent_s or claim.sent_s < other.sent_s - SLOWEST_S
