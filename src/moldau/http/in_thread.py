"""A server in a thread and on a loop of its own: beside a broker, whose loop it does not hold up, or in a test."""

import asyncio
import threading
from typing import Protocol

STOP_S = 30
LEFT_S = 1.0
"""How long a stop waits for the thread when the server has ended: a call in the executor may block for longer, and
holds up nothing but the end of the process."""


class ServesOnLoop(Protocol):
    """A server that belongs to one event loop."""

    @property
    def addresses(self) -> list[str]: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class ServerThread:
    """Runs a server; `title` says what it is. `start` and `stop` block; any thread may call them, one at a time."""

    def __init__(self, server: ServesOnLoop, title: str):
        self.title = title
        self._server = server
        self._ready = threading.Event()
        self._failure: list[BaseException] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"moldau {title}", daemon=True)

    @property
    def addresses(self) -> list[str]:
        """`http://HOST:PORT`."""
        return self._server.addresses

    def start(self) -> None:
        """Returns when it serves. Raises `ConfigError` and `KafkaError`."""
        self._thread.start()
        self._ready.wait()
        if self._failure:
            self._thread.join(STOP_S)
            raise self._failure[0]

    def stop(self) -> None:
        """Answer what has begun, then end. Nothing happens if it has ended."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._stopped.wait(STOP_S)
            self._thread.join(LEFT_S)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await self._server.start()
        except BaseException as failure:
            self._failure.append(failure)
            return
        finally:
            self._ready.set()
        try:
            await self._ended.wait()
            await self._server.stop()
        finally:
            self._stopped.set()
