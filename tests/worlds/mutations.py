"""Bugs of the coordinators that simulated worlds must find, put into the production code by `tests/replacing.py`.

The bugs are in `group_bugs` and `transaction_bugs`. Those that only a loss of power shows live in worlds that lose it.
"""

import logging
from typing import NamedTuple

from tests.replacing import Instead, replaced
from tests.unlogged import unlogged
from tests.worlds import group_bugs, transaction_bugs
from tests.worlds.scenarios import live

SEEDS_MAX = 300
"""Each mutation is caught within this many seeds."""
FIRST_SEED = 50_000
FIRST_SEEDS = {
    "a fenced member is taken for the one that fenced it": 50_050,
    "the end of a transaction is answered before it is committed": 50_075,
    "members that wait in a group that is upgraded are forgotten": 50_038,
    "parked requests are forgotten at a resignation": 50_027,
    "decisions on their way are forgotten at a resignation": 50_023,
    "a static member keeps its member id when it is replaced": 50_050,
    "members lose their partitions when their group is upgraded": 50_030,
    "a consumer group does not notice that a topic grew": 50_025,
    "the epoch of an upgraded group is one": 50_070,
    "a classic member that does not join again stays in a consumer group": 50_160,
    "a group takes more members than it may": 50_015,
    "too many members stay after a start": 50_015,
}
"""Where the search begins for bugs that few worlds find."""


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


def caught_after(name: str, seeds: int = SEEDS_MAX) -> tuple[int, str] | None:
    """The number of seeds after which a mutation is caught, and the sentence that says so; None if it is not."""
    mutation = MUTATIONS[name]
    with unlogged(logging.WARNING), replaced(mutation.bug):
        for number in range(seeds):
            lived = live(FIRST_SEEDS.get(name, FIRST_SEED) + number, mutation.kind, mutation.power)
            if lived.failure is not None:
                return number + 1, lived.failure
    return None
