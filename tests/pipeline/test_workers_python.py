"""Which Python Spark starts is this one, or one sentence says why not."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext

from moldau.pipeline.workers_python import OtherPython, use_this_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
NAMES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A program that has not started Spark, in an environment without its variables; both are put back."""
    for name in NAMES:
        monkeypatch.setenv(name, "is put back")
        monkeypatch.delenv(name)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    return monkeypatch


@pytest.fixture
def python_saying(tmp_path: Path) -> Callable[[str], str]:
    """An interpreter that only says what it is asked for."""

    def make(said: str, code: int = 0) -> str:
        program = tmp_path / "python3"
        program.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
        program.chmod(0o755)
        return str(program)

    return make


def of_jvm(**variables: str) -> SimpleNamespace:
    """The gateway to a JVM that runs in this environment."""
    return SimpleNamespace(jvm=SimpleNamespace(System=SimpleNamespace(getenv=variables.get)))


def test_spark_starts_this_interpreter_where_nobody_has_named_one(fresh: pytest.MonkeyPatch) -> None:
    use_this_python()
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_an_interpreter_that_its_user_named_stays_if_it_will_do(
    fresh: pytest.MonkeyPatch, python_saying: Callable[..., str]
) -> None:
    for good in (python_saying(f"{HERE} moldau pyspark"), "/on/the/executors/python3"):
        fresh.setenv("PYSPARK_PYTHON", good)
        use_this_python()
        assert os.environ["PYSPARK_PYTHON"] == good and os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable


@pytest.mark.parametrize(
    ("said", "code", "wrong"),
    [
        (f"{HERE} pyspark", 0, "which does not have moldau:"),
        (HERE, 0, "which does not have moldau and pyspark:"),
        ("3.9 moldau pyspark", 0, f"which is Python 3.9, and this is Python {HERE}:"),
        ("", 1, "which does not run:"),
        ("", 0, "which does not run:"),
    ],
)
def test_an_interpreter_that_will_not_do_is_one_sentence(
    fresh: pytest.MonkeyPatch, python_saying: Callable[..., str], said: str, code: int, wrong: str
) -> None:
    named = python_saying(said, code)
    fresh.setenv("PYSPARK_PYTHON", named)
    with pytest.raises(OtherPython) as raised:
        use_this_python()
    assert str(raised.value).startswith(f"Spark starts the interpreter {named}, {wrong} unset PYSPARK_PYTHON, to use /")


def test_a_spark_that_runs_already_is_asked_what_it_starts(
    fresh: pytest.MonkeyPatch, python_saying: Callable[..., str]
) -> None:
    fresh.setenv("PATH", str(Path(python_saying(HERE)).parent))
    sentence = "does not have moldau and pyspark: call use_this_python.. before the session is made"
    fresh.setattr(SparkContext, "_gateway", of_jvm())
    with pytest.raises(OtherPython, match=sentence):
        use_this_python()
    fresh.setattr(SparkContext, "_gateway", of_jvm(PYSPARK_PYTHON=sys.executable))
    use_this_python()
    fresh.setattr(SparkContext, "_gateway", None)
    fresh.setenv("PYSPARK_GATEWAY_PORT", "1")
    with pytest.raises(OtherPython, match=sentence):
        use_this_python()


def test_the_session_of_the_pipeline_will_do(spark: "SparkSession") -> None:
    use_this_python()
