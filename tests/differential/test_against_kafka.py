"""The whole script against Apache Kafka and against our broker: what is answered is the same, field by field."""

import pytest

from tests.differential.accepted import ACCEPTED
from tests.differential.comparing import compare, mutations, show, weigh
from tests.differential.conftest import ONCE
from tests.differential.normalising import RULES
from tests.differential.running import Run, confirmed, place_of, play, play_until_sure
from tests.differential.steps import SCRIPT

pytestmark = [pytest.mark.check, pytest.mark.timeout(800)]
KINDS = ("reply", "closed", "silence", "sent")


@pytest.fixture(scope="module")
def runs(pytestconfig: pytest.Config) -> list[Run]:
    runs = play_until_sure(SCRIPT, play)
    sure = confirmed(runs)
    pytestconfig.stash[ONCE] = [
        str(difference) for run in runs for difference in run.rest if place_of(difference) not in sure
    ]
    return runs


@pytest.fixture(scope="module")
def run(runs: list[Run]) -> Run:
    """The one with the fewest differences."""
    return min(runs, key=lambda run: len(run.rest))


def test_every_step_was_played_and_its_reply_understood(run: Run) -> None:
    odd = [
        (one.name, outcome.kind) for one, outcome in zip(run.steps, run.kafka, strict=True) if outcome.kind not in KINDS
    ]
    assert odd == []


def test_our_replies_are_kafkas(runs: list[Run]) -> None:
    sure, last = confirmed(runs), runs[-1]
    rest = [difference for difference in last.rest if place_of(difference) in sure]
    shown = []
    for step, theirs, ours, found in zip(last.steps, last.kafka, last.ours, last.found, strict=True):
        mine = [difference for difference in found if difference in rest]
        if mine:
            shown.append(show(step, theirs, ours, mine))
    summary = [f"{len(sure)} differences in two plays of {len(runs)}", *map(str, rest)]
    assert not sure, "\n".join([*summary, "", "\n\n".join(shown)])


def test_every_accepted_difference_came_up(runs: list[Run]) -> None:
    _, unused = weigh([difference for run in runs for difference in run.differences], ACCEPTED)
    assert unused == []


def test_every_rule_was_needed(run: Run) -> None:
    assert run.used_rules == {rule.__name__ for rule in RULES}


def test_replies_bent_in_any_one_place_would_have_been_seen(run: Run) -> None:
    bent = missed = 0
    for step, theirs, ours, found in zip(run.steps, run.kafka, run.ours, run.found, strict=True):
        if found or ours.kind != "reply":
            continue
        for _, outcome in list(mutations(ours))[:40]:
            bent += 1
            missed += not compare(step, theirs, outcome, set())
    assert bent > 2000
    assert missed == 0
