"""The whole script against Apache Kafka and against our broker: what is answered is the same, field by field."""

import pytest

from tests.differential.accepted import ACCEPTED
from tests.differential.comparing import compare, mutations, show, weigh
from tests.differential.normalising import RULES
from tests.differential.running import Run, play
from tests.differential.steps import SCRIPT

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(230)]
KINDS = ("reply", "closed", "silence", "sent")


@pytest.fixture(scope="module")
def run() -> Run:
    return play(SCRIPT)


def test_every_step_was_played_and_its_reply_understood(run: Run) -> None:
    odd = [
        (one.name, outcome.kind) for one, outcome in zip(run.steps, run.kafka, strict=True) if outcome.kind not in KINDS
    ]
    assert odd == []


def test_our_replies_are_kafkas(run: Run) -> None:
    rest, _ = weigh(run.differences, ACCEPTED)
    shown = []
    for step, theirs, ours, found in zip(run.steps, run.kafka, run.ours, run.found, strict=True):
        mine = [difference for difference in found if difference in rest]
        if mine:
            shown.append(show(step, theirs, ours, mine))
    assert not shown, "\n\n".join([f"{len(rest)} differences", *shown])


def test_every_accepted_difference_came_up(run: Run) -> None:
    _, unused = weigh(run.differences, ACCEPTED)
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
