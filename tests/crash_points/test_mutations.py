"""The harness can fail: every bug that is put into the log on purpose is found, and soon."""

import pytest

from tests.crash_points.driver import run_many
from tests.crash_points.mutations import MUTATIONS, POINTS, found
from tests.replacing import replaced


@pytest.mark.check
@pytest.mark.bug
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_caught(name: str) -> None:
    assert found(name), f"{name}: not caught within {POINTS} points"


def test_a_mutation_is_undone() -> None:
    for bug in MUTATIONS.values():
        with replaced(bug):
            pass
    assert run_many(1, 100).failures == []
