"""The watches of one session in ZooKeeper: who looks when a node changes, or when its children do.

ZooKeeper's watches fire once, so one that fired is set again before anybody looks. A connection that is lost takes all
watches along: they are set again after every reconnection, and then all look. The end of the session makes all look.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from kazoo.protocol.states import EventType, WatchedEvent

from moldau.errors import StorageError

Fired: TypeAlias = Callable[[WatchedEvent], None]


class Watches:
    """`arm` sets the watches of a path, `in_loop` calls a function on the loop, `keep` has a task awaited when the
    session is closed."""

    def __init__(
        self,
        arm: Callable[[str, Fired], Awaitable[None]],
        in_loop: Callable[..., None],
        keep: Callable[[asyncio.Future[Any]], None],
    ):
        self._arm_at = arm
        self._in_loop = in_loop
        self._keep = keep
        self._looks: dict[str, list[Callable[[], None]]] = {}
        self._fired_at: dict[str, Fired] = {}
        self._is_over = False

    async def add(self, path: str, look: Callable[[], None]) -> None:
        """Call `look` from now on when the node or its children change. Raises `SessionOver`."""
        if path not in self._looks:
            self._fired_at[path] = partial(self._fired, path)
        self._looks.setdefault(path, []).append(look)
        await self._arm(path)

    def remove(self, path: str) -> None:
        """Nobody looks at this path any more."""
        self._looks.pop(path, None)
        self._fired_at.pop(path, None)

    def set_again(self) -> None:
        """The connection is back: set all watches again, and then look."""
        for path in self._looks:
            self._look_again(path)

    def look(self) -> None:
        """Let everybody look."""
        for path in self._looks:
            self._look(path)

    def end(self) -> None:
        """The session is over: no watch is set again."""
        self._is_over = True

    async def _arm(self, path: str) -> None:
        fired = self._fired_at.get(path)
        if fired is not None:
            await self._arm_at(path, fired)

    def _fired(self, path: str, event: WatchedEvent) -> None:
        """Called from a thread of kazoo's; also, with no type, for every watch when the connection is lost."""
        if event.type != EventType.NONE:
            self._in_loop(self._look_again, path)

    def _look_again(self, path: str) -> None:
        if not self._is_over and path in self._looks:
            self._keep(asyncio.ensure_future(self._arm_and_look(path)))

    async def _arm_and_look(self, path: str) -> None:
        with contextlib.suppress(StorageError):  # the end of the session makes everybody look
            await self._arm(path)
            self._look(path)

    def _look(self, path: str) -> None:
        for look in self._looks.get(path, ()):
            look()
