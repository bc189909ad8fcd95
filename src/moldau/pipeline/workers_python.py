"""Which Python Spark starts: that of the program, which has Moldau.

Spark's planner, sources and tasks are Python processes of the interpreter that the JVM finds in `PYSPARK_DRIVER_PYTHON`
or `PYSPARK_PYTHON` of its environment, and otherwise of `python3` in the PATH. One without Moldau reports
DATA_SOURCE_NOT_FOUND; one of another version fails later.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from moldau.errors import MoldauError

ASK = "import importlib.util as u, sys; print('%d.%d' % sys.version_info[:2], *filter(u.find_spec, sys.argv[1:]))"
NEEDED = ("moldau", "pyspark")
ASK_SECONDS_MAX = 60
CALL_FIRST = "call use_this_python() before the session is made"


class OtherPython(MoldauError):
    """Spark would start an interpreter that cannot run this program's tasks; the text says which, and what to do."""


def use_this_python() -> None:
    """Make the session that is started next run its Python processes with this interpreter. Where `PYSPARK_PYTHON`
    names another one, or Spark runs already, ask that interpreter whether it will do. Raises `OtherPython`."""
    running = _python_of_running_spark()
    if running is None:
        os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON") or sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    _check(running or os.environ["PYSPARK_PYTHON"], CALL_FIRST if running else "unset PYSPARK_PYTHON")


def _check(name: str, instead: str) -> None:
    """Raise `OtherPython` unless the interpreter of this name has Moldau and this one's version; `instead` says what to
    do otherwise."""
    path = shutil.which(name)
    if path is None or Path(path) == Path(sys.executable):
        return  # what does not exist here is a path on the hosts of a cluster's executors
    version, *there = _ask(path)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    missing = [package for package in NEEDED if package not in there]
    if not version:
        wrong = "which does not run"
    elif missing:
        wrong = f"which does not have {' and '.join(missing)}"
    elif version != here:
        wrong = f"which is Python {version}, and this is Python {here}"
    else:
        return
    raise OtherPython(f"Spark starts the interpreter {path}, {wrong}: {instead}, to use {sys.executable}.")


def _ask(path: str) -> list[str]:
    """The version of this interpreter, and which of the needed packages it has; nothing if it does not run."""
    try:
        command = [path, "-c", ASK, *NEEDED]
        said = subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS_MAX, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return [""]
    return said.split() or [""]


def _python_of_running_spark() -> str | None:
    """What the JVM starts, if this program has one already; None if it is still to start."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        asked = gateway.jvm.System.getenv
        return str(asked("PYSPARK_DRIVER_PYTHON") or asked("PYSPARK_PYTHON") or "python3")
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM, and this program in its environment
        return os.environ.get("PYSPARK_DRIVER_PYTHON") or os.environ.get("PYSPARK_PYTHON") or "python3"
    return None
