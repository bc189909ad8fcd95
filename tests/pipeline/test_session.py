"""Starting Spark: Java is checked first, in one sentence, and tasks may be tried again."""

import os
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from moldau.pipeline.session import (
    SparkFailed,
    SparkMissing,
    check_java,
    errors_in_a_sentence,
    python_path,
    start_session,
    with_retries,
)


def java(folder: Path, version_line: str, code: int = 0) -> Path:
    """A JAVA_HOME whose java only says its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{version_line}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("line", "version"), [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "25" 2025-09-16', 25)]
)
def test_a_new_enough_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, version: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, line)))
    assert check_java() == version


@pytest.mark.parametrize("line", ['java version "1.8.0_402"', 'openjdk version "11.0.2" 2019-01-15', "what?"])
def test_an_old_java_is_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, line)))
    with pytest.raises(SparkMissing, match=r"needs Java 17 or newer and .* is Java \d+: install a JRE"):
        check_java()


def test_no_java_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkMissing, match="none was found: install a JRE"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "broken", "cannot run", code=1)))
    with pytest.raises(SparkMissing, match="none was found"):
        check_java()


def test_local_masters_try_a_task_again() -> None:
    assert with_retries("local[*]") == "local[*,3]"
    assert with_retries("local[2]") == "local[2,3]"
    assert with_retries("local") == "local[1,3]"
    assert with_retries("local[2,1]") == "local[2,1]"
    assert with_retries("spark://host:7077") == "spark://host:7077"


def test_a_master_that_is_none_is_refused_before_anything_starts() -> None:
    with pytest.raises(SparkFailed, match="'mesos' is not a Spark master"):
        start_session("test", "mesos")


def test_what_spark_raises_becomes_one_line() -> None:
    with pytest.raises(SparkFailed, match=r"^Spark failed: \[X] first line$"), errors_in_a_sentence():
        raise PySparkException("\n[X] first line\n  at somewhere\n")


def test_child_processes_find_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"/elsewhere{os.pathsep}")
    folder, *rest = python_path().split(os.pathsep)
    assert Path(folder, "pyspark_moldau", "__init__.py").exists() and rest == ["/elsewhere"]
