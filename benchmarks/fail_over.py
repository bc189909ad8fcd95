"""From the SIGKILL of the controller of `moldau cluster start` to a topic that another broker has created.

usage: python -m benchmarks.fail_over [--kills 30] [--embedded]
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.broker_load import Case
from harness.brokers import first_line
from harness.patience import wait_until
from moldau import Admin
from moldau.errors import MoldauError

KILLS = 30


@contextlib.contextmanager
def local_cluster(folder: Path, *options: str) -> Iterator[list[str]]:
    """The addresses of three brokers that `moldau cluster start` runs below the folder."""
    command = [sys.executable, "-m", "moldau", "cluster", "start", "--port", "0", "--data-dir", str(folder / "data")]
    command += options
    with (
        (folder / "command.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            line = first_line(process).strip()
            assert line.startswith("listening on "), (folder / "command.log").read_text()
            yield line.removeprefix("listening on ").split(",")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def process_of(folder: Path) -> int:
    """The broker process with this data folder; 0 if there is none."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if b"--data-dir" in words and str(folder).encode() in words:
                return int(entry.name)
    return 0


def seconds_until_answered(folder: Path, addresses: list[str], number: int) -> float:
    """Kill the controller; how long it takes until another broker answers a CreateTopics."""
    with Admin(",".join(addresses)) as admin:
        assert wait_until(lambda: len(admin.describe_cluster().brokers) == len(addresses))
        killed = admin.describe_cluster().controller_id
    left = [address for broker, address in enumerate(addresses, 1) if broker != killed]
    with Admin(",".join(left)) as admin:
        admin.describe_cluster()
        process = process_of(folder / "data" / f"broker-{killed}")
        began_s = time.perf_counter()
        os.kill(process, signal.SIGKILL)
        while True:
            with contextlib.suppress(MoldauError):
                admin.create_topic(f"t{number}", partitions=1)
                return time.perf_counter() - began_s


def cases(kills: int = KILLS, options: Sequence[str] = ()) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with local_cluster(folder, *options) as addresses:
            took = sorted(seconds_until_answered(folder, addresses, number) for number in range(kills))
    print(*(f"{one:.3f}" for one in took))
    what = f"SIGKILL of the controller to an answer of the next one, {kills} kills"
    yield Case(f"{what}, p50", statistics.median(took), "s")
    yield Case(f"{what}, p99", took[round(0.99 * (kills - 1))], "s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fail_over")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--embedded", action="store_true")
    given = parser.parse_args()
    for case in cases(given.kills, ["--embedded"] if given.embedded else []):
        print(f"{case.name}: {case.value:.3f} {case.unit}")
