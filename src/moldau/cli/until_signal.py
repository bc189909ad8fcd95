"""Commands that work, or keep processes running, until a signal comes."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Sequence
from typing import Protocol


class KeptProcesses(Protocol):
    """Processes that are started and stopped together; `keep` starts again what ends, until cancelled."""

    @property
    def addresses(self) -> Sequence[str]: ...

    async def start(self) -> None: ...

    async def keep(self) -> None: ...

    async def stop(self) -> None: ...


async def until_signal(processes: KeptProcesses) -> int:
    """Start them, print where they listen, and keep them until a signal comes, which may be during the start. Returns
    the exit code."""
    return await cancelled_by_signal(_started_and_kept(processes))


async def cancelled_by_signal(work: Coroutine[object, object, object]) -> int:
    """Do this work until it ends or a signal comes, which cancels it. Returns the exit code."""
    loop, serving = asyncio.get_running_loop(), asyncio.ensure_future(work)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # `nohup` ignores SIGHUP
            loop.add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    return 0


async def _started_and_kept(processes: KeptProcesses) -> None:
    await processes.start()
    try:
        print(f"listening on {','.join(processes.addresses)}", flush=True)
        await processes.keep()
    finally:
        await processes.stop()
