"""One ZooKeeper server: its folder, its process, and whether it serves.

server-1/zoo.cfg            its configuration, written at every start
server-1/log4j2.properties  its log's configuration, likewise
server-1/zookeeper.log      warnings and errors; rolled at 10 MB
server-1/stderr.txt         what Java said of its last start
server-1/data               its snapshots and its log of transactions, and `myid` in an ensemble
"""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moldau.errors import StorageError
from moldau.zookeeper.children import die_with_parent, stopped
from moldau.zookeeper.java import Java

TICK_MS = 500
"""Sessions end at the next tick after their time-out."""
SESSION_MS_MIN, SESSION_MS_MAX = 1_000, 120_000
STOP_S = 10.0
ANSWER_S = 5.0
LOG = "zookeeper.log"
_CONFIGURATION = f"""\
tickTime={TICK_MS}
initLimit=40
syncLimit=20
minSessionTimeout={SESSION_MS_MIN}
maxSessionTimeout={SESSION_MS_MAX}
maxClientCnxns=0
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
admin.enableServer=false
4lw.commands.whitelist=srvr
"""
_LOG = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""


class ServerAddress(NamedTuple):
    """Where a server listens. `quorum` and `election` are ports for the other servers; 0 if there are none."""

    host: str
    port: int
    quorum: int = 0
    election: int = 0

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PortTaken(StorageError):
    """A server has ended because another process listens at one of its ports."""


class ZooKeeperServer:
    """`number` is its place among `addresses`, from 1 on."""

    def __init__(self, java: Java, folder: Path, number: int, addresses: Sequence[ServerAddress]):
        self.folder = folder / f"server-{number}"
        self.place = addresses[number - 1]
        self._java = java
        self._number = number
        self._addresses = addresses
        self._process: asyncio.subprocess.Process | None = None
        self._logged_bytes = 0
        """How long the log was at the last start."""

    async def start(self) -> None:
        """Start the process. Raises `OSError`."""
        self._write_files()
        log = self.folder / LOG
        self._logged_bytes = log.stat().st_size if log.exists() else 0
        properties = self.folder / "log4j2.properties"
        with (self.folder / "stderr.txt").open("wb") as stderr:
            self._process = await asyncio.create_subprocess_exec(
                self._java.program,
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                f"-Dlog4j2.configurationFile={properties}",
                "-cp",
                self._java.classpath,
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                str(self.folder / "zoo.cfg"),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C is for us alone
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
            )

    def _write_files(self) -> None:
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        lines = [f"dataDir={data}", f"clientPort={self.place.port}"]
        if self.place.host not in ("", "0.0.0.0", "::"):
            lines.append(f"clientPortAddress={self.place.host}")
        if len(self._addresses) > 1:
            (data / "myid").write_text(f"{self._number}\n")
            for number, place in enumerate(self._addresses, 1):
                lines.append(f"server.{number}=127.0.0.1:{place.quorum}:{place.election}")
        (self.folder / "zoo.cfg").write_text(_CONFIGURATION + "\n".join(lines) + "\n")
        (self.folder / "log4j2.properties").write_text(_LOG.format(path=self.folder / LOG))

    @property
    def has_ended(self) -> bool:
        """Whether the process was started and has ended."""
        return self._process is not None and self._process.returncode is not None

    async def ended(self) -> None:
        """Wait until the process has ended."""
        assert self._process is not None
        await self._process.wait()

    async def mode(self) -> str:
        """`standalone`, `leader`, `follower`; empty if it does not serve."""
        host = "localhost" if self.place.host in ("", "0.0.0.0", "::") else self.place.host
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                reader, writer = await asyncio.open_connection(host, self.place.port)
                try:
                    writer.write(b"srvr")
                    said = (await reader.read()).decode(errors="replace")
                finally:
                    writer.close()
                return said.partition("Mode: ")[2].partition("\n")[0]
        return ""

    def reason(self) -> StorageError:
        """Why the process has ended, as far as it said so."""
        lines: list[str] = []
        for name, start in (("stderr.txt", 0), (LOG, self._logged_bytes)):
            with contextlib.suppress(OSError):
                lines += (self.folder / name).read_bytes()[start:].decode(errors="replace").splitlines()
        if any("java.net.BindException" in line for line in lines):
            return PortTaken(f"the ZooKeeper at {self.place} has ended: another process uses one of its ports")
        errors = [line for line in lines if "ERROR" in line or line.startswith("Error")]
        last = (errors or lines or ["it said nothing"])[-1].strip()
        return StorageError(f"the ZooKeeper at {self.place} has ended: {last} (its log is in {self.folder})")

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL if that is not enough."""
        await stopped(self._process, STOP_S)
