"""Processes that this one starts: how they are stopped, and that they do not outlive it."""

import asyncio
import contextlib
import signal
from asyncio.subprocess import Process


async def stopped(process: Process | None, seconds: float) -> None:
    """End a process that may run: SIGTERM, and SIGKILL if it has not ended after so many seconds."""
    if process is None or process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()
                return


def die_with_parent() -> None:
    """Runs in the child before Java does: the kernel kills it when our process has died without stopping it."""
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
