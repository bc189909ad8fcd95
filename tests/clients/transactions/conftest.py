"""What these tests share: how long they go on, and from which seed."""

import pytest

from harness.tiers import seed_or, sized

KILLS = sized(10, 10, 50)


@pytest.fixture
def seed() -> int:
    """`MOLDAU_SEED` repeats a run; the long tier draws another each time."""
    return seed_or(6)
