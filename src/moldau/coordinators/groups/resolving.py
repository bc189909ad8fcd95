"""Finds out what expressions match, where that takes longer than a decision may.

One expression after another, in the executor, piece by piece; whoever asked is told, or asks again. One that is not
done after so many pieces makes way for the others until it is asked about again: what was found out is kept. Belongs
to the loop. Apache Kafka 4.3 resolves expressions beside the requests, too, and gives members their topics with a later
heartbeat.
"""

import asyncio
import logging
from collections.abc import Callable, Collection

from moldau.cluster.image import Image
from moldau.coordinators.consumer.expressions import Expressions
from moldau.runtime import Runtime

log = logging.getLogger(__name__)

WANTED_MAX = 1000
"""So many expressions wait for their turn; others are asked about again with the next heartbeat."""
TASKS_MAX = 40
"""Pieces of work for one expression in its turn."""


class Resolver:
    def __init__(self, expressions: Expressions, image: Callable[[], Image], runtime: Runtime):
        self._expressions = expressions
        self._image = image
        self._runtime = runtime
        self._wanted: dict[str, asyncio.Future[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._renewing = False

    def match(self, expression: str, topics: Collection[str]) -> Collection[str] | None:
        """The topics that it matches; None if that is not known yet: it will be. Raises `ValueError` with a reason for
        what is no expression."""
        try:
            found = self._expressions.match(expression, topics)
        finally:
            if self._expressions.has_worked and not self._renewing:
                self._renewing = True
                asyncio.get_running_loop().call_soon(self._renew)
        if found is None:
            self._want(expression)
        return found

    def resolving(self, expression: str) -> asyncio.Future[None] | None:
        """What to wait for until the expression's topics are known, if they are not and there is room to wait."""
        try:
            found = self.match(expression, self._image().topics)
        except ValueError:
            return None
        return self._wanted.get(expression) if found is None else None

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _renew(self) -> None:
        self._renewing = False
        self._expressions.renew()

    def _want(self, expression: str) -> None:
        if expression in self._wanted or len(self._wanted) >= WANTED_MAX:
            return
        loop = asyncio.get_running_loop()
        self._wanted[expression] = loop.create_future()
        if self._task is None:
            self._task = loop.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._wanted:
                expression = next(iter(self._wanted))
                try:
                    await self._resolve(expression)
                except ValueError:  # whoever asks again is told
                    pass
                except Exception:
                    log.exception("an expression cannot be resolved")
                finally:
                    later = self._wanted.pop(expression)
                    if not later.done():
                        later.set_result(None)
                await asyncio.sleep(0)
        finally:
            self._task = None

    async def _resolve(self, expression: str) -> None:
        for _ in range(TASKS_MAX):
            task = self._expressions.task(expression, self._image().topics)
            if task is None:
                return
            self._expressions.taken(task, await self._runtime.run(task.run))
