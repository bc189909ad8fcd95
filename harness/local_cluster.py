"""`moldau cluster start` as a user runs it: its process, and those that it keeps running. Where brokers of tests are
forked, those of the cluster are, too.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from harness import brokers
from harness.brokers import SOURCE, Process, first_line
from harness.patience import stretched


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[Process, list[str]]]:
    """The command's process, and the addresses that it printed."""
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}"}
    is_forked = brokers.forking is not None and brokers.forking.can(environment)
    command = [sys.executable, "-m", "harness.forked_cluster" if is_forked else "moldau", "cluster", "start"]
    command += [
        "--port",
        "0",
        "--data-dir",
        str(folder / "data"),
        "--set",
        "offsets.topic.num.partitions=3",
        *arguments,
    ]
    with (folder / "command.log").open("w") as log:
        process = brokers.started(command, environment, log)
    with process:
        try:
            line = first_line(process).strip()
            assert line.startswith("listening on "), (folder / "command.log").read_text()
            yield process, line.removeprefix("listening on ").split(",")
        finally:
            process.send_signal(signal.SIGINT)
            try:
                code = process.wait(stretched(60))
            finally:
                process.kill()  # one that does not stop must not hold up the end of `with`
            assert code == 0


def processes(folder: Path) -> dict[str, int]:
    """The processes that have a path below the folder in their command line, by that path."""
    found: dict[str, int] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            for word in (entry / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                if entry.name.isdigit() and word.startswith(f"{folder}/"):
                    found[word] = int(entry.name)
    return found


def is_gone(pid: int) -> bool:
    """Whether the process has ended, whoever is to wait for it."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
