"""Groups of real clients, alone and mixed, some of static members, who come, go and are killed a hundred times while
the broker is killed as well: what must hold of them (`tests.churn.judge`) does, by the broker's own trace; and it would
be found if it did not."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.tiers import LONG, sized
from tests.churn.evidence import BEAT, LEAVES, Answer, Current, Generation, Trace
from tests.churn.instances import returns, tenures
from tests.churn.judge import violations
from tests.churn.running import TIMING, Report, churn

CHANGES, PLANNED, KILLS, SEED = sized((24, 30), (24, 30), (100, 115)) + (2, 35)
LONG_CHANGES, LONG_KILLS_MAX, LONG_ROUNDS = 400, 8, 5
INSTALLING_SECONDS_MAX = 900
"""The first run of all may have to wait until package managers have brought every client."""

pytestmark = [pytest.mark.check, pytest.mark.timeout(INSTALLING_SECONDS_MAX)]


def assert_held(report: Report) -> None:
    told = "\n".join(report.lines())
    print(told)
    assert not report.violations, told
    assert report.changes >= CHANGES


def test_groups_keep_their_promises_while_members_and_the_broker_are_killed(tmp_path: Path) -> None:
    report = churn(SEED, PLANNED, tmp_path, kills=KILLS)
    assert_held(report)
    assert all(len(trace.kills) == KILLS for trace in report.traces.values())
    for name, trace in report.traces.items():
        for what, seeded in SEEDED.items():
            worse = seeded(trace)
            assert worse is None or violations(worse, *TIMING), f"{what} in {name} would not have been found"
    if LONG:  # fewer changes may not have each of these
        told = {answer.error for trace in report.traces.values() for answer in trace.answers}
        assert told >= {"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"}
        assert all(any(seeded(trace) for trace in report.traces.values()) for seeded in SEEDED.values())


if LONG:

    @pytest.mark.timeout(0)
    @pytest.mark.parametrize("_", range(LONG_ROUNDS))
    def test_they_do_for_any_seed(_: int, tmp_path: Path) -> None:
        chance = random.SystemRandom()
        kills = chance.randint(0, LONG_KILLS_MAX)
        assert_held(churn(chance.randrange(1 << 32), LONG_CHANGES, tmp_path, kills=kills))


def _with_the_share_of_another(trace: Trace) -> Trace | None:
    """A member of the last generation of several has what another has as well."""
    for at, entry in reversed(list(enumerate(trace.written))):
        if isinstance(entry, Generation) and sum(bool(share.partitions) for share in entry.shares.values()) > 1:
            first, second, *_ = (member for member, share in entry.shares.items() if share.partitions)
            share = entry.shares[first]._replace(partitions=entry.shares[second].partitions)
            return _replaced(trace, at, entry._replace(shares={**entry.shares, first: share}))
    return None


def _with_what_another_has(trace: Trace) -> Trace | None:
    """A member of the consumer protocol is given what another has, or has not given back."""
    held: dict[str, Current] = {}
    for at, entry in enumerate(trace.written):
        if isinstance(entry, Current):
            others = [other for name, other in held.items() if name != entry.member and other.assigned]
            if others and entry.epoch > 0:
                return _replaced(trace, at, entry._replace(assigned=others[0].assigned | others[0].revoking))
            held[entry.member] = entry
    return None


def _replaced(trace: Trace, at: int, entry: Generation | Current) -> Trace:
    return trace._replace(written=[*trace.written[:at], entry, *trace.written[at + 1 :]])


def _without_the_end(trace: Trace) -> Trace:
    """Nothing is written after the last change but one: what is given then is given to nobody."""
    last_ms = max(entry.at_ms for entry in trace.written if entry.at_ms < trace.until_ms)
    return trace._replace(
        written=[entry for entry in trace.written if entry.at_ms < last_ms], until_ms=trace.until_ms + 60_000
    )


def _with_a_storm(trace: Trace) -> Trace:
    one = trace.answers[-1]._replace(api="Heartbeat", error="UNKNOWN_MEMBER_ID")
    return trace._replace(answers=[*trace.answers, *[one] * 40])


def _told_too_early(trace: Trace) -> Trace:
    """A member hears of its generation a minute before it is written."""
    told = [answer for answer in trace.answers if answer.api in ("SyncGroup", "ConsumerGroupHeartbeat")]
    first = next(answer for answer in told if answer.error == "NONE" and answer.epoch > 0)
    early: Answer = first._replace(at_ms=first.at_ms - 60_000, asked_ms=first.asked_ms - 60_000)
    return trace._replace(answers=[early, *trace.answers])


def _with_a_fenced_member_that_goes_on(trace: Trace) -> Trace | None:
    """A member whose instance another has is granted a heartbeat ten seconds later."""
    for one in tenures(trace.written):
        if one.successor is not None:
            at_ms = one.to_ms + 10_000
            late = Answer(at_ms, at_ms, "Heartbeat", "fenced", one.member, 1, "NONE")
            return trace._replace(answers=[*trace.answers, late])
    return None


def _with_a_return_that_rebalances(trace: Trace) -> Trace | None:
    """An instance comes back to a group at rest, and joins the next generation."""
    for one in returns(trace, *TIMING):
        worse = one.answer._replace(epoch=one.number + 1)
        return trace._replace(answers=[worse if answer is one.answer else answer for answer in trace.answers])
    return None


def _with_a_place_given_away(trace: Trace) -> Trace | None:
    """A static member of the consumer protocol is forgotten a second after the group has heard of it."""
    beats = {answer.member: answer.at_ms for answer in trace.answers if answer.api == BEAT and answer.epoch > 0}
    for at, entry in enumerate(trace.written):
        if isinstance(entry, Current) and entry.instance is not None and entry.member in beats and entry.epoch > 0:
            gone = entry._replace(at_ms=beats[entry.member] + 1000, epoch=LEAVES, assigned=frozenset())
            others = [one for one in trace.written[at + 1 :] if isinstance(one, Current) and one.member != entry.member]
            return trace._replace(written=[*trace.written[: at + 1], *others, gone])
    return None


def _without_a_record(trace: Trace) -> Trace:
    lost = next(iter(trace.processed))
    return trace._replace(processed=[one for one in trace.processed if one != lost])


SEEDED: Mapping[str, Callable[[Trace], Trace | None]] = {
    "two owners in a generation": _with_the_share_of_another,
    "two owners in an epoch": _with_what_another_has,
    "a partition that nobody takes over": _without_the_end,
    "a storm": _with_a_storm,
    "being told too early": _told_too_early,
    "a fenced member that goes on": _with_a_fenced_member_that_goes_on,
    "a static return that causes a rebalance": _with_a_return_that_rebalances,
    "a place given away": _with_a_place_given_away,
    "a lost record": _without_a_record,
}
"""What is done to a trace that holds; None where there is nothing to do it to."""
