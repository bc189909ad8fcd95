"""One real Apache Kafka node (KRaft) from Maven Central, started for a test and stopped after it.

Needs mvn and java. The jars are downloaded once, into ~/.cache/apache-kafka/VERSION: into a folder that is renamed
when it is complete, so that two runs at once, or a killed one, leave nothing incomplete.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.listening import Broker, free_port, stop, wait_until_ready

VERSION = os.environ.get("MOLDAU_KAFKA") or "4.3.1"
"""The release that a test gets that names none; `MOLDAU_KAFKA` makes it another one."""
VERSIONS = ("4.3.1", "4.4.0")
"""The releases that judge Moldau."""
ZOOKEEPER_VERSION = "3.9.1"
FOR_KAFKA = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
"""Settings that a single node needs for transactions."""
ARTIFACTS = ("kafka_2.13", "kafka-tools")
TEMPORARY = f"-Djava.io.tmpdir={tempfile.gettempdir()}"
"""Java unpacks libraries there, which stay when it is killed; by itself it knows no TMPDIR."""
JVM = (TEMPORARY, "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>moldau</groupId><artifactId>apache-kafka</artifactId><version>1</version><dependencies>{}</dependencies></project>
"""
DEPENDENCY = (
    "<dependency><groupId>org.apache.kafka</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


def class_path(version: str = VERSION, more: Sequence[str] = ()) -> str:
    """Kafka and its command-line tools, and other artifacts of its release, for `java -cp`."""
    folder = Path.home() / ".cache" / "apache-kafka" / "-".join((version, *more))
    if not (folder / "ready").exists():
        _download(folder, version, (*ARTIFACTS, *more))
    return f"{folder}/*"


def _download(folder: Path, version: str, artifacts: Sequence[str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{version}-", dir=folder.parent))
    (partial / "pom.xml").write_text(POM.format("".join(DEPENDENCY.format(name, version) for name in artifacts)))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
    subprocess.run(["mvn", "-q", "-B", "-f", partial / "pom.xml", *goal], check=True)
    (partial / "ready").touch()
    try:
        partial.rename(folder)
    except OSError:  # another run was faster, or a folder without `ready` is in the way
        if not (folder / "ready").exists():
            shutil.rmtree(folder)
            partial.rename(folder)
        shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def running(settings: Mapping[str, str], jvm: Sequence[str] = JVM, version: str = VERSION) -> Iterator[Broker]:
    """A Kafka with these settings on a free port, its data in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as name:
        with started(Path(name), settings, jvm, version) as (broker, _):
            yield broker


@contextlib.contextmanager
def running_cluster(
    settings: Mapping[str, str],
    jvm: Sequence[str] = JVM,
    nodes: int = 3,
    folder: str | None = None,
    version: str = VERSION,
    own: Mapping[int, Mapping[str, str]] | None = None,
) -> Iterator[list[tuple[int, int]]]:
    """That many Kafka nodes as one cluster, each broker and controller, their data in a temporary folder (below
    `folder`); the port and the process id of each. `own`: settings of single nodes, by their ids."""
    raft = {number: free_port() for number in range(1, nodes + 1)}
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in raft.items())
    with contextlib.ExitStack() as stack:
        data = tempfile.TemporaryDirectory(prefix="kafka-", dir=folder, ignore_cleanup_errors=True)
        root = stack.enter_context(data)
        homes = {number: Path(root, str(number)) for number in raft}
        begun = []
        for number, home in homes.items():
            home.mkdir()
            given = {**settings, "node.id": str(number), "controller.quorum.voters": voters}
            given |= (own or {}).get(number, {})
            begun.append(stack.enter_context(launched(home, given, jvm, raft[number], version)))
        for (broker, process), home in zip(begun, homes.values(), strict=True):
            wait_until_ready(broker, process, home / "kafka.log")
        yield [(broker.port, process.pid) for broker, process in begun]


@contextlib.contextmanager
def started(
    folder: Path, settings: Mapping[str, str], jvm: Sequence[str] = JVM, version: str = VERSION
) -> Iterator[tuple[Broker, subprocess.Popen[bytes]]]:
    """A Kafka whose data is in `folder/data`, made if it is not there, and its process."""
    with launched(folder, settings, jvm, free_port(), version) as (broker, process):
        yield wait_until_ready(broker, process, folder / "kafka.log"), process


@contextlib.contextmanager
def launched(
    folder: Path, settings: Mapping[str, str], jvm: Sequence[str], controller: int, version: str
) -> Iterator[tuple[Broker, subprocess.Popen[bytes]]]:
    """A Kafka that may not be ready yet, with its controller on that port. `listeners`, if they are given, have
    `{port}` and `{controller}` for the ports of the usual ones."""
    jars, port = class_path(version), free_port()
    properties = {
        "process.roles": "broker,controller",
        "controller.quorum.voters": f"{settings['node.id']}@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": f"{folder}/data",
        **settings,
    }
    properties["listeners"] = properties["listeners"].format(port=port, controller=controller)
    conf = folder / "server.properties"
    conf.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    java = ["java", *jvm, "-cp", jars]
    log = (folder / "kafka.log").open("a")
    with log:
        if not (folder / "data" / "meta.properties").exists():
            format_it = [*java, "kafka.tools.StorageTool", "format", "-t", "gZW1xyrxToKXBiAjZfFIVg", "-c", str(conf)]
            subprocess.run(format_it, check=True, stdout=log, stderr=log)
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(conf)], stdout=log, stderr=log, env={**os.environ, "KAFKA_OPTS": ""}
        )
        try:
            yield Broker("Kafka", "127.0.0.1", port), process
        finally:
            stop(process)


@contextlib.contextmanager
def with_zookeeper(folder: Path, connect: str, settings: Mapping[str, str]) -> Iterator[Broker]:
    """A Kafka of the last release that keeps its metadata in ZooKeeper, as broker 1 on a free port of 127.0.0.1."""
    port = free_port()
    given = {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "zookeeper.connect": connect,
        "log.dirs": f"{folder}/data",
        "controlled.shutdown.enable": "false",
        **settings,
    }
    (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    java = ["java", *JVM, "-cp", class_path(ZOOKEEPER_VERSION), "kafka.Kafka", str(folder / "server.properties")]
    with (folder / "kafka.log").open("a") as log:
        process = subprocess.Popen(java, stdout=log, stderr=log, env={**os.environ, "KAFKA_OPTS": ""})
        try:
            yield wait_until_ready(Broker("Kafka", "127.0.0.1", port), process, folder / "kafka.log")
        finally:
            stop(process)
