"""How a consumer ends: it is closed, by one caller or several, or refused to a forked child."""

import asyncio
from collections.abc import Awaitable, Callable

from moldau.client.consuming.fetched.handout import Handout
from moldau.client.consuming.polling import Poller
from moldau.client.own_loop import NOT_STARTED
from moldau.client.routing import Router
from moldau.errors import ClientClosed


class Closing:
    """The part of `AsyncConsumer` that ends it. `_told` counts the user's listeners that run now."""

    _started: bool
    _closing: bool
    _closed: bool
    _refused: str
    _ended: asyncio.Event
    _told: int
    _awake: asyncio.Event
    _handout: Handout
    _poller: Poller
    _router: Router
    _leave: Callable[[], Awaitable[None]]

    async def close(self) -> None:
        """Commit what was processed, if automatic commits are enabled, leave the group, and close the connections. A
        caller that is cancelled closes the connections all the same; a second caller waits for the first one."""
        if self._closing or not self._started:
            if self._started and not self._told:  # the first closer may wait for a listener that closes too
                await self._ended.wait()
            return
        self._closing = True
        self._awake.set()
        try:
            await self._leave()
        finally:
            self._closed = True
            try:
                await self._poller.close()
            finally:
                await self._router.close()
                self._ended.set()

    def refuse(self, why: str) -> None:
        """From now on nothing is handed out; calls raise `ClientClosed` with this sentence. Takes no lock: a forked
        child calls it."""
        self._refused = why
        self._handout.end()

    def _check_open(self, closing: bool = False) -> None:
        self._check_started()
        if closing or self._closed or self._refused:
            raise ClientClosed(self._refused or "this consumer is closed")

    def _check_started(self) -> None:
        if not self._started:
            raise ClientClosed(f"this consumer {NOT_STARTED}")
