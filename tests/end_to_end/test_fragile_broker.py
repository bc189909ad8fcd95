"""Whether a fragile broker dies is decided once: both sides know it, however slow the operation is that it dies in."""

import signal
from pathlib import Path

import pytest

from tests.end_to_end import fragile_broker
from tests.end_to_end.fragile_broker import AFTER, Fate, Point, arm, disarm


@pytest.fixture
def deaths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    signals: list[int] = []
    monkeypatch.setattr(fragile_broker.os, "kill", lambda _, number: signals.append(number))
    return signals


def test_a_broker_that_is_in_the_operation_it_dies_in_cannot_be_disarmed(tmp_path: Path, deaths: list[int]) -> None:
    fate = Fate(tmp_path)
    arm(tmp_path, Point("flush", ".log", 1, AFTER))
    with fate.around("flush", ".log"):
        assert not deaths
        assert not disarm(tmp_path)
    assert deaths == [signal.SIGKILL]


def test_a_broker_that_was_disarmed_lives(tmp_path: Path, deaths: list[int]) -> None:
    fate = Fate(tmp_path)
    arm(tmp_path, Point("flush", ".log", 1, AFTER))
    with fate.around("write", ".log"):
        pass
    assert disarm(tmp_path)
    with fate.around("flush", ".log"):
        pass
    assert not deaths


def test_a_point_armed_again_is_not_taken_for_the_one_that_was_hit(tmp_path: Path, deaths: list[int]) -> None:
    fate = Fate(tmp_path)
    for _ in range(2):
        arm(tmp_path, Point("flush", ".log", 1, AFTER))
    with fate.around("flush", ".log"):
        pass
    assert deaths and not disarm(tmp_path)
    arm(tmp_path, Point("rename", ".log"))
    assert disarm(tmp_path)
