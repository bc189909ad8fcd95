"""What the operating system says of this process, under the names that Prometheus' own clients use; and the bytes that
it made the disks read and write. Reads `/proc`: elsewhere there is less. Blocks."""

import errno
import os
import resource
import time
from pathlib import Path

_PROC = Path("/proc/self")
_STAT_FIELDS_BEFORE_STATE = 2


def process_numbers() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    numbers: dict[str, float] = {"process_cpu_seconds": used.ru_utime + used.ru_stime, "process_max_fds": soft}
    try:
        numbers["process_open_fds"] = len(os.listdir(_PROC / "fd"))
        numbers |= _of_stat((_PROC / "stat").read_text())
    except OSError as error:  # not Linux, or no descriptor is left, for which this number has an alert
        if error.errno == errno.EMFILE:
            numbers["process_open_fds"] = soft
    try:
        io = dict(line.split(": ") for line in (_PROC / "io").read_text().splitlines())
        numbers["disk_read_bytes"], numbers["disk_write_bytes"] = int(io["read_bytes"]), int(io["write_bytes"])
    except (OSError, KeyError, ValueError):  # a container may forbid it
        pass
    return numbers


def _of_stat(stat: str) -> dict[str, float]:
    """From `/proc/self/stat`, whose second field, in parentheses, may hold anything (proc(5))."""
    fields = stat.rpartition(")")[2].split()
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return {
        "process_threads": int(fields[19 - _STAT_FIELDS_BEFORE_STATE]),
        "process_start_time_seconds": booted + int(fields[21 - _STAT_FIELDS_BEFORE_STATE]) / ticks,
        "process_virtual_memory_bytes": int(fields[22 - _STAT_FIELDS_BEFORE_STATE]),
        "process_resident_memory_bytes": int(fields[23 - _STAT_FIELDS_BEFORE_STATE]) * page,
    }
