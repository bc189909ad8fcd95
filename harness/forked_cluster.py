"""`moldau cluster start` whose brokers are forked from it, in place of processes that import all modules again.

Forked itself (harness/forking.py), it has them in memory. Its brokers are its children as they are for a user: in
sessions of their own, with the same command lines and logs, and they die with it.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

from harness import forking
from moldau.cli.main import main

DESCRIPTORS = Path("/proc/self/fd")
STANDARD = (0, 1, 2)
COLLECTED_AFTER = gc.get_threshold()
"""As at the start of a process: a command changes it."""
in_processes = asyncio.create_subprocess_exec


class Child:
    """As `asyncio.subprocess.Process`, as far as a cluster uses it."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader):
        self.pid, self.stdout = pid, stdout
        self.returncode: int | None = None
        self._ended = asyncio.Event()
        self._watched = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._watched, self._end)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._watched)
        os.close(self._watched)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended.set()


async def started(*command: str, stderr: IO[bytes], preexec_fn: Callable[[], None] | None, **options: Any) -> Any:
    """What `asyncio.create_subprocess_exec` starts for a broker."""
    if list(command[:2]) != [sys.executable, "-m"]:
        return await in_processes(*command, stderr=stderr, preexec_fn=preexec_fn, **options)
    output, write_output = os.pipe()
    gc.collect()
    gc.freeze()  # what is freed in the child would close descriptors with the numbers of its own
    pid = os.fork()
    if not pid:
        become(command[2], command[3:], (write_output, stderr.fileno()), preexec_fn)
    os.close(write_output)
    reader = asyncio.StreamReader()
    made = lambda: asyncio.StreamReaderProtocol(reader)  # noqa: E731
    await asyncio.get_running_loop().connect_read_pipe(made, os.fdopen(output, "rb", 0))
    return Child(pid, reader)


def become(
    program: str, arguments: tuple[str, ...], outputs: tuple[int, int], preexec: Callable[[], None] | None
) -> NoReturn:
    """Run this program, with these descriptors for what it prints and logs, in a process that was just forked."""
    try:
        os.setsid()
        if preexec is not None:
            preexec()
        gc.set_threshold(*COLLECTED_AFTER)
        logging.getLogger().handlers.clear()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for standard, descriptor in zip(STANDARD[1:], outputs, strict=True):
            os.dup2(descriptor, standard)
        for name in os.listdir(DESCRIPTORS):
            if int(name) not in STANDARD:
                with contextlib.suppress(OSError):  # that of the list is closed already
                    os.close(int(name))
        forking.run(program, arguments)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


if __name__ == "__main__":
    asyncio.create_subprocess_exec = started  # type: ignore[assignment]
    main()
