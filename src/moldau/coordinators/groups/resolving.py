"""Finds the topics that expressions match, outside of the decisions, when that takes too long for one.

Expressions take turns in the executor, in tasks. An expression that is not finished after `TASKS_MAX` tasks makes way
for the others until it is asked for again; its results are kept. Use it only on the event loop. Apache Kafka 4.3 also
resolves expressions outside of requests, and gives members their topics with a later heartbeat.
"""

import asyncio
import logging
from collections.abc import Callable, Collection

from moldau.cluster.state.image import Image
from moldau.coordinators.consumer.expressions import Expressions
from moldau.runtime import Runtime
from moldau.tasks import ended

log = logging.getLogger(__name__)

WANTED_MAX = 1000
"""The most expressions that wait for their turn; for others the next heartbeat asks again."""
TASKS_MAX = 40
"""The most tasks of one expression in its turn."""


class Resolver:
    """`image` returns the current topics."""

    def __init__(self, expressions: Expressions, image: Callable[[], Image], runtime: Runtime):
        self._expressions = expressions
        self._image = image
        self._runtime = runtime
        self._wanted: dict[str, asyncio.Future[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._renewing = False

    def match(self, expression: str, topics: Collection[str]) -> Collection[str] | None:
        """The topics that the expression matches; None if they are not known yet, but are being found. Raises
        `ValueError` with the reason if the expression is invalid."""
        try:
            topics_matched = self._expressions.match(expression, topics)
        finally:
            if self._expressions.has_worked and not self._renewing:
                self._renewing = True
                asyncio.get_running_loop().call_soon(self._renew)
        if topics_matched is None:
            self._want(expression)
        return topics_matched

    def resolving(self, expression: str) -> asyncio.Future[None] | None:
        """A future that completes once the expression's topics are known, or its turn has ended. None if they are known
        or too many expressions wait."""
        try:
            known = self.match(expression, self._image().topics)
        except ValueError:
            return None
        return self._wanted.get(expression) if known is None else None

    async def stop(self) -> None:
        await ended(self._task)

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
                except ValueError:  # the next heartbeat gets the reason
                    pass
                except Exception:
                    log.exception("the topics of the expression %r cannot be found", expression)
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
