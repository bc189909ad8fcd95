"""A plan is the same for a seed, keeps a member alive, and lets every kind have its turn."""

import pytest

from tests.churn.plan import JOIN, KILL, LEAVE, Kind, Script, plan
from tests.churn.scripts import rows

A, B, C = Kind("a"), Kind("b"), Kind("c", "consumer")
SCRIPT = Script("some", [[A, B], [C], [A]], changes=60, members_max=4, partitions=3)


def test_a_seed_is_a_plan() -> None:
    assert plan(SCRIPT, 7, 8) == plan(SCRIPT, 7, 8)
    assert plan(SCRIPT, 7, 8) != plan(SCRIPT, 8, 8)


@pytest.mark.parametrize("seed", range(20))
def test_there_is_always_a_member_and_never_more_than_allowed(seed: int) -> None:
    alive: dict[int, Kind] = {}
    whats = []
    for step in plan(SCRIPT, seed, 8):
        whats.append(step.what)
        if step.what == JOIN:
            assert step.life not in alive
            alive[step.life] = step.kind
        else:
            assert alive.pop(step.life) == step.kind
        assert 1 <= len(alive) <= 4
    assert len(whats) == 60 and {*whats} == {JOIN, LEAVE, KILL}


@pytest.mark.parametrize("seed", range(20))
def test_who_joins_is_of_the_phase(seed: int) -> None:
    joined = [{step.kind for step in plan(SCRIPT, seed, 8)[at : at + 20] if step.what == JOIN} for at in (0, 20, 40)]
    assert joined == [{A, B}, {C}, {A}]


def test_the_scripts_have_as_many_changes_as_asked_for() -> None:
    for wanted in (100, 400):
        assert sum(script.changes for row in rows(wanted) for script in row) >= wanted
