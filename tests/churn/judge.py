"""What must hold of a group whose members come, go and are killed: pure functions over what is known of it.

`Trace` is the broker's: what it wrote down about the group, in order, and how it answered; `dead_ms` is what
only who kills members can know. What it holds members to:

1. Two members never have a partition in one generation; of the newer protocol, one never has a partition that another
   has, or was asked to give back and has not yet.
2. A partition is without an owner no longer than a session time-out, two heartbeats and a second, counted from the
   last change before (a member joins, leaves, or dies), or from when it lost its owner if that was later. A member
   that dies while its JoinGroup is parked is in the next generation all the same, and nobody can know before a session
   time-out after that: such a generation counts as a change. So does going from one protocol to the other, with which
   everybody is given a new session, as by Apache Kafka. Owners are members that live and have not gone back to
   joining: from its JoinGroup on, a member of the classic protocol has what it says it still has.
3. There is no storm: no more than so many answers of UNKNOWN_MEMBER_ID a change, and to one member; no more than so
   many generations a change, and so many times that a member joins between two changes. Commits are counted apart:
   clients have several on their way when they hear that they are unknown.
4. Every record that was acknowledged was processed.
5. Nobody is told of a generation or an epoch before it is written down.

How long somebody who did nothing but wait was kept waiting (`stalls`) is what the machine took, and is added to 2.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

UNKNOWN_A_CHANGE, UNKNOWN_A_MEMBER, GENERATIONS_A_CHANGE, JOINS_BETWEEN = 2, 4, 4, 12
COMMITS_A_CHANGE = 10
JOIN_GROUP, SYNC_GROUP, LEAVE_GROUP, BEAT = "JoinGroup", "SyncGroup", "LeaveGroup", "ConsumerGroupHeartbeat"
COMMIT = "OffsetCommit"
LEAVES = -1


class Share(NamedTuple):
    """What a generation gives a member, and what the member said it had when it joined."""

    client: str
    partitions: frozenset[int]
    kept: frozenset[int] = frozenset()


class Generation(NamedTuple):
    """A classic group as it was written down, by member id; no members if it is empty or gone."""

    at_ms: int
    number: int
    shares: Mapping[str, Share]


class Current(NamedTuple):
    """What a member of a group of the newer protocol has, and has still to give back; both empty when it is gone."""

    at_ms: int
    epoch: int
    member: str
    client: str
    assigned: frozenset[int] = frozenset()
    revoking: frozenset[int] = frozenset()


class Answer(NamedTuple):
    """An answer to a member, when it was asked for and given."""

    asked_ms: int
    at_ms: int
    api: str
    client: str
    member: str
    epoch: int
    error: str


class Trace(NamedTuple):
    """All that is known of one group of `partitions` partitions until `until_ms`."""

    partitions: int
    written: Sequence[Generation | Current]
    answers: Sequence[Answer]
    dead_ms: Mapping[str, int] = {}
    """By client, when it was killed."""
    until_ms: int = 0
    produced: Mapping[int, int] = {}
    """By partition, how many records."""
    processed: Iterable[tuple[int, int]] = ()
    """Partition and offset of each, as often as it was."""
    stalls: Sequence[tuple[int, int]] = ()
    """When, and for how many milliseconds, somebody who only waited was kept waiting."""


def violations(trace: Trace, session_ms: int, heartbeat_ms: int) -> list[str]:
    """What does not hold, in sentences."""
    allowed_ms = session_ms + 2 * heartbeat_ms + 1000
    return [
        *two_owners(trace.written),
        *(orphan.sentence(allowed_ms) for orphan in orphans(trace, allowed_ms)),
        *storms(trace),
        *lost(trace),
        *unwritten(trace),
    ]


# -- 1


def two_owners(written: Iterable[Generation | Current]) -> Iterator[str]:
    newer: dict[int, str] = {}
    held: dict[str, frozenset[int]] = {}
    generations: dict[int, dict[int, str]] = {}
    for entry in written:
        if isinstance(entry, Generation):
            if not entry.shares:
                generations.clear()
            owners = generations.setdefault(entry.number, {})
            for member, share in entry.shares.items():
                for partition in sorted(share.partitions):
                    owner = owners.setdefault(partition, member)
                    if owner != member:
                        yield f"generation {entry.number}: partition {partition} is {owner}'s and {member}'s"
            continue
        for partition in held.pop(entry.member, frozenset()):
            if newer.get(partition) == entry.member:
                del newer[partition]
        held[entry.member] = entry.assigned | entry.revoking
        for partition in sorted(held[entry.member]):
            owner = newer.setdefault(partition, entry.member)
            if owner != entry.member:
                yield f"epoch {entry.epoch}: partition {partition} is {owner}'s and {entry.member}'s"


# -- 2


class Orphan(NamedTuple):
    partition: int
    from_ms: int
    to_ms: int
    since: str

    @property
    def length_ms(self) -> int:
        return self.to_ms - self.from_ms

    def sentence(self, allowed_ms: int) -> str:
        return (
            f"partition {self.partition} had no owner for {self.length_ms} ms after {self.since}, from {self.from_ms} "
            f"on; allowed are {allowed_ms} ms"
        )


class Change(NamedTuple):
    at_ms: int
    what: str


def changes(trace: Trace) -> list[Change]:
    """Members that came, went and died, in order; who dies before it has joined changes nothing."""
    found = []
    seen: set[str] = set()
    gone: set[str] = set()
    for answer in sorted(trace.answers, key=lambda one: one.asked_ms):
        if answer.api in (JOIN_GROUP, BEAT) and answer.client not in seen:
            seen.add(answer.client)
            found.append(Change(answer.asked_ms, f"{answer.client} joined"))
        elif _leaves(answer) and answer.client not in gone:
            gone.add(answer.client)
            found.append(Change(answer.at_ms, f"{answer.client} left"))
    found += [Change(at_ms, f"{client} died") for client, at_ms in trace.dead_ms.items() if client in seen]
    return sorted(found)


def _leaves(answer: Answer) -> bool:
    return answer.api == LEAVE_GROUP or (answer.api == BEAT and answer.epoch == LEAVES)


def resets(trace: Trace) -> list[Change]:
    """What the time without an owner is counted from: changes, generations that began with a dead member, and going
    over to the other protocol."""
    ghosts = {
        answer.epoch: Change(answer.at_ms, f"generation {answer.epoch} began with {answer.client}, who was dead")
        for answer in trace.answers
        if (answer.api, answer.error) == (JOIN_GROUP, "NONE")
        if trace.dead_ms.get(answer.client, answer.at_ms) < answer.at_ms
    }
    return sorted([*changes(trace), *ghosts.values(), *_conversions(trace.written)])


def _conversions(written: Iterable[Generation | Current]) -> Iterator[Change]:
    said = [one for one in written if (one.shares if isinstance(one, Generation) else one.epoch > 0)]
    for before, after in pairwise(said):
        if type(before) is not type(after):
            kind = "the classic" if isinstance(after, Generation) else "the newer"
            yield Change(after.at_ms, f"the group went over to {kind} protocol")


def orphans(trace: Trace, longer_than_ms: int = 0) -> list[Orphan]:
    """Times without an owner that were longer than that while there was a member, the longest first."""
    counted_from = resets(trace)
    if not counted_from:
        return []
    found = []
    there = _there(trace)
    for partition, spans in owned(trace).items():
        covered = counted_from[0].at_ms
        for start, end in [*sorted(spans), (trace.until_ms, trace.until_ms)]:
            if start > covered:
                found += list(_pieces(partition, covered, start, counted_from))
            covered = max(covered, end)
    longer = [one for one in found if one.length_ms - _stalled_ms(trace, one) > longer_than_ms]
    longer = [one for one in longer if any(from_ms <= one.from_ms < to_ms for from_ms, to_ms in there)]
    return sorted(longer, key=lambda one: -one.length_ms)


def _pieces(partition: int, from_ms: int, to_ms: int, counted_from: Sequence[Change]) -> Iterator[Orphan]:
    before = [change for change in counted_from if change.at_ms <= from_ms]
    since = before[-1].what if before else "the beginning"
    cuts = [Change(from_ms, since), *(change for change in counted_from if from_ms < change.at_ms < to_ms)]
    for cut, after in pairwise([*cuts, Change(to_ms, "")]):
        yield Orphan(partition, cut.at_ms, after.at_ms, cut.what)


def _stalled_ms(trace: Trace, orphan: Orphan) -> int:
    return sum(late_ms for at_ms, late_ms in trace.stalls if orphan.from_ms <= at_ms <= orphan.to_ms)


def _ended_ms(trace: Trace) -> dict[str, int]:
    """By client, when it died or left, be it that the group had forgotten it."""
    ended_ms = dict(trace.dead_ms)
    for answer in trace.answers:
        if _leaves(answer):
            ended_ms[answer.client] = min(answer.at_ms, ended_ms.get(answer.client, answer.at_ms))
    return ended_ms


def _there(trace: Trace) -> list[tuple[int, int]]:
    """From when to when each client was there."""
    began_ms: dict[str, int] = {}
    for answer in trace.answers:
        if answer.api in (JOIN_GROUP, BEAT):
            began_ms[answer.client] = min(answer.asked_ms, began_ms.get(answer.client, answer.asked_ms))
    ended_ms = _ended_ms(trace)
    return [(at_ms, ended_ms.get(client, trace.until_ms)) for client, at_ms in began_ms.items()]


def owned(trace: Trace) -> dict[int, list[tuple[int, int]]]:
    """By partition, from when to when somebody who lived had it."""
    ended_ms = _ended_ms(trace)
    spans: dict[int, list[tuple[int, int]]] = {partition: [] for partition in range(trace.partitions)}

    def add(partition: int, client: str, from_ms: int, to_ms: int) -> None:
        to_ms = min(to_ms, ended_ms.get(client, to_ms))
        if to_ms > from_ms and partition in spans:
            spans[partition].append((from_ms, to_ms))

    generations = [one for one in trace.written if isinstance(one, Generation)]
    turns = _turns(trace)
    for generation, after in zip_longest(generations, generations[1:]):
        until_ms = after.at_ms if after is not None else trace.until_ms
        for member, share in generation.shares.items():
            kept = after.shares[member].kept if after is not None and member in after.shares else frozenset()
            for partition in share.partitions & kept:
                add(partition, share.client, generation.at_ms, until_ms)
            for from_ms, to_ms in _having(generation, turns.get(share.client, []), until_ms):
                for partition in share.partitions:
                    add(partition, share.client, from_ms, to_ms)
    by_member: dict[str, list[Current]] = {}
    for one in trace.written:
        if isinstance(one, Current):
            by_member.setdefault(one.member, []).append(one)
    for currents in by_member.values():
        for current, next_one in zip_longest(currents, currents[1:]):
            for partition in current.assigned:
                until_ms = next_one.at_ms if next_one is not None else trace.until_ms
                add(partition, current.client, current.at_ms, until_ms)
    return spans


def _turns(trace: Trace) -> dict[str, list[tuple[int, int]]]:
    """By client, when it went back to joining (0), and when it was given its share of a generation (its number)."""
    turns: dict[str, list[tuple[int, int]]] = {}
    for answer in trace.answers:
        if answer.api == JOIN_GROUP:
            turns.setdefault(answer.client, []).append((answer.asked_ms, 0))
        elif (answer.api, answer.error) == (SYNC_GROUP, "NONE"):
            turns.setdefault(answer.client, []).append((answer.at_ms, answer.epoch))
    return {client: sorted(found) for client, found in turns.items()}


def _having(generation: Generation, turns: Iterable[tuple[int, int]], until_ms: int) -> Iterator[tuple[int, int]]:
    """From when to when a member of the generation had its share: who joins again may get the same once more."""
    since_ms: int | None = generation.at_ms
    for at_ms, number in turns:
        if not generation.at_ms < at_ms <= until_ms:
            continue
        if number == 0 and since_ms is not None:
            yield since_ms, at_ms
            since_ms = None
        elif number == generation.number and since_ms is None:
            since_ms = at_ms
    if since_ms is not None:
        yield since_ms, until_ms


# -- 3


def storms(trace: Trace) -> Iterator[str]:
    allowed = len(changes(trace))
    unknowns = [answer for answer in trace.answers if answer.error == "UNKNOWN_MEMBER_ID"]
    unknown = Counter(answer.member for answer in unknowns if answer.api != COMMIT)
    commits = len(unknowns) - sum(unknown.values())
    if commits > COMMITS_A_CHANGE * allowed:
        yield f"{commits} commits of members that are unknown in {allowed} changes"
    if sum(unknown.values()) > UNKNOWN_A_CHANGE * allowed:
        yield f"{sum(unknown.values())} answers of UNKNOWN_MEMBER_ID in {allowed} changes"
    for member, count in unknown.items():
        if count > UNKNOWN_A_MEMBER:
            yield f"{member} was told {count} times that it is unknown"
    if begun(trace) > GENERATIONS_A_CHANGE * allowed:
        yield f"{begun(trace)} generations in {allowed} changes"
    at_ms = [change.at_ms for change in resets(trace)]
    between = Counter(
        (answer.client, bisect(at_ms, answer.asked_ms)) for answer in trace.answers if answer.api == JOIN_GROUP
    )
    for (client, after), count in between.items():
        if count > JOINS_BETWEEN:
            yield f"{client} joined {count} times after change {after} and before the next"


def begun(trace: Trace) -> int:
    """How many generations, or epochs, members were told of."""
    told = (answer for answer in trace.answers if answer.api in (JOIN_GROUP, BEAT) and answer.error == "NONE")
    return len({answer.epoch for answer in told if answer.epoch > 0})


# -- 4


def lost(trace: Trace) -> Iterator[str]:
    done = Counter(trace.processed)
    for partition, count in trace.produced.items():
        missing = [offset for offset in range(count) if (partition, offset) not in done]
        if missing:
            yield f"{len(missing)} records of partition {partition} were not processed, the first {missing[0]}"


# -- 5


def unwritten(trace: Trace) -> Iterator[str]:
    known: dict[tuple[str, int], int] = {}
    for entry in trace.written:
        members = entry.shares if isinstance(entry, Generation) else (entry.member,)
        number = entry.number if isinstance(entry, Generation) else entry.epoch
        for member in members:
            known.setdefault((member, number), entry.at_ms)
    for answer in trace.answers:
        if answer.api in (SYNC_GROUP, BEAT) and answer.error == "NONE" and answer.epoch > 0:
            written_ms = known.get((answer.member, answer.epoch))
            if written_ms is None or written_ms > answer.at_ms:
                yield f"{answer.member} was told of {answer.epoch} at {answer.at_ms}, when that was not written down"


def duplicates(trace: Trace) -> int:
    """How often a record was processed again."""
    return sum(count - 1 for count in Counter(trace.processed).values())
