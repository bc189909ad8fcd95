"""Runs the tests on a busy machine: beside processes that only keep a processor busy.

usage: busy.py [--loops N] [--times N] [-- COMMAND ...]      COMMAND instead of the tests of `make test`

Limits of tests stretch with the load (harness/patience.py), so a failure here is a race, or a limit that does not
stretch. A loop ends when the process that started it ends, even by SIGKILL.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = (sys.executable, "tools/stages.py", "test")
LOOP = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(100_000):
        pass
"""


@contextmanager
def busy(loops: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """That many processes each keep a processor busy, until the end of the block or of this process."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(loops):
            started.append(subprocess.Popen([sys.executable, "-c", LOOP, str(os.getpid())]))
        yield started
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def load() -> str:
    return " ".join(f"{average:.1f}" for average in os.getloadavg())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="run the tests beside busy loops")
    parser.add_argument("--loops", type=int, default=6, help="how many processes keep a processor busy (6)")
    parser.add_argument("--times", type=int, default=1, help="how often; the first failure ends it (1)")
    parser.add_argument("command", nargs="*", default=TESTS, help="what runs instead of the tests")
    asked = parser.parse_args(arguments)
    with busy(asked.loops):
        for number in range(1, asked.times + 1):
            before = load()
            code = subprocess.run(asked.command, cwd=ROOT).returncode
            print(
                f"run {number} of {asked.times}: {'FAILED' if code else 'ok'}, load {before} before and {load()} after"
            )
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
