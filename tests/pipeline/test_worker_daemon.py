"""The daemon that forks Spark's Python workers, spoken to as Spark's JVM does."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest

from harness.patience import stretched
from moldau.pipeline import worker_daemon

PROBE = """
import gc, json, sys

LOOKED_FOR = {"pyarrow", "pyspark.worker", "moldau.pipeline.data_source", "pandas", "numpy.random"}

def main(infile, outfile):
    import pyspark
    found = {
        "forked by": sys.orig_argv[2],
        "preloaded": sorted(LOOKED_FOR & set(sys.modules)),
        "frozen": gc.get_freeze_count() > 10_000,
        "pyspark": pyspark.__file__,
    }
    text = json.dumps(found).encode()
    outfile.write(len(text).to_bytes(4, "big") + text)
"""
"""A worker whose name begins as PySpark's must."""
SECRET = "secret"


def first_worker(folder: Path, path: list[str], settings: Mapping[str, str] = {}) -> dict[str, Any]:
    """What the probe finds in the first worker of a daemon with this PYTHONPATH."""
    (folder / "pyspark_probe.py").write_text(PROBE)
    environment = {name: value for name, value in os.environ.items() if name != worker_daemon.OF_JEMALLOC}
    given = {"PYTHONPATH": os.pathsep.join([str(folder), *path]), "PYTHON_WORKER_FACTORY_SECRET": SECRET}
    program = [sys.executable, "-m", worker_daemon.__name__, "pyspark_probe"]
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**environment, "OMP_NUM_THREADS": "1", **given, **settings},
    ) as daemon:  # fmt: skip
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        port = int.from_bytes(daemon.stdout.read(4), "big")
        with socket.create_connection(("127.0.0.1", port), stretched(60)) as link, link.makefile("rwb") as stream:
            assert int.from_bytes(stream.read(4), "big") > 0, "the number of the worker's process"
            stream.write(len(SECRET).to_bytes(4, "big") + SECRET.encode())
            stream.flush()
            assert stream.read(int.from_bytes(stream.read(4), "big")) == b"ok"
            found: dict[str, Any] = json.loads(stream.read(int.from_bytes(stream.read(4), "big")))
        daemon.stdin.close()  # as a JVM that exits
        daemon.wait(stretched(60))
    return found


def test_a_worker_is_forked_with_arrow_and_the_source_imported_from_the_installed_pyspark(tmp_path: Path) -> None:
    archives = sorted(str(found) for found in Path(pyspark.__file__).parent.glob("python/lib/*.zip"))
    assert len(archives) == 2
    assert first_worker(tmp_path, archives) == {
        "forked by": worker_daemon.__name__,
        "preloaded": ["moldau.pipeline.data_source", "pyarrow", "pyspark.worker"],
        "frozen": True,
        "pyspark": pyspark.__file__,
    }


def test_a_process_with_a_second_thread_does_not_fork_but_becomes_sparks_own_daemon(tmp_path: Path) -> None:
    found = first_worker(tmp_path, [], {worker_daemon.OF_JEMALLOC: "background_thread:true"})
    assert (found["forked by"], found["preloaded"]) == (worker_daemon.SPARKS_OWN, [])


@pytest.mark.parametrize(
    ("made", "left"),
    [
        (["site/pyspark/__init__.py", "site/py4j/__init__.py"], ["other/lib/pyspark.zip", "jars/a.jar", "site"]),
        (["site/pyspark/__init__.py"], None),
        ([], None),
    ],
    ids=["installed", "py4j only in an archive", "not installed"],
)
def test_only_archives_of_an_installed_pyspark_leave_the_path(
    made: list[str], left: list[str] | None, tmp_path: Path
) -> None:
    for name in made:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    own = "site/pyspark/python/lib"
    path = [f"{own}/pyspark.zip", f"{own}/py4j-src.zip", "other/lib/pyspark.zip", "jars/a.jar", "site"]
    given = [str(tmp_path / entry) for entry in path]
    assert worker_daemon.without_archives(given) == [str(tmp_path / entry) for entry in left or path]


def test_what_cannot_be_imported_is_left_to_the_worker() -> None:
    assert not worker_daemon.preload(["moldau.pipeline.no_such_module"])
