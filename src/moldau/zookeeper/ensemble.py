"""An ensemble of ZooKeeper servers on this machine, or a single one: started together, watched, and stopped.

A server that ends is started again. Only the ports of clients are fixed; those that the servers use among themselves
are free ones, chosen at every start.
"""

import asyncio
import contextlib
import logging
import socket
from pathlib import Path

from moldau.errors import ConfigError, StorageError
from moldau.runtime import RealLock
from moldau.zookeeper.java import Java
from moldau.zookeeper.server import PortTaken, ServerAddress, ZooKeeperServer

START_S = 60.0
ATTEMPTS = 5
"""How often free ports are looked for."""
POLL_S = 0.05
AGAIN_S = 1.0
"""The pause before a server that has ended is started again."""

logger = logging.getLogger(__name__)


class Ensemble:
    """`size` servers in a folder; `port` is that of the first, the others have the next ones; 0 takes free ones."""

    def __init__(self, java: Java, folder: Path, host: str, port: int, size: int):
        self._java = java
        self._folder = folder.absolute()
        self._host = host
        self._port = port
        self._size = size
        self.servers: list[ZooKeeperServer] = []
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Returns when all servers answer. Raises `ConfigError`, `StorageError`, `OSError`; none is left then."""
        self._folder.mkdir(parents=True, exist_ok=True)
        async with contextlib.AsyncExitStack() as undo:
            undo.callback(self._lock())
            there = len(list(self._folder.glob("server-*")))
            if there not in (0, self._size):
                raise ConfigError(f"{self._folder} has an ensemble of {there}: start it with --ensemble {there}")
            undo.push_async_callback(self._stop_servers)
            for left in reversed(range(ATTEMPTS)):
                try:
                    await self._start_servers(self._addresses())
                    break
                except PortTaken:
                    # Java binds a port seconds after it was found free; the next attempt finds others.
                    await self._stop_servers()
                    if not left:
                        raise
            self._stack = undo.pop_all()

    async def _start_servers(self, addresses: list[ServerAddress]) -> None:
        """Raises `PortTaken`, `StorageError`, `OSError`; servers may be left then."""
        self.servers = [ZooKeeperServer(self._java, self._folder, n + 1, addresses) for n in range(self._size)]
        for server in self.servers:
            await server.start()
        try:
            async with asyncio.timeout(START_S):
                while not all([await server.mode() for server in self.servers]):
                    for server in self.servers:
                        if server.has_ended:
                            raise server.reason()
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            sentence = f"ZooKeeper does not answer {START_S:g} s after its start: see the logs in {self._folder}"
            raise StorageError(sentence) from None

    @property
    def addresses(self) -> list[str]:
        """Of the servers, for clients."""
        return [str(server.place) for server in self.servers]

    async def keep(self) -> None:
        """Start each server that ends again, until cancelled."""
        await asyncio.gather(*(self._keep(server) for server in self.servers))

    async def _keep(self, server: ZooKeeperServer) -> None:
        while True:
            await server.ended()
            logger.error("%s. It is started again", server.reason())
            await asyncio.sleep(AGAIN_S)
            await server.start()

    async def stop(self) -> None:
        await self._stack.aclose()

    async def _stop_servers(self) -> None:
        await asyncio.gather(*(server.stop() for server in self.servers))

    def _lock(self) -> RealLock:
        try:
            return RealLock(self._folder / ".lock")
        except StorageError:
            sentence = f"another ZooKeeper uses {self._folder}: stop it, or give this one a --data-dir of its own"
            raise StorageError(sentence) from None

    def _addresses(self) -> list[ServerAddress]:
        """Raises `StorageError` if a port is taken."""
        with contextlib.ExitStack() as held:

            def free(host: str = "127.0.0.1", port: int = 0) -> int:
                family = socket.AF_INET6 if ":" in host else socket.AF_INET
                listening = held.enter_context(socket.socket(family))
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    listening.bind((host, port))
                except OSError as error:
                    raise StorageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
                return int(listening.getsockname()[1])

            ports = [free(self._host, self._port + n if self._port else 0) for n in range(self._size)]
            if self._size == 1:
                return [ServerAddress(self._host, ports[0])]
            return [ServerAddress(self._host, port, free(), free()) for port in ports]
