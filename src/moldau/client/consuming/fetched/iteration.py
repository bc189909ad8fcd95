"""`async for record in consumer` and `await anext(consumer)`, beside `poll`."""

import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

from moldau.client.consuming.fetched.record import Record


class Iteration:
    """The part of `AsyncConsumer` that hands its records out one by one."""

    walk: Callable[[], Iterator[Record] | None]
    ready: Callable[[float], Coroutine[Any, Any, bool]]

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Records one by one, without end. After a `break` or an exception, the next loop continues behind the record
        of the last one."""
        while True:
            for record in await self._walked():
                yield record

    async def __anext__(self) -> Record:
        """The next record, as a loop would get it."""
        while True:
            for record in await self._walked():
                return record

    async def _walked(self) -> Iterator[Record]:
        walk = self.walk()
        while walk is None:
            await self.ready(math.inf)
            walk = self.walk()
        return walk
