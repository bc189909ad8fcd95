"""Both faces of a consumer behind one set of calls, so that one program runs with either."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from harness.patience import stretched
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.failures import ClientClosed

HANGS = "the loop waits for a record that never comes"


class Interrupted(Exception):
    """What the body of a loop raises."""


class SyncFace:
    """A `Consumer`; its methods are called by their names."""

    def __init__(self, settings: dict[str, Any], loop: asyncio.AbstractEventLoop):
        self.consumer = Consumer(**settings)

    def __call__(self, method: str, *arguments: Any, **named: Any) -> Any:
        return getattr(self.consumer, method)(*arguments, **named)

    def walk(self, body: Callable[[Record], bool]) -> None:
        """Iterate until the body returns False or raises. A record that never comes is an `AssertionError`."""
        hangs = threading.Timer(stretched(), self.consumer.close)
        hangs.start()
        try:
            for record in self.consumer:
                if not body(record):
                    break
        except ClientClosed:
            raise AssertionError(HANGS) from None
        finally:
            hangs.cancel()

    def commit_record(self, record: Record) -> None:
        record.commit()


class AsyncFace:
    """An `AsyncConsumer`. Its loop runs only while the program waits for it."""

    def __init__(self, settings: dict[str, Any], loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self.consumer = AsyncConsumer(**settings)
        self._run(self.consumer.start())

    def __call__(self, method: str, *arguments: Any, **named: Any) -> Any:
        async def call() -> Any:
            outcome = getattr(self.consumer, method)(*arguments, **named)
            return await outcome if asyncio.iscoroutine(outcome) else outcome

        return self._run(call())

    def walk(self, body: Callable[[Record], bool]) -> None:
        async def walk() -> None:
            async for record in self.consumer:
                if not body(record):
                    break

        async def limited() -> None:
            try:
                await asyncio.wait_for(walk(), stretched())
            except TimeoutError:
                raise AssertionError(HANGS) from None

        self._run(limited())

    def commit_record(self, record: Record) -> None:
        self._run(record.commit())

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)


Face = SyncFace | AsyncFace
