"""`python -m benchmarks.hostile.probed server start ...`: a broker that can be asked for its longest turn.

A connection to the Unix socket named by `MOLDAU_PROBE` is sent one line: the milliseconds of processor time that the
loop's thread used at most in one turn of the loop since the connection before. The loop never sleeps meanwhile.
"""

import asyncio
import os
import sys
import time

from moldau.cli.main import main
from moldau.config import BrokerConfig

try:
    from moldau import process
except ImportError:  # an earlier revision, whose broker module ran the process
    from moldau import broker as process

serve = process.serve


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


async def probed(config: BrokerConfig) -> int:
    probe = Probe()
    watching = asyncio.ensure_future(probe.watch())
    listening = await asyncio.start_unix_server(probe.tell, os.environ["MOLDAU_PROBE"])
    try:
        return await serve(config)
    finally:
        listening.close()
        watching.cancel()


if __name__ == "__main__":
    process.serve = probed
    sys.exit(main())
