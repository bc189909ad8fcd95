"""Bugs of the coordinators that simulated worlds must find, put into the production code by `tests/replacing.py`.

The bugs are in `group_bugs` and `transaction_bugs`. Those that only a loss of power shows live in worlds that lose it.
"""

import logging
from typing import NamedTuple

from tests.first_seeds import first_seed
from tests.replacing import Instead, replaced
from tests.unlogged import unlogged
from tests.worlds import group_bugs, transaction_bugs
from tests.worlds.scenarios import live

SEEDS_MAX = 300
"""Each mutation is caught within this many seeds."""
FIRST_SEED = 50_000
"""Where the search begins for a bug that was never found."""


class Mutation(NamedTuple):
    bug: list[Instead]
    power: bool = False
    kind: str = "groups"


MUTATIONS: dict[str, Mutation] = {
    **{name: Mutation(bug, power=True) for name, bug in group_bugs.WITH_POWER_LOSS.items()},
    **{name: Mutation(bug) for name, bug in group_bugs.BUGS.items()},
    **{name: Mutation(bug, True, "transactions") for name, bug in transaction_bugs.WITH_POWER_LOSS.items()},
    **{name: Mutation(bug, False, "transactions") for name, bug in transaction_bugs.BUGS.items()},
}


def found(name: str) -> tuple[int, str] | None:
    """The seed that shows a bug, and the sentence that says so; None if none of so many does."""
    mutation, first = MUTATIONS[name], first_seed("coordinators", name, FIRST_SEED)
    with unlogged(logging.WARNING), replaced(mutation.bug):
        for seed in range(first, first + SEEDS_MAX):
            if failure := live(seed, mutation.kind, mutation.power).failure:
                return seed, failure
    return None
