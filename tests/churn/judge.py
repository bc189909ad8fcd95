"""What must hold of a group whose members come, go and are killed: pure functions over the `evidence`.

1. Two owners never have a partition in one generation; of the consumer protocol, a member never has a partition that
   another has, or was asked to give back and has not yet. An owner is a member, or an instance where it has an id.
2. A partition is without an owner no longer than a session time-out, two heartbeats and a second, counted from the
   last change before (a member joins, leaves, or dies), or from when it lost its owner if that was later. A member
   that dies while its JoinGroup is parked is in the next generation all the same, and nobody can know before a session
   time-out after that: such a generation counts as a change. So does going from one protocol to the other, with which
   everybody is given a new session, as by Apache Kafka; and so does the return of a broker that was killed. Owners are
   members that live and have not gone back to joining: from its JoinGroup on, a member of the classic protocol has what
   it says it still has, and one of the consumer protocol has what it was asked to give back for as long as it reads it.
3. There is no storm: no more than so many answers of UNKNOWN_MEMBER_ID a change, and to one member; no more than so
   many generations a change, and so many times that a member joins between two changes. Commits are counted apart:
   clients have several on their way when they hear that they are unknown.
4. Every record that was acknowledged was processed.
5. Nobody is told of a generation or an epoch before it is written down: a generation that members joined counts from
   then on only. One that is not written when the broker is killed may be counted again, with others in it, as by
   Apache Kafka. Otherwise members never join a lower generation than the one before, nor than what is written.
6. An instance keeps its place (`instances`).

How long somebody who did nothing but wait was kept waiting (`stalls`) is what the machine took, and is added to 2.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from tests.churn.evidence import (
    BEAT,
    COMMIT,
    JOIN_GROUP,
    SYNC_GROUP,
    Current,
    Generation,
    Trace,
    bearers,
    comes,
    ended_ms,
    leaves,
)
from tests.churn.instances import misplaced

UNKNOWN_A_CHANGE, UNKNOWN_A_MEMBER, GENERATIONS_A_CHANGE, JOINS_BETWEEN = 2, 4, 4, 12
COMMITS_A_CHANGE = 10


def violations(trace: Trace, session_ms: int, heartbeat_ms: int) -> list[str]:
    """What does not hold, in sentences."""
    allowed_ms = session_ms + 2 * heartbeat_ms + 1000
    return [
        *untimed(trace),
        *(orphan.sentence(allowed_ms) for orphan in orphans(trace, allowed_ms)),
        *misplaced(trace, session_ms, heartbeat_ms),
    ]


def untimed(trace: Trace) -> list[str]:
    """What does not hold, however slow the machine is: 2 and 6 are left out, whose bounds are times."""
    return [
        *two_owners(trace.written),
        *storms(trace),
        *lost(trace),
        *unwritten(trace),
        *counted_back(trace),
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
                name = share.instance or member
                for partition in sorted(share.partitions):
                    owner = owners.setdefault(partition, name)
                    if owner != name:
                        yield f"generation {entry.number}: partition {partition} is {owner}'s and {name}'s"
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
        if comes(answer) and answer.client not in seen:
            seen.add(answer.client)
            found.append(Change(answer.asked_ms, f"{answer.client} joined"))
        elif leaves(answer) and answer.client not in gone:
            gone.add(answer.client)
            found.append(Change(answer.at_ms, f"{answer.client} left"))
    found += [Change(at_ms, f"{client} died") for client, at_ms in trace.dead_ms.items() if client in seen]
    return sorted(found)


def resets(trace: Trace) -> list[Change]:
    """What the time without an owner is counted from: changes, generations that began with a dead member, going over to
    the other protocol, and the broker's end and return."""
    ghosts = {
        answer.epoch: Change(answer.at_ms, f"generation {answer.epoch} began with {answer.client}, who was dead")
        for answer in trace.answers
        if (answer.api, answer.error) == (JOIN_GROUP, "NONE")
        if trace.dead_ms.get(answer.client, answer.at_ms) < answer.at_ms
    }
    killed = [Change(from_ms, "the broker was killed") for from_ms, _ in trace.kills]
    back = [Change(to_ms, "the broker was back") for _, to_ms in trace.kills]
    return sorted([*changes(trace), *ghosts.values(), *_conversions(trace.written), *killed, *back])


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
    longer = [one for one in longer if not any(from_ms <= one.from_ms < to_ms for from_ms, to_ms in trace.kills)]
    return sorted(longer, key=lambda one: -one.length_ms)


def _pieces(partition: int, from_ms: int, to_ms: int, counted_from: Sequence[Change]) -> Iterator[Orphan]:
    before = [change for change in counted_from if change.at_ms <= from_ms]
    since = before[-1].what if before else "the beginning"
    cuts = [Change(from_ms, since), *(change for change in counted_from if from_ms < change.at_ms < to_ms)]
    for cut, after in pairwise([*cuts, Change(to_ms, "")]):
        yield Orphan(partition, cut.at_ms, after.at_ms, cut.what)


def _stalled_ms(trace: Trace, orphan: Orphan) -> int:
    return sum(late_ms for at_ms, late_ms in trace.stalls if orphan.from_ms <= at_ms <= orphan.to_ms)


def _there(trace: Trace) -> list[tuple[int, int]]:
    """From when to when each client was there."""
    began_ms: dict[str, int] = {}
    for answer in trace.answers:
        if comes(answer):
            began_ms[answer.client] = min(answer.asked_ms, began_ms.get(answer.client, answer.asked_ms))
    ended = ended_ms(trace)
    return [(at_ms, ended.get(client, trace.until_ms)) for client, at_ms in began_ms.items()]


def owned(trace: Trace) -> dict[int, list[tuple[int, int]]]:
    """By partition, from when to when somebody who lived had it."""
    ended, bearer = ended_ms(trace), bearers(trace)
    spans: dict[int, list[tuple[int, int]]] = {partition: [] for partition in range(trace.partitions)}

    def add(partition: int, client: str, from_ms: int, to_ms: int) -> None:
        to_ms = min(to_ms, ended.get(client, to_ms))
        if to_ms > from_ms and partition in spans:
            spans[partition].append((from_ms, to_ms))

    generations = [one for one in trace.written if isinstance(one, Generation)]
    turns = _turns(trace)
    for generation, after in zip_longest(generations, generations[1:]):
        until_ms = after.at_ms if after is not None else trace.until_ms
        for member, share in generation.shares.items():
            client = bearer.get(member, share.client)
            kept = after.shares[member].kept if after is not None and member in after.shares else frozenset()
            for partition in share.partitions & kept:
                add(partition, client, generation.at_ms, until_ms)
            for from_ms, to_ms in _having(generation, turns.get(client, []), until_ms):
                for partition in share.partitions:
                    add(partition, client, from_ms, to_ms)
    by_member: dict[str, list[Current]] = {}
    for one in trace.written:
        if isinstance(one, Current):
            by_member.setdefault(one.member, []).append(one)
    for currents in by_member.values():
        for current, next_one in zip_longest(currents, currents[1:]):
            client = bearer.get(current.member, current.client)
            until_ms = next_one.at_ms if next_one is not None else trace.until_ms
            for partition in current.assigned:
                add(partition, client, current.at_ms, until_ms)
            for partition in current.revoking:
                add(partition, client, current.at_ms, _reads_until_ms(trace, client, partition, until_ms))
    return spans


def _reads_until_ms(trace: Trace, client: str, partition: int, until_ms: int) -> int:
    """Until when the client read the partition; all the time if it had the last record there is."""
    last_ms = max(
        (at_ms for (_, number), read in trace.read_ms.items() if number == partition for at_ms in read), default=0
    )
    mine_ms = max((at_ms for at_ms in trace.read_ms.get((client, partition), ()) if at_ms <= until_ms), default=0)
    return until_ms if mine_ms and mine_ms == last_ms else mine_ms


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
    allowed = len(changes(trace)) + len(trace.kills)
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


def counted_back(trace: Trace) -> Iterator[str]:
    """Only of groups that speak the classic protocol all along: members of others are at epochs of their own."""
    generations = [entry for entry in trace.written if isinstance(entry, Generation)]
    if len(generations) < len(trace.written):
        return
    starts = [0, *(killed_ms for killed_ms, _ in trace.kills)]
    for start_ms, end_ms in zip_longest(starts, starts[1:]):
        reached = max((one.number for one in generations if one.at_ms <= start_ms), default=0)
        for answer in trace.answers:
            if (answer.api, answer.error) != (JOIN_GROUP, "NONE") or answer.at_ms <= start_ms:
                continue
            if end_ms is not None and answer.at_ms > end_ms:
                break
            if answer.epoch < reached:
                yield f"{answer.client} joined generation {answer.epoch} when there had been {reached}"
            reached = max(reached, answer.epoch)


def counted_again(trace: Trace) -> int:
    """How many generations were begun before the broker was killed and again afterwards, as they were not written."""
    count = 0
    for killed_ms, _ in trace.kills:
        known = {one.number for one in trace.written if isinstance(one, Generation) and one.at_ms <= killed_ms}
        begun = {
            (answer.epoch, answer.at_ms > killed_ms)
            for answer in trace.answers
            if (answer.api, answer.error) == (JOIN_GROUP, "NONE") and answer.epoch not in known
        }
        count += sum((epoch, True) in begun for epoch, after in begun if not after)
    return count


def duplicates(trace: Trace) -> int:
    """How often a record was processed again."""
    return sum(count - 1 for count in Counter(trace.processed).values())
