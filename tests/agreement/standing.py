"""A broker that is filled, killed, started again on its files and stopped, and whose files are copied: as a process on
the real disk, or in virtual time, where the same requests leave the same bytes.
"""

import asyncio
import shutil
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from harness.brokers import Broker
from moldau.broker import Broker as LiveBroker
from moldau.protocol import codec
from moldau.protocol.apis import Api
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.network import Weather
from moldau.simulation.ports import START_MS
from moldau.simulation.world import PORT, World
from tests.end_to_end.raw import Raw

T = TypeVar("T")
DAY_MS = 86_400_000
HOST = "127.0.0.1"
DATA = Path("/data")


class Standing(Protocol):
    t0_ms: int
    """A day before it is started: a time for records."""

    def start(self) -> None: ...
    def connect(self) -> Raw: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def tear(self, log: str, data: bytes) -> None:
        """Put bytes behind the end of the last segment of a partition."""

    def copy(self, folder: Path) -> Path:
        """Copy its files into a new folder."""

    def close(self) -> None: ...


class InProcess:
    """A process of its own, on the real disk."""

    def __init__(self, folder: Path, settings: dict[str, str], t0_ms: int):
        self.t0_ms = t0_ms
        self._broker = Broker(folder, settings)

    def start(self) -> None:
        self._broker.start()

    def connect(self) -> Raw:
        return Raw(self._broker.address)

    def stop(self) -> None:
        self._broker.stop()

    def kill(self) -> None:
        self._broker.kill()

    def tear(self, log: str, data: bytes) -> None:
        with open(max((self._broker.data / log).glob("*.log")), "ab") as segment:
            segment.write(data)

    def copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(self._broker.data, folder))

    def close(self) -> None:
        self._broker.kill()


class InVirtualTime:
    """A broker on a simulated loop, network and disk. Time passes only while something is asked of it."""

    def __init__(self, settings: Mapping[str, str]):
        self.t0_ms = START_MS - DAY_MS
        self.world = World(1, Weather(0.5))
        self._settings = {name.replace(".", "_"): value for name, value in settings.items()}

    @property
    def broker(self) -> LiveBroker:
        found = self.world.host(HOST).broker
        assert found is not None
        return found

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.world.loop.run_until_complete(self.world.on(HOST, work))

    def _within(self, work: Callable[[], None]) -> None:
        """Run `work` in a turn of the loop."""

        async def turn() -> None:
            work()

        self.world.loop.run_until_complete(turn())

    def start(self) -> None:
        self.world.loop.run_until_complete(self.world.start_broker(HOST, **self._settings))

    def connect(self) -> Raw:
        return RawInVirtualTime(self)

    def stop(self) -> None:
        self.world.loop.run_until_complete(self.world.stop_broker(HOST))

    def kill(self) -> None:
        self._within(lambda: self.world.kill_broker(HOST))

    def tear(self, log: str, data: bytes) -> None:
        disk = self._disk()
        last = max(name for name in disk.list(DATA / log) if name.endswith(".log"))
        segment = disk.open(DATA / log / last)
        segment.write(data, segment.size())
        segment.close()

    def copy(self, folder: Path) -> Path:
        copy(self._disk(), DATA, folder)
        return folder

    def _disk(self) -> SimulatedDisk:
        return self.world.host(HOST).disk

    def close(self) -> None:
        self._within(lambda: self.world.kill(HOST))
        self.world.loop.close()


def copy(disk: SimulatedDisk, source: Path, target: Path) -> None:
    """Copy a folder of a simulated disk to the real one."""
    target.mkdir()
    for name in disk.list(source):
        if disk.node(source / name) is not None and not is_file(disk, source / name):
            copy(disk, source / name, target / name)
            continue
        file = disk.open(source / name, writable=False)
        (target / name).write_bytes(file.read(file.size(), 0))
        file.close()


def is_file(disk: SimulatedDisk, path: Path) -> bool:
    try:
        disk.list(path)
    except NotADirectoryError:
        return True
    return False


class RawInVirtualTime(Raw):
    """A connection to a broker in virtual time."""

    def __init__(self, standing: InVirtualTime):
        self._standing = standing
        self._reader, self._writer = standing.run(asyncio.open_connection(HOST, PORT))

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def ask(self, api: Api, version: int, request: Any) -> Any:
        frame = codec.write_request(api, version, 1, "raw", request)
        return codec.read_reply(api, version, self._standing.run(self._asked(frame)))

    async def _asked(self, frame: bytes) -> bytes:
        self._writer.write(frame)
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)
