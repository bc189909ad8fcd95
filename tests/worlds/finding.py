"""Lives through worlds with a bug in them until one shows it."""

from collections.abc import Sequence

from tests.first_seeds import first_seed
from tests.replacing import Instead, replaced
from tests.unlogged import unlogged
from tests.worlds.scenarios import live

SEEDS_MAX = 300
"""Each bug is found within so many seeds."""


def found_in_worlds(
    family: str, name: str, usual: int, bug: Sequence[Instead], kind: str, power_loss: bool, unlogged_to: int
) -> tuple[int, str] | None:
    """The seed that shows a bug, and the sentence that says so; None if none of so many does. `usual`: where the search
    begins for a bug that was never found. `unlogged_to`: the highest level that is not logged meanwhile."""
    first = first_seed(family, name, usual)
    with unlogged(unlogged_to), replaced(bug):
        for seed in range(first, first + SEEDS_MAX):
            if failure := live(seed, kind, power_loss).failure:
                return seed, failure
    return None
