"""`with` and `async with` for what is started and stopped."""

import asyncio
from types import TracebackType
from typing import Protocol, Self


class StartedInWith(Protocol):
    """`start` and `stop` block; `async with` runs them in a thread."""

    def start(self) -> Self: ...

    def stop(self) -> None: ...

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)
