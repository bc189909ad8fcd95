"""A cluster on this machine: one ZooKeeper and several brokers, each in a process of its own.

DIR/zookeeper       the folder of ZooKeeper (see `ensemble`)
DIR/broker-N        the log folder of broker N
DIR/broker-N.log    what broker N says

A broker that ends is started again, at the port that it had.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from moldau.errors import StorageError
from moldau.zookeeper.children import die_with_parent, stopped
from moldau.zookeeper.ensemble import Ensemble

START_S = 60.0
STOP_S = 20.0
SESSION_MS = 6000
"""A broker that was killed is taken back when its old session is over, and all are on one machine here."""
AGAIN_S = 1.0
"""The pause before a broker that has ended is started again."""
_LISTENING = "listening on "

logger = logging.getLogger(__name__)


class BrokerProcess:
    """`port` 0 takes a free one at the first start. `settings` are those of `moldau server start --set`."""

    def __init__(self, folder: Path, number: int, host: str, port: int, settings: Sequence[str]):
        self.address = ""
        self._folder = folder / f"broker-{number}"
        self._log = folder / f"broker-{number}.log"
        self._number = number
        self._host = host
        self._port = port
        self._settings = (f"broker.id={number}", *settings)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Returns when it serves. Raises `StorageError`, `OSError`."""
        command = [sys.executable, "-m", "moldau", "server", "start", "--data-dir", str(self._folder)]
        command += ["--host", self._host, "--port", str(self._port)]
        for setting in self._settings:
            command += ["--set", setting]
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us alone
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
            )
        assert self._process.stdout is not None
        line = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                line = (await self._process.stdout.readline()).decode().strip()
        if not line.startswith(_LISTENING):
            await self.stop()
            said = self._log.read_text(errors="replace").strip().splitlines()
            raise StorageError(f"broker {self._number} did not start: {said[-1] if said else 'it said nothing'}")
        self.address = line.removeprefix(_LISTENING).split()[0]
        self._port = int(self.address.rpartition(":")[2])

    async def keep(self) -> None:
        """Start it again whenever it ends, until cancelled."""
        while True:
            assert self._process is not None
            code = await self._process.wait()
            logger.error("broker %d has ended with code %d. It is started again", self._number, code)
            await asyncio.sleep(AGAIN_S)
            try:
                await self.start()
            except StorageError as error:
                logger.error("%s", error)

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL if that is not enough."""
        await stopped(self._process, STOP_S)


class LocalCluster:
    """`size` brokers with the ids from 1 on; the first listens at `port`, the others at the next ones, or all at free
    ones for 0."""

    def __init__(self, ensemble: Ensemble, folder: Path, host: str, port: int, size: int, settings: Sequence[str]):
        self.brokers: list[BrokerProcess] = []
        self._ensemble = ensemble
        self._folder = folder.absolute()
        self._host = host
        self._port = port
        self._size = size
        self._settings = settings
        self._stack = contextlib.AsyncExitStack()

    @property
    def addresses(self) -> list[str]:
        """Of the brokers."""
        return [broker.address for broker in self.brokers]

    async def start(self) -> None:
        """Returns when all brokers serve. Raises `ConfigError`, `StorageError`, `OSError`; none is left then."""
        async with contextlib.AsyncExitStack() as undo:
            await self._ensemble.start()
            undo.push_async_callback(self._ensemble.stop)
            connect = ",".join(str(server.place) for server in self._ensemble.servers)
            settings = (f"zookeeper.connect={connect}", f"zookeeper.session.timeout.ms={SESSION_MS}", *self._settings)
            self.brokers = [
                BrokerProcess(self._folder, n + 1, self._host, self._port + n if self._port else 0, settings)
                for n in range(self._size)
            ]
            undo.push_async_callback(self._stop_brokers)
            await asyncio.gather(*(broker.start() for broker in self.brokers))
            self._stack = undo.pop_all()

    async def keep(self) -> None:
        """Start each process that ends again, until cancelled."""
        await asyncio.gather(self._ensemble.keep(), *(broker.keep() for broker in self.brokers))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def _stop_brokers(self) -> None:
        await asyncio.gather(*(broker.stop() for broker in self.brokers))
