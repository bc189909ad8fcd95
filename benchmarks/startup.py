"""From the command to the first acknowledged Produce into an empty folder, and the memory after ten idle seconds."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.broker_load import Case, new_topic
from harness.listening import free_port

RUNS = 5
IDLE_S = 10


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def seconds_to_first_ack(command: Sequence[str], port: int, idle: bool) -> tuple[float, float]:
    """(seconds, resident MB after the idle time or 0)."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                new_topic(port)
                break
            except (ConnectionError, EOFError):
                assert process.poll() is None, "the broker left"
                time.sleep(0.002)
        took = time.perf_counter() - began
        if not idle:
            return took, 0.0
        time.sleep(IDLE_S)
        return took, resident_mb(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def cases() -> Iterator[Case]:
    times = []
    for run in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            command = [sys.executable, "-m", "moldau", "server", "start", "--host", "127.0.0.1"]
            command += ["--port", str(port), "--data-dir", f"{folder}/data"]
            took, memory = seconds_to_first_ack(command, port, idle=run == RUNS - 1)
            times.append(took)
    yield Case(f"command to first acknowledged Produce, median of {RUNS}", sorted(times)[RUNS // 2], "s")
    yield Case(f"resident memory after {IDLE_S} s idle", memory, "MB")


if __name__ == "__main__":
    for case in cases():
        print(f"{case.name}: {case.value:.3f} {case.unit}")
