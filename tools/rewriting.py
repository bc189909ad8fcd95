"""Pytest rewrites the assertions of each file of tests and keeps what it made. In a fresh clone the process that
collects all tests would do that alone, so as many as there are processors first import a share of the files each.
"""

import contextlib
import importlib
import os
import warnings
from pathlib import Path

KEPT = "**/__pycache__/test_*-pytest-*.pyc"


def share_out(root: Path, processes: int) -> None:
    """Import all files below `tests` in forked processes, unless most of them were rewritten before."""
    files = sorted(root.glob("tests/**/test_*.py"))
    if processes < 2 or len([*root.glob(f"tests/{KEPT}")]) > len(files) / 2:
        return
    started = [_fork(root, files[number::processes]) for number in range(processes)]
    for process in started:
        os.waitpid(process, 0)


def _fork(root: Path, files: list[Path]) -> int:
    process = os.fork()
    if not process:
        try:
            import_all(root, files)
        finally:
            os._exit(0)
    return process


def import_all(root: Path, files: list[Path]) -> None:
    """What a file raises it raises again when it is collected."""
    for path in files:
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("error")
            importlib.import_module(name)
