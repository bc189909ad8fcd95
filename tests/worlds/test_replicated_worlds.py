"""Worlds of groups and of transactions on three brokers: they keep every promise, whatever happens to the brokers, and
the replicas are equal in the end."""

import pytest

from harness.tiers import seeds_or, sized
from tests.worlds.cluster_bugs import BUGS, found
from tests.worlds.finding import SEEDS_MAX
from tests.worlds.scenarios import live, run_replicated_groups, run_replicated_transactions

SEEDS = range(1, 1 + sized(2, 4, 6))
FRESH = sized(1, 3, 2000)
GROUPS, TRANSACTIONS = "replicated-groups", "replicated-transactions"
RARELY_SEEN = (
    "acks=all is answered at the append",
    "a leader compares no epochs",
    "a follower truncates to its high watermark",
)
"""Bugs that only one world in many shows; `test_replicas.py` finds each of them within a few, in `make test`."""


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_keep_their_promises_when_brokers_are_killed_and_cut_off(seed: int) -> None:
    assert run_replicated_transactions(seed).network.delivered > 300


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_keep_their_promises_when_brokers_are_killed(seed: int) -> None:
    assert run_replicated_groups(seed).network.delivered > 300


@pytest.mark.parametrize("kind", [GROUPS, TRANSACTIONS])
@pytest.mark.parametrize("seed", SEEDS)
def test_promises_are_kept_when_the_machines_of_single_brokers_lose_power(kind: str, seed: int) -> None:
    assert live(seed, kind, True).failure is None


@pytest.mark.parametrize("kind", [GROUPS, TRANSACTIONS])
def test_fresh_seeds_hold_in_the_long_mode(kind: str) -> None:
    for seed in seeds_or(7000, FRESH):
        lived = live(seed, kind, seed % 2 == 0)
        assert lived.failure is None, f"seed {seed}, power loss {seed % 2 == 0}: {lived.failure}"


@pytest.mark.check
@pytest.mark.bug
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in RARELY_SEEN else []) for name in BUGS]
)
def test_a_bug_put_in_on_purpose_is_found(name: str) -> None:
    assert found(name), f"{name}: not found within {SEEDS_MAX} seeds"
