"""Bugs of the coordinators that simulated worlds must find, put into the production code by `tests/replacing.py`.

The bugs are in `group_bugs` and `transaction_bugs`. Those that only a loss of power shows live in worlds that lose it.
"""

from logging import WARNING
from typing import NamedTuple

from tests.replacing import Instead
from tests.worlds import group_bugs, transaction_bugs
from tests.worlds.finding import found_in_worlds

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
    """As `found_in_worlds`."""
    mutation = MUTATIONS[name]
    return found_in_worlds("coordinators", name, FIRST_SEED, mutation.bug, mutation.kind, mutation.power, WARNING)
