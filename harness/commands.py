"""Programs that end by themselves, as processes of their own: what one printed, and its exit code.

They are forked where they may be, as the brokers of tests are (harness/forking.py).
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from harness.brokers import SOURCE, started
from harness.patience import stretched

SECONDS = 60
Argument: TypeAlias = "str | os.PathLike[str]"


def moldau(
    *arguments: Argument, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The command `moldau`, as `run` runs it."""
    return run("moldau", *arguments, environment=environment, folder=folder)


def run(
    module: str, *arguments: Argument, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`python -m MODULE ARGUMENTS`, to its end, in this folder or the present one; `environment` is added to that of
    this process. Raises `subprocess.TimeoutExpired` if it closes its output and goes on."""
    command = [sys.executable, "-m", module, *(os.fspath(one) for one in arguments)]
    with tempfile.TemporaryFile("w+") as said:
        process = started(command, {**os.environ, "PYTHONPATH": str(SOURCE), **(environment or {})}, said, folder)
        assert process.stdout is not None
        try:
            with process.stdout as printed:
                out = printed.read()
            code = process.wait(stretched(SECONDS))
        except BaseException:
            process.kill()
            process.wait()
            raise
        said.seek(0)
        return subprocess.CompletedProcess(command, code, out, said.read())
