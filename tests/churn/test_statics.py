"""A plan of static members is the same for a seed, and keeps to who has each instance id."""

import pytest

from tests.churn.plan import JOIN, KILL, LEAVE, RIVAL, Kind, Script
from tests.churn.scripts import rows
from tests.churn.statics import REST_S, static_plan

A, B, GUEST = Kind("a"), Kind("b"), Kind("guest")
NEWER = Kind("a", "consumer")
SCRIPT = Script("some", [[A, B], [GUEST]], changes=60, members_max=4, partitions=3, instances=3)


def test_a_seed_is_a_plan() -> None:
    assert static_plan(SCRIPT, 7, 8) == static_plan(SCRIPT, 7, 8)
    assert static_plan(SCRIPT, 7, 8) != static_plan(SCRIPT, 8, 8)


@pytest.mark.parametrize("kind", [A, NEWER])
@pytest.mark.parametrize("seed", range(20))
def test_an_instance_is_away_or_somebodys_and_rivals_come_to_who_is_there(seed: int, kind: Kind) -> None:
    script = SCRIPT._replace(phases=[[kind], [GUEST]])
    holders: dict[str, int] = {}
    alive: set[int] = set()
    whats = []
    for step in static_plan(script, seed, 8):
        whats.append(step.what)
        assert set(step.waits_for) <= alive
        if step.what == JOIN:
            assert step.instance not in holders
        elif step.what == RIVAL:
            assert step.instance is not None and step.holder == holders[step.instance]
        else:
            alive.remove(step.life)
        if step.instance is None:
            assert step.kind == GUEST
        elif step.what in (LEAVE, KILL):
            assert holders.pop(step.instance) == step.life
        elif step.what == JOIN or kind == A:
            alive.discard(holders.get(step.instance, -1))
            holders[step.instance] = step.life
        if step.what == JOIN or (step.what == RIVAL and kind == A):
            alive.add(step.life)
    assert len(whats) == 60 and {*whats} == {JOIN, LEAVE, KILL, RIVAL}


def test_the_first_return_is_to_a_group_in_which_all_are_at_rest() -> None:
    *joins, goes, back = static_plan(SCRIPT, 3, 8)[:5]
    assert [step.what for step in joins] == [JOIN] * 3
    assert (goes.waits_for, goes.pause_s) == ((0, 1, 2), REST_S)
    assert (back.what, back.instance, back.kind, back.pause_s) == (JOIN, goes.instance, A, 0)


@pytest.mark.parametrize("wanted", [100, 115, 400])
def test_every_episode_has_its_turn_in_the_groups_that_run(wanted: int) -> None:
    for script in (script for row in rows(wanted) for script in row if script.instances):
        for seed in range(10):
            steps = static_plan(script, seed, 8)
            assert any(step.what == RIVAL for step in steps), seed
            assert any(step.instance is None for step in steps), seed
