"""Pytest rewrites the assertions of each file of tests and keeps what it made. In a fresh clone every worker would do
that for every file at the same time, so each first imports a share of the files, and waits for the others.
"""

import contextlib
import importlib
import time
import warnings
from pathlib import Path

WAIT_S_MAX = 60.0
"""A worker that has ended comes no more: then the others do its share, too."""
LOOK_S = 0.02


def import_share(root: Path, number: int, workers: int, mark: Path) -> None:
    """Import this worker's share of the files below `tests`, and wait for the shares of the others; `mark` with a
    worker's number behind it is a file that says that it has done its own.

    What a file raises it raises again when it is collected: nothing is kept of a module that cannot be imported.
    """
    for path in sorted(root.glob("tests/**/test_*.py"))[number::workers]:
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("error")
            importlib.import_module(name)
    of(mark, number).touch()
    until = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < until and not all(of(mark, each).exists() for each in range(workers)):
        time.sleep(LOOK_S)


def of(mark: Path, number: int) -> Path:
    """The file by which a worker says that it has done its share."""
    return Path(f"{mark}.{number}")
