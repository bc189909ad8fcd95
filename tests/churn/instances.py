"""What must hold of static members (KIP-345, and KIP-848 for the consumer protocol): an instance is one owner,
whichever member bears its id at present.

1. A member whose instance another has taken over is told so: nothing it asks for is granted from then on. Nobody else
   is told so.
2. In a classic group that is at rest, an instance that comes back within its session is in the generation that there
   is, and no other begins for it.
3. An instance keeps its place until a session time-out after it was last heard of; of the consumer protocol also when
it
   says that it leaves for now, and what it has then is its own when it comes back. Nobody takes its place while it is
   there.

Only what is certain is judged: `HEARD_MS` is how late the broker may have logged what it had decided.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.churn.evidence import (
    COMMIT,
    JOIN_GROUP,
    LEAVES,
    LEAVES_FOR_NOW,
    Answer,
    Current,
    Generation,
    Trace,
    bearers,
    ended_ms,
    leaves,
)

HEARD_MS, FOREVER_MS = 1000, 1 << 62
REBALANCES = "REBALANCE_IN_PROGRESS"


class Tenure(NamedTuple):
    """A member that has an instance id, from when this was written down until something else was.

    `successor` had it right after; without one the instance had no place any more. `last` is what of it was written
    last, of the consumer protocol, and `first` what was written first of its successor.
    """

    instance: str
    member: str
    from_ms: int
    to_ms: int
    successor: str | None
    last: Current | None = None
    first: Current | None = None


def misplaced(trace: Trace, session_ms: int, heartbeat_ms: int) -> Iterator[str]:
    """What does not hold of the group's instances, in sentences."""
    yield from _going_on(trace)
    yield from _wrongly_fenced(trace, session_ms)
    for one in returns(trace, session_ms, heartbeat_ms):
        yield from one.wrongs()
    yield from _given_away(trace, session_ms)


def tenures(written: Sequence[Generation | Current]) -> list[Tenure]:
    """Those that have ended in the order in which they did, and then those that have not."""
    ended: list[Tenure] = []
    classic: dict[str, tuple[str, int]] = {}
    newer: dict[str, tuple[Current, int]] = {}
    gone: dict[str, tuple[int, int]] = {}
    for entry in written:
        if isinstance(entry, Generation):
            now = {share.instance: member for member, share in entry.shares.items() if share.instance is not None}
            for instance, (member, since_ms) in list(classic.items()):
                if now.get(instance) != member:
                    ended.append(Tenure(instance, member, since_ms, entry.at_ms, now.get(instance)))
                    del classic[instance]
            for instance, member in now.items():
                classic.setdefault(instance, (member, entry.at_ms))
        elif entry.instance is None:
            continue
        elif entry.epoch == LEAVES:
            if entry.member in newer:
                last, since_ms = newer.pop(entry.member)
                gone[entry.instance] = (len(ended), entry.at_ms)
                ended.append(Tenure(entry.instance, entry.member, since_ms, entry.at_ms, None, last))
        else:
            at, gone_ms = gone.pop(entry.instance, (-1, -1))
            if gone_ms == entry.at_ms:  # one record behind the other
                ended[at] = ended[at]._replace(successor=entry.member, first=entry)
            newer[entry.member] = (entry, newer.get(entry.member, (entry, entry.at_ms))[1])
    held = [Tenure(instance, member, since_ms, FOREVER_MS, None) for instance, (member, since_ms) in classic.items()]
    held += [Tenure(last.instance or "", last.member, at_ms, FOREVER_MS, None, last) for last, at_ms in newer.values()]
    return [*ended, *held]


# -- 1


def _going_on(trace: Trace) -> Iterator[str]:
    for one in tenures(trace.written):
        if one.successor in (None, one.member):
            continue
        for answer in trace.answers:
            if answer.member == one.member and answer.error == "NONE" and answer.asked_ms > one.to_ms + HEARD_MS:
                yield (
                    f"{one.member} was granted {answer.api} at {answer.at_ms}, though {one.successor} has been "
                    f"{one.instance} since {one.to_ms}"
                )


def _wrongly_fenced(trace: Trace, session_ms: int) -> Iterator[str]:
    """Who takes over in the middle of a rebalance is written down at its end, if the broker lives to see it."""
    for one in tenures(trace.written):
        for answer in trace.answers:
            if answer.member != one.member or answer.error != "FENCED_INSTANCE_ID":
                continue
            until_ms = answer.at_ms + 2 * session_ms
            lived = not any(answer.at_ms <= killed_ms <= until_ms for killed_ms, _ in trace.kills)
            if one.from_ms <= answer.at_ms and until_ms < one.to_ms and lived:
                yield f"{one.member} was told at {answer.at_ms} that another is {one.instance}, which is nobody else"


# -- 2


class Return(NamedTuple):
    """An instance that came back to a classic group at rest: the generation it found, the answer it got, and the first
    answer that tells of a rebalance before anything else happened."""

    instance: str
    number: int
    answer: Answer
    rebalance: Answer | None

    def wrongs(self) -> Iterator[str]:
        came = f"{self.answer.client} came back as {self.instance} at {self.answer.at_ms}"
        if self.rebalance is not None:
            yield f"{came}, for which {self.rebalance.client} had to join again at {self.rebalance.at_ms}"
        elif self.answer.epoch != self.number:
            yield f"{came}, and joined generation {self.answer.epoch} instead of {self.number}"


def returns(trace: Trace, session_ms: int, heartbeat_ms: int) -> list[Return]:
    """Those of which it is certain that nothing but the return can have called for a rebalance."""
    generations = [one for one in trace.written if isinstance(one, Generation)]
    found = []
    for one in tenures(generations):
        came = next((a for a in trace.answers if (a.api, a.member) == (JOIN_GROUP, one.successor)), None)
        if came is None or came.error != "NONE":
            continue
        before = [entry for entry in generations if entry.at_ms < came.asked_ms and one.member in entry.shares]
        if not before or _unheard_ms(trace, one.member, came.asked_ms) > session_ms - HEARD_MS:
            continue
        if _at_rest(trace, before[-1], one.member, came, session_ms // 2):
            event = _next_event(trace, came, came.at_ms + 2 * heartbeat_ms)
            if event is None or event.error == REBALANCES or event.asked_ms > came.at_ms:
                rebalance = event if event is not None and event.error == REBALANCES else None
                found.append(Return(one.instance, before[-1].number, came, rebalance))
    return found


def _unheard_ms(trace: Trace, member: str, until_ms: int) -> int:
    """For how long it had not been heard of by then, at the most; by the consumer protocol, commits do not count."""
    said = (a for a in trace.answers if a.member == member and a.asked_ms <= until_ms)
    return until_ms - max((a.asked_ms for a in said if a.api != COMMIT and not leaves(a)), default=0)


def _at_rest(trace: Trace, generation: Generation, went: str, came: Answer, unheard_ms_max: int) -> bool:
    """Whether everybody else is there when the instance comes, and none has been joining or leaving since that
    generation, nor is likely to be taken for dead."""
    ended, bearer = ended_ms(trace), bearers(trace)
    for member, share in generation.shares.items():
        if member == went:
            continue
        if ended.get(bearer.get(member, share.client), came.asked_ms) < came.asked_ms:
            return False
        if _unheard_ms(trace, member, came.asked_ms) > unheard_ms_max:
            return False
    meanwhile = (
        a for a in trace.answers if a is not came and generation.at_ms < a.at_ms and a.asked_ms <= came.asked_ms
    )
    for answer in meanwhile:
        joins = answer.api == JOIN_GROUP and answer.epoch != generation.number
        if joins or leaves(answer) or answer.error == REBALANCES:
            return False
    soon_ms = came.at_ms + unheard_ms_max
    return not any(killed_ms <= soon_ms and generation.at_ms <= back_ms for killed_ms, back_ms in trace.kills)


def _next_event(trace: Trace, came: Answer, until_ms: int) -> Answer | None:
    """The first answer to what was asked after it that tells of a rebalance, or that somebody joins or leaves."""
    later = [a for a in trace.answers if a is not came and came.asked_ms <= a.asked_ms <= until_ms]
    events = (a for a in later if a.api == JOIN_GROUP or leaves(a) or a.error == REBALANCES)
    return min(events, key=lambda one: one.asked_ms, default=None)


# -- 3


def _given_away(trace: Trace, session_ms: int) -> Iterator[str]:
    for one in tenures(trace.written):
        is_newer, is_away = one.last is not None, one.last is not None and one.last.epoch == LEAVES_FOR_NOW
        if one.last is not None and one.first is not None and is_away:
            missing = one.last.assigned - one.first.assigned - one.first.revoking
            if missing:
                yield f"{one.instance} came back at {one.to_ms} to less than it had: without {sorted(missing)}"
        elif is_newer or one.successor is None:
            unheard_ms = _unheard_ms(trace, one.member, one.to_ms)
            left = any(leaves(a) and a.member == one.member and a.asked_ms <= one.to_ms for a in trace.answers)
            if unheard_ms < session_ms - HEARD_MS and (is_away or not left):
                why = f"{unheard_ms} ms after it was heard of"
                yield f"{one.instance} was no longer {one.member}'s at {one.to_ms}, {why}"
