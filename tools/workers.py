"""How many tests run at a time: more than processors, since many of them wait, where there is memory for them."""

import os
from pathlib import Path

WORKER_GB = 2.0
"""What a process of tests may take, with the brokers or the Java machine that it starts."""

MORE = 2
"""Workers beside two for each processor. A worker waits for half of its time: with four, two processors were busy for
79% of a `make test`."""

ROOM_BESIDE_GB = 8.0
"""For two workers and what runs beside them: the demo takes about 2 GB."""


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_gb() -> float | None:
    """Memory that programs can have; None where the system does not say (macOS)."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1e6 for line in lines if line.startswith("MemAvailable:")), None)


def workers() -> int:
    """Asks for the memory when it is called: other programs may have taken it."""
    free, most = free_gb(), 2 * processors() + MORE
    return max(1, most if free is None else min(most, int(free / WORKER_GB)))


def room_beside() -> bool:
    """Whether another stage can run beside the tests."""
    free = free_gb()
    return processors() > 1 and (free is None or free >= ROOM_BESIDE_GB)


def machine() -> str:
    free = free_gb()
    memory = "memory unknown" if free is None else f"{free:.0f} GB of memory free"
    return f"{processors()} processors, {memory}"
