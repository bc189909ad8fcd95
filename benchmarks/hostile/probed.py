"""`python -m benchmarks.hostile.probed server start ...`: a broker that can be asked for its longest turn.

A connection to the Unix socket named by `MOLDAU_PROBE` is sent one line: the milliseconds of processor time that the
loop's thread used at most in one turn of the loop since the connection before. The loop never sleeps meanwhile.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from importlib import import_module, util
from typing import Any

from moldau.cli.main import main

# An earlier revision's broker module runs the process itself.
process: Any = import_module("moldau.process" if util.find_spec("moldau.process") else "moldau.broker")
serve: Callable[..., Coroutine[Any, Any, int]] = process.serve


class Probe:
    def __init__(self) -> None:
        self.longest_s = 0.0

    async def watch(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest_s = max(self.longest_s, now - before)
            before = now

    async def tell(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"%.3f\n" % (self.longest_s * 1000))
        self.longest_s = 0.0
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
