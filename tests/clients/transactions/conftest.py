"""What these tests share: how long they go on, and from which seed."""

import os
import random

import pytest

LONG = os.environ.get("MOLDAU_PROFILE") == "long"
KILLS = 50 if LONG else 10


@pytest.fixture
def seed() -> int:
    """`MOLDAU_SEED` repeats a run; the long mode draws another each time."""
    return int(os.environ.get("MOLDAU_SEED") or (random.randrange(1 << 32) if LONG else 6))
