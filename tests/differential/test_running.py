"""A difference counts when two plays have it: one that a standing machine made does not, and a wrong answer always."""

from collections.abc import Callable, Sequence
from itertools import cycle

from moldau.protocol.apis import HEARTBEAT, LEAVE_GROUP
from tests.differential.playing import Outcome
from tests.differential.recording import Recording
from tests.differential.running import Run, confirmed, play_until_sure
from tests.differential.script import Step

STEPS = (Step("a beat", HEARTBEAT, 1), Step("a leave", LEAVE_GROUP, 1))
RIGHT = (0, 0)


def outcomes(codes: Sequence[int]) -> list[Outcome]:
    return [Outcome("reply", {"error_code": code}) for code in codes]


KNOWN = Recording("4.3.1", {}, dict(zip(("a beat", "a leave"), outcomes(RIGHT), strict=True)), {}, {})


def play_of(*plays: tuple[int, int]) -> tuple[list[Run], Callable[[], Run]]:
    """Plays in which a broker answers with these codes, and was recorded with none; those that were played are kept."""
    played: list[Run] = []
    answers = cycle(plays)

    def play() -> Run:
        played.append(Run(KNOWN, STEPS, outcomes(next(answers))))
        return played[-1]

    return played, play


def places(*plays: tuple[int, int]) -> tuple[int, set[tuple[str, str]]]:
    """After how many plays it was sure, and of which places."""
    played, play = play_of(*plays)
    runs = play_until_sure(play)
    assert runs == played
    return len(runs), confirmed(runs)


def test_one_play_without_a_difference_is_enough() -> None:
    assert places(RIGHT) == (1, set())


def test_what_is_always_wrong_is_confirmed_by_the_second_play() -> None:
    assert places((25, 0)) == (2, {("a beat", "error_code")})


def test_what_is_wrong_in_every_other_play_is_confirmed() -> None:
    assert places((25, 0), RIGHT) == (3, {("a beat", "error_code")})


def test_what_is_wrong_with_another_value_each_time_is_confirmed() -> None:
    assert places((25, 0), (27, 0)) == (2, {("a beat", "error_code")})


def test_differences_of_one_play_each_are_none() -> None:
    assert places((25, 0), (0, 25), RIGHT) == (3, set())


def test_one_difference_among_others_is_confirmed() -> None:
    assert places((25, 25), (0, 27)) == (2, {("a leave", "error_code")})
