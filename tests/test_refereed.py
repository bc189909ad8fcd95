"""Answers of other programs are recorded: a known question is answered, an unknown one fails, and a live program that
says something else is noticed."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness import apache_kafka
from tests import conftest, refereed
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


@pytest.mark.parametrize(
    ("mode", "missing", "kept"),
    [("rewrite", [], False), ("rewrite", ["a test failed"], True), ("write", [], True), ("write", ["-k"], True)],
)
def test_answers_that_were_not_asked_for_are_dropped_by_a_whole_run_only(
    file: Path, monkeypatch: pytest.MonkeyPatch, mode: str, missing: list[str], kept: bool
) -> None:
    monkeypatch.setattr(refereed, "MODE", mode)
    monkeypatch.setattr(refereed, "missing", missing)
    with refereed.answers(file) as known:
        known.to("who", lambda: "anew")
        known.to("whom", lambda: 5)
    there = list(refereed.Answers(file).known.values())
    assert there == (["anew", {"b": 1}, 5] if kept else ["anew", 5])


def test_failed_and_deselected_tests_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refereed, "missing", [])
    for options in ({}, {"keyword": "one"}, {"deselect": ["tests/x.py"]}):
        conftest.pytest_configure(cast(pytest.Config, SimpleNamespace(getoption=options.get)))
    for failed in (False, True):
        conftest.pytest_runtest_logreport(cast(pytest.TestReport, SimpleNamespace(failed=failed, nodeid="t")))
    assert refereed.missing == [
        "tests were deselected: keyword one",
        "tests were deselected: deselect ['tests/x.py']",
        "failed: t",
    ]


def test_the_referee_names_version_and_mode_to_all_that_it_runs() -> None:
    (_, script), (asking, tests), (_, connector) = referee.commands("4.4.0", write=False)
    assert script[-2:] == ["--referee", "4.4.0"]
    assert (asking["MOLDAU_REFEREE"], asking["MOLDAU_KAFKA"]) == ("live", "4.4.0")
    assert all((referee.ROOT / test).exists() for test in tests if test.startswith("tests/"))
    assert connector[-1] == "tests.pipeline.beside"
    (_, script), (asking, _), (_, connector) = referee.commands("4.3.1", write=True)
    assert script[-1] == connector[-1] == "--write"
    assert asking["MOLDAU_REFEREE"] == "rewrite"
