"""The three tiers of the tests: which of them run, how much each does, and from which seed.

`MOLDAU_TIER` names the tier: `test` (`make test`), `check` (`make check`) or `long` (`make long`). Each contains the
one before it. A test without a marker belongs to `test`; `@pytest.mark.check` and `@pytest.mark.long` move it up.
Without `MOLDAU_TIER` every test that is named runs, as much of it as in `make check`.
"""

import enum
import os
import random
from typing import TypeVar

T = TypeVar("T")


class Tier(enum.IntEnum):
    TEST = 0
    CHECK = 1
    LONG = 2


def tier_of(name: str) -> Tier:
    """Raises `SystemExit` with a sentence for any other name."""
    try:
        return Tier[name.upper()]
    except KeyError:
        raise SystemExit(f"MOLDAU_TIER is {name!r}: it is test, check or long") from None


ASKED = os.environ.get("MOLDAU_TIER") or None
TIER = tier_of(ASKED) if ASKED else Tier.CHECK
LONG = TIER is Tier.LONG
MARKERS = {"check": Tier.CHECK, "long": Tier.LONG}
"""Markers of pytest, and the lowest tier that their tests run in."""


def sized(test: T, check: T, long: T) -> T:
    """The size of a test in this tier."""
    return (test, check, long)[TIER]


def examples(test: int, check: int) -> int:
    """How many examples a property test takes: a hundred times as many in the long tier. `max_examples` of a test must
    come from here, since it replaces that of the profile."""
    return sized(test, check, 100 * check)


def seed_or(usual: int) -> int:
    """`MOLDAU_SEED`, which repeats a run; else `usual`, or a new one in the long tier: chance belongs there.
    `MOLDAU_FIRST_SEED` is that new one: the first of several."""
    if given := os.environ.get("MOLDAU_SEED") or os.environ.get("MOLDAU_FIRST_SEED"):
        return int(given)
    return random.SystemRandom().randrange(1 << 32) if LONG else usual


def seeds_or(usual: int, count: int) -> range:
    """`count` seeds that follow each other; one if `MOLDAU_SEED` names it."""
    first = seed_or(usual)
    return range(first, first + (1 if os.environ.get("MOLDAU_SEED") else count))
