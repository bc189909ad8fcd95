"""One session in a metadata file that several processes of this machine share.

A thread looks every `POLL_S` at what other processes have done. Blocking work runs in the executor.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.errors import ConfigError, StorageError
from moldau.metadata_store.shared_file import SharedFile
from moldau.metadata_store.store import NodeOperation, Reading, SessionOver, T, Written
from moldau.metadata_store.watchers import Watchers
from moldau.notices import Notices
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.config import BrokerConfig

POLL_S = 0.05
_SCHEME = "file:"

notices = Notices(logging.getLogger(__name__))


def file_of(connect: str) -> Path | None:
    """The metadata file that a `zookeeper.connect` names, as `file:PATH`; None if it names servers. Raises
    `ConfigError`."""
    if not connect.strip().startswith(_SCHEME):
        return None
    path = connect.strip().removeprefix(_SCHEME)
    path = path.removeprefix("//") if path.startswith("///") else path
    if not path or path.endswith("/") or "\0" in path:
        raise ConfigError(f"{connect!r} is not of the form file:PATH")
    return Path(path).absolute()


def shared_file(config: "BrokerConfig") -> Path | None:
    """As `file_of`, for the settings of a broker. Raises `ConfigError`."""
    path = file_of(config.zookeeper_connect or "")
    if path is not None and (config.zookeeper_set_acl or config.zookeeper_ssl_client_enable):
        raise ConfigError("zookeeper.set.acl and zookeeper.ssl.client.enable need a ZooKeeper: a file has neither")
    return path


class SharedFileSession:
    """See `MetadataStore`. Made by `open`."""

    is_bounded = False

    def __init__(self, file: SharedFile, runtime: Runtime):
        self.session_id = file.session_id
        self.timeout_s = file.timeout_s
        self._file = file
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        self._watchers = Watchers()
        self._is_over = False
        self._is_ending = False
        self._watching = threading.Thread(target=self._watch, name="metadata-file", daemon=True)
        self._watching.start()
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, path: Path, timeout_s: float, runtime: Runtime) -> "SharedFileSession":
        """A new session. Raises `StorageError`."""
        return cls(await runtime.run(lambda: SharedFile(path, timeout_s)), runtime)

    async def read(self, reading: Reading[T]) -> T:
        return await self._run(lambda: self._file.read(reading))

    async def multi(self, operations: Sequence[NodeOperation]) -> list[Written | None]:
        return await self._run(lambda: self._file.multi(operations))

    async def _run(self, work: Callable[[], T]) -> T:
        self._check()
        try:
            return await self._runtime.run(work)
        except SessionOver:
            self._end()
            raise

    async def sync(self) -> None:
        await self._run(self._file.sync)

    async def watch(self, path: str, look: Callable[[], None]) -> None:
        self._check()
        self._watchers.add(path, look)

    def unwatch(self, path: str) -> None:
        self._watchers.remove(path)

    async def close(self) -> None:
        if self._closing is None:
            self._is_over = True
            self._closing = asyncio.ensure_future(self._runtime.run(self._close))
        await asyncio.shield(self._closing)

    def _close(self) -> None:
        self._is_ending = True
        self._watching.join()
        self._file.end()

    def _check(self) -> None:
        if self._is_over:
            raise SessionOver("the session is over")

    def _watch(self) -> None:
        """Runs in a thread of its own."""
        while not self._is_ending:
            time.sleep(POLL_S)
            try:
                changed = self._file.look()
            except SessionOver:
                self._in_loop(self._end)
                return
            except StorageError as error:
                notices.error("", "this broker does not see changes by other brokers: %s", error)
                continue
            if changed is None or changed:
                self._in_loop(partial(self._look, changed))

    def _in_loop(self, act: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(act)

    def _look(self, changed: Collection[str] | None) -> None:
        if self._is_over:
            return
        if changed is None:
            self._watchers.look_everywhere()
        else:
            self._watchers.look_at(changed)

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._watchers.look_everywhere()
