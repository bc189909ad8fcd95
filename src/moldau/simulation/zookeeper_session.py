"""One session in the model ZooKeeper: the client's side of `simulation.zookeeper`, as the real client must behave.

A call waits while the connection is away, at most until the session's time-out after the last sign of life: from then
on the session counts as over here, whether the ensemble has expired it or not. Every watch is set again after it has
fired and after every reconnection, and only then its owner looks.
"""

import asyncio
import contextvars
from collections.abc import Callable, Sequence

from moldau.metadata_store.store import (
    AskNodes,
    Node,
    NodeOperation,
    OutcomeUnknown,
    Question,
    Reading,
    SessionOver,
    StoreConflict,
    T,
    Written,
    check_size,
    checked,
)
from moldau.simulation.zookeeper import ModelZooKeeper

TIMEOUT_S = 18.0
"""Kafka's `zookeeper.session.timeout.ms`."""


class ModelSession:
    """See `MetadataStore`."""

    is_bounded = True

    def __init__(self, zookeeper: ModelZooKeeper, timeout_s: float = TIMEOUT_S):
        self.timeout_s = timeout_s
        self._zookeeper = zookeeper
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._looks: dict[str, list[Callable[[], None]]] = {}
        self._is_over = False
        self._changed = asyncio.Event()
        """Set when the connection or the session has changed."""
        self._giving_up: asyncio.TimerHandle | None = None
        self.link = zookeeper.connect(timeout_s, self._fired, self._link_changed)
        self.session_id = self.link.session_id
        if not self.link.is_up:
            self._link_changed()

    async def read(self, reading: Reading[T]) -> T:
        answered = None
        while True:
            try:
                question = reading.send(answered)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answered = await self._answer(question)

    async def _answer(self, question: Question) -> list[Node | None] | list[str]:
        for path in question.paths if isinstance(question, AskNodes) else [question.path]:
            checked(path)
        while True:
            await self._connected()
            await self._delay()
            if self._zookeeper.drops():
                self._zookeeper.drop(self.link)
            if self.link.is_up:
                server = self.link.server
                self.link.seen = max(self.link.seen, server.applied)
                if isinstance(question, AskNodes):
                    return [server.nodes.get(path) for path in question.paths]
                return server.children(question.path)

    async def multi(self, operations: Sequence[NodeOperation]) -> list[Written | None]:
        for operation in operations:
            checked(operation.path)
        check_size(operations)
        await self._connected()
        await self._delay()
        if self._zookeeper.drops():
            self._zookeeper.drop(self.link)
        is_lost = not self.link.is_up
        results = [] if is_lost else self._written(operations)
        if self.link.loses_next_answer or self._zookeeper.drops():
            self.link.loses_next_answer = False
            self._zookeeper.drop(self.link)
            is_lost = True
        await self._delay()
        if is_lost or not self.link.is_up:  # a connection that is back by now brings no answer
            raise OutcomeUnknown("the connection to ZooKeeper was lost before a write was answered")
        if isinstance(results, StoreConflict):
            raise results
        return results

    def _written(self, operations: Sequence[NodeOperation]) -> list[Written | None] | StoreConflict:
        try:
            return self._zookeeper.write(operations, self.link)
        except StoreConflict as refusal:
            return refusal

    async def sync(self) -> None:
        while True:
            await self._connected()
            await self._delay()
            if self._zookeeper.drops():
                self._zookeeper.drop(self.link)
            if self.link.is_up:
                self._zookeeper.sync(self.link)
                return

    async def watch(self, path: str, look: Callable[[], None]) -> None:
        await self._connected()
        self._looks.setdefault(checked(path), []).append(look)
        self._arm(path)

    def unwatch(self, path: str) -> None:
        self._looks.pop(path, None)

    async def close(self) -> None:
        if not self._is_over:
            self._give_up(tell=False)
            if self.link.is_up:
                self._zookeeper.end(self.link)
            self.link.is_gone = True

    def abandon(self) -> None:
        """Its process has died."""
        self._give_up(tell=False)
        self.link.is_gone = True
        self._zookeeper.cut(self.link)

    # ------------------------------------------------------------------------------------------------ watches

    def _arm(self, path: str) -> None:
        if self.link.is_up:
            self.link.server.watches.setdefault(path, {})[self.link] = None

    def _fired(self, path: str) -> None:
        delay_s = self._zookeeper.drawn(self._zookeeper.manners.answer_s)
        if delay_s:
            self._loop.call_later(delay_s, self._arm_and_look, path, context=self._context)
        else:
            self._loop.call_soon(self._arm_and_look, path, context=self._context)

    def _arm_and_look(self, path: str) -> None:
        if not self._is_over and path in self._looks:
            self._arm(path)
            self._look(path)

    def _look(self, path: str) -> None:
        for look in self._looks.get(path, ()):
            look()

    # --------------------------------------------------------------------------------------------- connection

    async def _delay(self) -> None:
        delay_s = self._zookeeper.drawn(self._zookeeper.manners.answer_s)
        if delay_s:
            await asyncio.sleep(delay_s)

    async def _connected(self) -> None:
        """Wait for a connection. Raises `SessionOver`."""
        while not self._is_over and not self.link.is_up:
            self._changed.clear()
            await self._changed.wait()
        if self._is_over:
            raise SessionOver("the session is over")

    def _link_changed(self) -> None:
        self._changed.set()
        if self._is_over:
            return
        if self.link.is_over:
            self._give_up()
        elif self.link.is_up:
            self._stop_giving_up()
            for path in self._looks:
                self._loop.call_soon(self._arm_and_look, path, context=self._context)
        elif self._giving_up is None:
            self._giving_up = self._loop.call_later(self.link.timeout_s, self._give_up, context=self._context)

    def _stop_giving_up(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None

    def _give_up(self, tell: bool = True) -> None:
        self._stop_giving_up()
        self._is_over = self.link.is_gone = True
        self._changed.set()
        if tell:
            for path in self._looks:
                self._loop.call_soon(self._look, path, context=self._context)
