"""`moldau cluster start` as a user runs it: its process, and those that it keeps running."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.brokers import SOURCE, first_line
from harness.patience import stretched


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command's process, and the addresses that it printed."""
    command = [sys.executable, "-m", "moldau", "cluster", "start", "--port", "0", "--data-dir", str(folder / "data")]
    command += ["--set", "offsets.topic.num.partitions=3", *arguments]
    with (folder / "command.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}
        )
    with process:
        try:
            line = first_line(process).strip()
            assert line.startswith("listening on "), (folder / "command.log").read_text()
            yield process, line.removeprefix("listening on ").split(",")
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(stretched(60)) == 0


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
