"""The checkers can fail: every bug that is put into the coordinators on purpose is found, and soon."""

import pytest

from tests.worlds.finding import SEEDS_MAX
from tests.worlds.mutations import MUTATIONS, found


@pytest.mark.check
@pytest.mark.bug
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_caught(name: str) -> None:
    assert found(name), f"{name}: not caught within {SEEDS_MAX} seeds"
