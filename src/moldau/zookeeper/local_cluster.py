"""A cluster on this machine: several brokers, each in a process of its own, and one ZooKeeper or a file they share.

DIR/zookeeper       the folder of ZooKeeper (see `ensemble`)
DIR/cluster.sqlite  instead of it, a file with the metadata
DIR/secret          the secret by which its brokers know each other
DIR/broker-N        the log folder of broker N
DIR/broker-N.log    what broker N says

A broker that ends is started again, at the port that it had. Before that its session in ZooKeeper is ended: the other
brokers replace it at once, and not only when its session has timed out. In a file they do so without this.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from moldau.cluster.secret_file import SETTING, make_secret_file
from moldau.config import read_properties
from moldau.config.internal_topics import internal_topics_of
from moldau.errors import ConfigError, StorageError
from moldau.names import how_to_install
from moldau.zookeeper.children import die_with_parent, stopped
from moldau.zookeeper.ensemble import Ensemble

START_S = 60.0
STOP_S = 20.0
SESSION_MS = 6000
"""Shorter than a broker's default: all processes are on one machine. A broker that stops answering, without having
ended, is replaced after this time."""
AGAIN_S = 1.0
"""The pause before a broker that has ended is started again."""
ZOOKEEPER_FOLDER, METADATA_FILE, SECRET_FILE = "zookeeper", "cluster.sqlite", "secret"
_LISTENING = "listening on "

EndSession: TypeAlias = Callable[[Path, Mapping[str, str]], Awaitable[None]]
"""Ends the session of a broker that has died, by its folder and settings."""

logger = logging.getLogger(__name__)


class CommonSettings(NamedTuple):
    """The settings of all brokers: those of `moldau server start --set`, and its file. Secrets belong into the file,
    since the command line of a process is shown to other users."""

    pairs: tuple[str, ...] = ()
    file: Path | None = None


class BrokerProcess:
    """`port` 0 takes a free one at the first start."""

    def __init__(
        self, folder: Path, number: int, host: str, port: int, settings: CommonSettings, end_session: EndSession | None
    ):
        self.address = ""
        self._folder = folder / f"broker-{number}"
        self._log = folder / f"broker-{number}.log"
        self._number = number
        self._host = host
        self._port = port
        self._settings = (f"broker.id={number}", *settings.pairs)
        self._file = settings.file
        self._end_session = end_session
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Returns when it serves. Raises `StorageError`, `OSError`."""
        command = [sys.executable, "-m", "moldau", "server", "start", "--data-dir", str(self._folder)]
        command += ["--host", self._host, "--port", str(self._port)]
        if self._file is not None:
            command.append(str(self._file))
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
            why = said[-1].removeprefix("error: ") if said else "it said nothing"
            raise StorageError(f"broker {self._number} did not start: {why}")
        self.address = line.removeprefix(_LISTENING).split()[0]
        self._port = int(self.address.rpartition(":")[2])

    async def keep(self) -> None:
        """Start it again whenever it ends, until cancelled."""
        while True:
            assert self._process is not None
            code = await self._process.wait()
            logger.error("broker %d has ended with code %d. It is started again", self._number, code)
            properties = dict(setting.partition("=")[::2] for setting in self._settings)
            if self._end_session is not None:
                await self._end_session(self._folder, {**properties, "log.dirs": str(self._folder)})
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
    ones for 0. Without an ensemble the brokers share a file."""

    def __init__(
        self,
        ensemble: Ensemble | None,
        folder: Path,
        host: str,
        port: int,
        size: int,
        settings: Sequence[str],
        file: Path | None = None,
    ):
        self.brokers: list[BrokerProcess] = []
        self._ensemble = ensemble
        self._folder = folder.absolute()
        self._host = host
        self._port = port
        self._size = size
        self._settings = settings
        self._file = file
        self._stack = contextlib.AsyncExitStack()

    @property
    def addresses(self) -> list[str]:
        """Of the brokers."""
        return [broker.address for broker in self.brokers]

    async def start(self) -> None:
        """Returns when all brokers serve. Raises `ConfigError`, `StorageError`, `OSError`; none is left then."""
        end_session = None if self._ensemble is None else _ending_sessions()
        async with contextlib.AsyncExitStack() as undo:
            connect = await self._open_store(undo)
            secret = self._folder / SECRET_FILE
            make_secret_file(secret)
            usual = {"zookeeper.session.timeout.ms": SESSION_MS, **internal_topics_of(self._size)}
            of_file = {} if self._file is None else read_properties(self._file)
            pairs = (
                f"zookeeper.connect={connect}",
                f"{SETTING}={secret}",
                *(f"{name}={value}" for name, value in usual.items() if name not in of_file),
                *self._settings,
            )
            settings = CommonSettings(pairs, self._file)
            self.brokers = [
                BrokerProcess(
                    self._folder, n + 1, self._host, self._port + n if self._port else 0, settings, end_session
                )
                for n in range(self._size)
            ]
            undo.push_async_callback(self._stop_brokers)
            await asyncio.gather(*(broker.start() for broker in self.brokers))
            self._stack = undo.pop_all()

    async def _open_store(self, undo: contextlib.AsyncExitStack) -> str:
        """The brokers' `zookeeper.connect`, when it can be used."""
        zookeeper, file = self._folder / ZOOKEEPER_FOLDER, self._folder / METADATA_FILE
        if self._ensemble is None:
            if zookeeper.exists():
                raise ConfigError(f"{self._folder} has a cluster on ZooKeeper: start it without --embedded")
            self._folder.mkdir(parents=True, exist_ok=True)
            return f"file:{file}"
        if file.exists():
            raise ConfigError(f"{self._folder} has a cluster without ZooKeeper: start it with --embedded")
        await self._ensemble.start()
        undo.push_async_callback(self._ensemble.stop)
        return ",".join(str(server.place) for server in self._ensemble.servers)

    async def keep(self) -> None:
        """Start each process that ends again, until cancelled."""
        stores = [] if self._ensemble is None else [self._ensemble.keep()]
        await asyncio.gather(*stores, *(broker.keep() for broker in self.brokers))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def _stop_brokers(self) -> None:
        await asyncio.gather(*(broker.stop() for broker in self.brokers))


def _ending_sessions() -> EndSession:
    """Raises `ConfigError` if kazoo is not installed."""
    try:
        from moldau.zookeeper.dead_brokers import end_session
    except ImportError:
        raise ConfigError(f"a cluster needs kazoo: {how_to_install('cluster')}") from None
    return end_session
