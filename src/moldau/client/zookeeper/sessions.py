"""The sessions of one client in ZooKeeper, one after another: a session that is over is never used again.

This is the only module of the client's side that opens sessions by `metadata_store`, as brokers do.
"""

import asyncio
from collections.abc import Awaitable, Callable

from moldau.client.zookeeper.zookeeper_settings import ZooKeeperSettings
from moldau.errors import ClientClosed, ErrorCode, KafkaError, StorageError
from moldau.metadata_store.store import MetadataStore
from moldau.runtime import Runtime


class Sessions:
    """Opens a session when one is needed, for all parts of a client. Belongs to the loop that it is first used on."""

    def __init__(self, open_one: Callable[[], Awaitable[MetadataStore]], connect: str):
        self.connect = connect
        self._open_one = open_one
        self._opening: asyncio.Task[MetadataStore] | None = None
        self._ending: dict[asyncio.Task[None], None] = {}
        self._closed = False

    async def current(self) -> MetadataStore:
        """The session, opened if there is none. Callers share one attempt. Raises `ConfigError`, and `KafkaError`
        (retriable) if ZooKeeper does not answer."""
        if self._closed:
            raise ClientClosed("this client is closed")
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._opened())
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except StorageError as failure:
            self._forget(opening)
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(failure)) from None
        except BaseException:
            if opening.done():
                self._forget(opening)
            raise

    async def _opened(self) -> MetadataStore:
        return await self._open_one()

    def _forget(self, opening: "asyncio.Task[MetadataStore]") -> None:
        if self._opening is opening:
            self._opening = None

    def drop(self, session: MetadataStore) -> None:
        """End this session, if it is the current one: the next caller opens another."""
        opening = self._opening
        if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
            return
        if opening.result() is session:
            self._opening = None
            task = asyncio.ensure_future(session.close())
            self._ending[task] = None
            task.add_done_callback(lambda done: self._ending.pop(done, None))

    async def close(self) -> None:
        """End the session. Its ephemeral nodes go."""
        self._closed = True
        opening, self._opening = self._opening, None
        if opening is not None:
            if not opening.done():
                opening.cancel()
            [session] = await asyncio.gather(opening, return_exceptions=True)
            if not isinstance(session, BaseException):
                await session.close()
        await asyncio.gather(*self._ending, return_exceptions=True)


def sessions_of(settings: ZooKeeperSettings) -> Sessions:
    """The sessions of a client with these settings, in which `zookeeper_connect` is set."""
    connect = settings.zookeeper_connect or ""

    async def open_one() -> MetadataStore:
        from moldau.metadata_store.opening import session_in

        timeout_s = settings.zookeeper_session_timeout_ms / 1000
        limit_s = settings.zookeeper_connection_timeout_ms / 1000
        return await session_in(connect, timeout_s, settings.runtime or Runtime(), limit_s, settings.zookeeper_tls())

    return Sessions(settings.zookeeper_session or open_one, connect)
