"""A process with one session in a metadata file.

    python -m tests.metadata_store.file_member FILE TIMEOUT_S NAME [stopping]

It creates the ephemeral node /NAME, says so, and says when its session is over; with `stopping`, it stops in the middle
of the next change.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from moldau.metadata_store.shared_file_session import SharedFileSession
from moldau.metadata_store.store import Create, SessionOver, Set
from moldau.runtime import Runtime


async def main(path: Path, timeout_s: float, name: str, stops: bool) -> None:
    session = await SharedFileSession.open(path, timeout_s, Runtime())
    looked = asyncio.Event()
    await session.watch("/never", looked.set)
    await session.multi([Create(f"/{name}", ephemeral=True)])
    print(f"session {session.session_id}", flush=True)
    if stops:
        session._file._in_transaction(lambda: os.kill(os.getpid(), signal.SIGSTOP))
    await looked.wait()
    try:
        await session.multi([Set(f"/{name}", b"")])
    except SessionOver as over:
        print(over, flush=True)
    await session.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], "stopping" in sys.argv[4:]))
