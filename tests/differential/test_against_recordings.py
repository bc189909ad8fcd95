"""The whole script to our broker: it answers what Apache Kafka answered when it was recorded, field by field."""

from collections.abc import Callable, Sequence
from itertools import islice

import pytest

from harness.tiers import sized
from tests.differential import recording
from tests.differential.accepted import ACCEPTED
from tests.differential.comparing import compare, mutations, show, weigh
from tests.differential.conftest import ONCE
from tests.differential.digests import digests
from tests.differential.normalising import RULES, WHEN_COMPARED, normalised
from tests.differential.playing import Outcome
from tests.differential.recording import Recording
from tests.differential.refereeing import command
from tests.differential.running import (
    Run,
    confirmed,
    judged,
    place_of,
    play_in_virtual_time,
    play_to_process,
    play_until_sure,
)
from tests.differential.script import steps_of
from tests.differential.steps import SCRIPT

KINDS = ("reply", "closed", "silence", "sent")
UNCERTAIN_MAX = 10
NEWEST = list(ACCEPTED)[-1]


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """What our broker answers, in virtual time."""
    return play_in_virtual_time(SCRIPT)


@pytest.fixture(scope="module", params=ACCEPTED)
def known(request: pytest.FixtureRequest) -> Recording:
    return recording.read(request.param)


@pytest.fixture(scope="module")
def run(known: Recording, outcomes: list[Outcome]) -> Run:
    return judged(known, SCRIPT, outcomes)


def test_every_step_was_recorded_as_it_is_asked_now(known: Recording) -> None:
    said = recording.changed(steps_of(known.version, SCRIPT), digests(known.saved), known)
    assert said == [], f"run: {command(known.version)}"


def test_a_recording_says_what_it_is_of_and_is_certain(known: Recording) -> None:
    assert (known.header["kafka"], known.header["command"]) == (known.version, command(known.version))
    assert known.header["uncertain"] <= UNCERTAIN_MAX


def test_every_step_was_played_and_its_reply_understood(known: Recording, outcomes: list[Outcome]) -> None:
    theirs = [(name, outcome.kind) for name, outcome in known.outcomes.items() if outcome.kind not in KINDS]
    ours = [
        (one.name, outcome.kind) for one, outcome in zip(SCRIPT, outcomes, strict=True) if outcome.kind not in KINDS
    ]
    assert (theirs, ours) == ([], [])


def test_our_replies_are_kafkas(run: Run) -> None:
    assert not run.rest, told([run])


def test_every_accepted_difference_came_up(run: Run) -> None:
    _, unused = weigh(run.differences, run.accepted)
    assert unused == []


def test_every_rule_was_needed(run: Run) -> None:
    assert run.used_rules == {rule.__name__ for rule in (*RULES, *WHEN_COMPARED)}


def test_replies_bent_in_any_one_place_would_have_been_seen(outcomes: list[Outcome]) -> None:
    run = judged(recording.read(NEWEST), SCRIPT, outcomes)
    by_name = {step.name: outcome for step, outcome in zip(SCRIPT, outcomes, strict=True)}
    bent = missed = 0
    for step, found in zip(run.steps, run.found, strict=True):
        ours, theirs = by_name[step.name], run.recording.outcomes[step.name]
        if found or ours.kind != "reply" or recording.uncertain(theirs.tree):
            continue
        for _, outcome in islice(mutations(ours), 0, 40, sized(4, 1, 1)):
            bent += 1
            missed += not compare(step, theirs, normalised(step.api.name, outcome, set()), set())
    assert bent > sized(1000, 2000, 2000)
    assert missed == 0


@pytest.mark.long
@pytest.mark.timeout(800)
@pytest.mark.parametrize("version", ACCEPTED)
def test_our_process_answers_as_kafka_too(version: str, pytestconfig: pytest.Config) -> None:
    """With its real loop, sockets and disk."""
    known = recording.read(version)
    check(lambda: judged(known, SCRIPT, play_to_process(SCRIPT)), pytestconfig)


def check(play: Callable[[], Run], pytestconfig: pytest.Config) -> None:
    """No difference in two plays."""
    runs = play_until_sure(play)
    sure = confirmed(runs)
    once = [str(difference) for run in runs for difference in run.rest if place_of(difference) not in sure]
    pytestconfig.stash.setdefault(ONCE, []).extend(once)
    assert not sure, told(runs)


def told(runs: Sequence[Run]) -> str:
    """The differences that count, and both replies of their steps."""
    last = runs[-1]
    sure = confirmed(runs) if len(runs) > 1 else {place_of(difference) for difference in last.rest}
    rest = [difference for difference in last.rest if place_of(difference) in sure]
    shown = []
    for step, ours, found in zip(last.steps, last.outcomes, last.found, strict=True):
        mine = [difference for difference in found if difference in rest]
        if mine:
            shown.append(show(step, last.recording.outcomes[step.name], ours, mine))
    return "\n".join([f"{len(rest)} differences", *map(str, rest), "", "\n\n".join(shown)])
