"""Starting Spark: Java is checked first, in one sentence, and tasks may be tried again."""

import io
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException

from moldau.pipeline import worker_daemon
from moldau.pipeline.session import (
    SparkFailed,
    SparkMissing,
    _signals_wait,
    _sockets_in,
    check_java,
    errors_in_a_sentence,
    python_path,
    set_environment,
    start_session,
    with_retries,
)
from moldau.pipeline.spark_home import home_without_archives

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def test_the_environment_of_a_cluster_is_what_its_user_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, f"the user's {name}")  # is put back after the test
    monkeypatch.delenv("SPARK_LOCAL_IP")
    set_environment(is_local=False)
    assert os.environ["PYSPARK_PYTHON"] == "the user's PYSPARK_PYTHON" and "SPARK_LOCAL_IP" not in os.environ
    set_environment(is_local=True)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable and os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_python_of_spark_takes_the_installed_pyspark_and_forks_workers_from_our_daemon(spark: "SparkSession") -> None:
    def places(_: int) -> list[str]:
        import sys

        import py4j
        import pyspark

        return [sys.orig_argv[2], *(str(module.__file__) for module in (pyspark, py4j))]

    daemon, *found = spark.sparkContext.parallelize([0], 1).map(places).first()
    assert daemon == worker_daemon.__name__
    assert not [place for place in found if ".zip" in place], "an archive is compiled again in each process"
    assert "SPARK_HOME" not in os.environ, "processes that the user starts have their own"


@pytest.mark.usefixtures("spark")
def test_a_connection_to_the_jvm_that_breaks_while_it_is_closed_is_no_stack_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from py4j.clientserver import ClientServerConnection

    without_a_socket = SimpleNamespace(is_connected=True, stream=io.BytesIO())
    ClientServerConnection.shutdown_socket(without_a_socket, 1, 2)
    assert caplog.messages == []


def test_a_home_needs_what_pip_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = home_without_archives(tmp_path / "home")
    assert made == tmp_path / "home" and home_without_archives(made) == made
    assert (made / "bin" / "spark-submit").exists() and not (made / "python").exists()
    package = tmp_path / "elsewhere" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "pyspark")
    monkeypatch.syspath_prepend(str(package.parent))
    assert home_without_archives(tmp_path / "other") is None


def test_what_spark_raises_becomes_one_line() -> None:
    with pytest.raises(SparkFailed, match=r"^Spark failed: \[X] first line$"), errors_in_a_sentence():
        raise PySparkException("\n[X] first line\n  at somewhere\n")
    with pytest.raises(SparkFailed, match=r"^Spark failed: its JVM has ended$"), errors_in_a_sentence():
        raise ConnectionRefusedError


def test_child_processes_find_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"/elsewhere{os.pathsep}")
    folder, *rest = python_path().split(os.pathsep)
    assert Path(folder, "pyspark_moldau", "__init__.py").exists() and rest == ["/elsewhere"]


def test_a_signal_while_the_jvm_starts_is_heard_when_it_has_started() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with _signals_wait():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
            assert heard == []
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_jvm_has_a_process_group_of_its_own_and_ignores_sigterm(spark: "SparkSession") -> None:
    process = SparkContext._gateway.proc
    assert os.getpgid(process.pid) == process.pid != os.getpgid(0)
    os.kill(process.pid, signal.SIGTERM)
    assert spark.range(3).count() == 3 and process.poll() is None


def test_rows_come_from_spark_by_a_socket_that_no_other_program_reaches(spark: "SparkSession") -> None:
    """A program that dialled the port of a `collect` had the JVM run out of memory."""
    address = spark.range(1)._jdf.collectToPython()[0]
    assert isinstance(address, str), "a port"
    folder = Path(address).parent
    assert (folder.stat().st_mode & 0o777, folder.stat().st_uid) == (0o700, os.getuid())


def test_a_folder_whose_sockets_would_have_too_long_a_path_gets_none(tmp_path: Path) -> None:
    short, long = Path(tempfile.mkdtemp(dir="/tmp")), tmp_path / ("x" * 60)
    try:
        assert _sockets_in(short)["spark.python.unix.domain.socket.dir"] == str(short)
        assert _sockets_in(long) == {}
    finally:
        short.rmdir()
