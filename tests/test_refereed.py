"""Answers of other programs are recorded: a known question is answered, an unknown one fails, and a live program that
says something else is noticed."""

from pathlib import Path

import pytest

from harness import apache_kafka
from tests import refereed
from tools import referee


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording of two answers."""
    monkeypatch.setattr(refereed, "MODE", "write")
    path = tmp_path / "recordings" / "some.jsonl.xz"
    with refereed.answers(path) as known:
        assert known.to("who", lambda: ("a", None)) == ["a", None]
        assert known.to(b"\0what", lambda: {"b": 1}) == {"b": 1}
    return path


def never() -> None:
    raise AssertionError("the program is not there")


def test_what_is_recorded_is_answered_without_the_program(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refereed, "MODE", "recorded")
    before = file.read_bytes()
    with refereed.answers(file) as known:
        assert known.to("who", never) == ["a", None]
        assert known.to(b"\0what", never) == {"b": 1}
    assert file.read_bytes() == before


def test_another_question_fails_with_the_command_that_records_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refereed, "MODE", "recorded")
    with refereed.answers(file) as known, pytest.raises(AssertionError, match=refereed.COMMAND):
        known.to("whom", never)


def test_a_live_program_must_say_the_same_unless_it_may_choose(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refereed, "MODE", "live")
    before = file.read_bytes()
    with refereed.answers(file) as known:
        assert known.to("who", lambda: ("a", None)) == ["a", None]
        with pytest.raises(AssertionError, match="recorded is"):
            known.to("who", lambda: ("a", 1))
        assert known.to("who", lambda: ("a", 1), alike=lambda *_: True) == ["a", 1]
        assert known.to("whom", lambda: 5) == 5
    assert file.read_bytes() == before


def test_only_the_recorded_version_writes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apache_kafka, "VERSION", "4.4.0")
    with refereed.answers(file) as known, pytest.raises(AssertionError, match="recorded is"):
        known.to("who", lambda: "another")


def test_answers_that_are_not_asked_for_any_more_are_left_out_when_it_is_written(file: Path) -> None:
    with refereed.answers(file) as known:
        known.to("whom", lambda: 5)
    assert list(refereed.Answers(file).known.values()) == [5]


def test_the_referee_names_version_and_mode_to_all_that_it_runs() -> None:
    (_, script), (asking, tests) = referee.commands("4.4.0", write=False)
    assert script[-2:] == ["--referee", "4.4.0"]
    assert (asking["MOLDAU_REFEREE"], asking["MOLDAU_KAFKA"]) == ("live", "4.4.0")
    assert all((referee.ROOT / test).exists() for test in tests if test.startswith("tests/"))
    (_, script), (asking, _) = referee.commands("4.3.1", write=True)
    assert script[-1] == "--write"
    assert asking["MOLDAU_REFEREE"] == "write"
