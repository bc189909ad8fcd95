"""Our answers beside Apicurio's, case by case: the same, or different for a reason that is written down."""

import pytest

from tests.registry.asking import LocalRegistry
from tests.registry.differential.reasons import REASONS
from tests.registry.differential.recorded import Played, load, play
from tests.registry.differential.steps import STEPS


def ours() -> dict[str, Played]:
    registry = LocalRegistry()

    def ask(method: str, path: str, body: object) -> tuple[int, object]:
        answer = registry.ask(method, path, body)
        return answer.status, answer.tree

    return {one.name: one for one in play(ask)}


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Played], dict[str, Played]]:
    return ours(), {one.name: one for one in load()}


def test_each_case_is_recorded(both: tuple[dict[str, Played], dict[str, Played]]) -> None:
    assert [*both[0]] == [*both[1]] == [step.name for step in STEPS]


@pytest.mark.parametrize("name", [step.name for step in STEPS])
def test_an_answer_is_the_same_or_differs_for_a_reason(
    name: str, both: tuple[dict[str, Played], dict[str, Played]]
) -> None:
    mine, theirs = both[0][name], both[1][name]
    if name in REASONS:
        assert mine != theirs, "they agree: the reason can go"
    else:
        assert mine == theirs
