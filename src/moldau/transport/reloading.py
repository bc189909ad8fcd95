"""Files that are looked at again and again, so that what was made of them can be made anew when they change.

A look costs a `stat` of each file, in the executor. A change counts once two looks in a row have seen the same, so that
nobody reads a file that is being written.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from moldau.runtime import Runtime
from moldau.tasks import ended

logger = logging.getLogger(__name__)

LOOK_S = 5.0
SETTLED_S = 0.5
"""The pause between two looks while files change."""


Signature: TypeAlias = list[tuple[int, ...]]
"""What changes when one of several files is written or replaced."""


def signature(files: Sequence[Path]) -> Signature:
    found: Signature = []
    for path in files:
        try:
            status = path.stat()
        except OSError:
            found.append((0,))
        else:
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return found


class FileWatch:
    """`files` returns those to look at; `changed` is called in the executor after they have changed since they were
    `seen`, or since now. Belongs to the loop it is started on."""

    def __init__(
        self,
        files: Callable[[], Sequence[Path]],
        changed: Callable[[], object],
        runtime: Runtime,
        seen: Signature | None = None,
    ):
        self._files = files
        self._changed = changed
        self._runtime = runtime
        self._seen = signature(files()) if seen is None else seen
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        await ended(self._task)

    async def _look(self) -> Signature:
        return await self._runtime.run(lambda: signature(self._files()))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            seen = await self._look()
            if seen == self._seen:
                continue
            before = None
            while before != seen:
                await asyncio.sleep(SETTLED_S)
                before, seen = seen, await self._look()
            self._seen = seen
            try:
                await self._runtime.run(self._changed)
            except Exception:  # later changes count all the same
                logger.exception("internal error: files have changed, and what was made of them before stays in use")
