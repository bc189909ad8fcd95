"""`python -m benchmarks.hostile.probed server start ...`: a broker that can be asked for its longest turn.

A connection to the Unix socket named by `MOLDAU_PROBE` is sent one line with three numbers, in milliseconds of
processor time since the connection before: what the loop's thread used at most in one turn of the loop, collections of
garbage left out; what it used in all turns that took longer than `LONG_S`, with all other threads; and the longest
collection. The loop never sleeps meanwhile.
"""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from importlib import import_module, util
from typing import Any

from moldau.cli.main import main

# An earlier revision's broker module runs the process itself.
process: Any = import_module("moldau.process" if util.find_spec("moldau.process") else "moldau.broker")
serve: Callable[..., Coroutine[Any, Any, int]] = process.serve


LONG_S = 0.0003
"""A turn that took longer than this had work to do."""


class Probe:
    def __init__(self) -> None:
        self.longest_s = self.worked_s = self.longest_collection_s = 0.0
        self._collected_s = self._collection_began_s = 0.0
        self.others_s = 0.0
        """What the other threads have used until the last connection."""

    def collecting(self, phase: str, _: object) -> None:
        """Called by the collector, in whatever thread made the object that was one too many."""
        if threading.current_thread() is not threading.main_thread():
            return
        now = time.thread_time()
        if phase == "start":
            self._collection_began_s = now
        else:
            self._collected_s += now - self._collection_began_s
            self.longest_collection_s = max(self.longest_collection_s, now - self._collection_began_s)

    async def watch(self) -> None:
        gc.callbacks.append(self.collecting)
        before = time.thread_time()
        while True:
            self._collected_s = 0.0
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest_s = max(self.longest_s, now - before - self._collected_s)
            if now - before > LONG_S:
                self.worked_s += now - before
            before = now

    async def tell(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        others_s = time.process_time() - time.thread_time()
        told_s = (self.longest_s, self.worked_s + others_s - self.others_s, self.longest_collection_s)
        writer.write(b"%.3f %.3f %.3f\n" % tuple(1000 * one for one in told_s))
        self.longest_s, self.worked_s, self.longest_collection_s, self.others_s = 0.0, 0.0, 0.0, others_s
        await writer.drain()
        writer.close()


async def probed(*arguments: Any) -> int:
    probe = Probe()
    watching = asyncio.ensure_future(probe.watch())
    listening = await asyncio.start_unix_server(probe.tell, os.environ["MOLDAU_PROBE"])
    try:
        return await serve(*arguments)
    finally:
        listening.close()
        watching.cancel()


if __name__ == "__main__":
    process.serve = probed
    sys.exit(main())
