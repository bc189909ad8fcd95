"""Environments of other projects' programs, each made once from exact pins by the package manager it belongs to.

They lie below `~/.cache/moldau` (or `$MOLDAU_CACHE`), one folder a pin, and are complete if they exist: a folder is
filled beside its place and renamed. What cannot be made is an error, never a skipped test. Safe for several processes
at once.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness import apache_kafka

NODE_VERSION = "22.23.3"
ECJ = "org.eclipse.jdt:ecj:3.41.0"
INSTALL_SECONDS_MAX = 420


class CannotMake(RuntimeError):
    """A package manager is missing or failed: says which and what it said."""


def cache() -> Path:
    return Path(os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau")


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold a lock of that name among all processes."""
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name, filled by `make` if it is not there yet."""
    folder = cache() / name
    with alone(name):
        if not folder.exists():
            unfinished = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=cache()))
            try:
                make(unfinished)
                unfinished.rename(folder)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def run(command: Sequence[str | Path], folder: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX
        )
    except subprocess.TimeoutExpired as error:
        raise CannotMake(f"{command[0]} did not end within {INSTALL_SECONDS_MAX} s") from error
    if done.returncode:
        raise CannotMake(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def program(name: str, debian_package: str) -> str:
    """The path of an installed program; root installs the Debian package that has it."""
    with alone("apt"):
        if not shutil.which(name) and shutil.which("apt-get") and os.geteuid() == 0:
            run(["apt-get", "-qq", "update"])
            run(["apt-get", "-qq", "-y", "--no-install-recommends", "install", debian_package])
    found = shutil.which(name)
    if not found:
        raise CannotMake(f"{name} is not installed: install it, for example with 'apt-get install {debian_package}'")
    return found


def name_of(pins: Sequence[str]) -> str:
    """A folder's name that says the first pin and tells all of them apart."""
    digest = hashlib.sha256("\n".join(pins).encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', pins[0]).strip('-')}-{digest}"


def python_with(*pins: str) -> Path:
    """A Python interpreter that has these packages and nothing of ours."""

    def make(folder: Path) -> None:
        run([sys.executable, "-m", "venv", "--without-pip", folder])
        pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", *pins])

    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return made_once(name_of([*pins, version]), make) / "bin" / "python"


def node_with(*pins: str) -> tuple[Path, Path]:
    """A Node of a pinned version, which npm brings as well, and the folder of modules with these packages."""

    def make(folder: Path) -> None:
        npm = program("npm", "npm")
        (folder / "package.json").write_text('{"private": true}')
        run([npm, "install", "--silent", "--no-fund", "--no-audit", f"node@{NODE_VERSION}", *pins], folder)

    modules = made_once(name_of([*pins, NODE_VERSION]), make) / "node_modules"
    return modules / "node" / "bin" / "node", modules


def jars(*coordinates: str) -> str:
    """The class path of Maven artifacts (`group:artifact:version`) with all they need."""

    def make(folder: Path) -> None:
        maven = program("mvn", "maven")
        dependencies = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
            for group, artifact, version in (coordinate.split(":") for coordinate in coordinates)
        )
        (folder / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>none</groupId>'
            f"<artifactId>none</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>"
        )
        copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        run([maven, "-q", "-B", "-f", folder / "pom.xml", copy, f"-DoutputDirectory={folder}"])

    return f"{made_once(name_of(coordinates), make)}/*"


def kafka_jars(version: str = apache_kafka.VERSION) -> str:
    """The class path of Apache Kafka: broker, Java clients and its own command-line tools."""
    program("mvn", "maven")
    return apache_kafka.class_path(version)


def java_class(source: Path, class_path: str) -> str:
    """The class path of a Java file compiled, by a compiler from Maven: a JRE is all that is needed to run it."""
    compiler = jars(ECJ)

    def make(folder: Path) -> None:
        main = "org.eclipse.jdt.internal.compiler.batch.Main"
        run(["java", "-cp", compiler, main, "-17", "-nowarn", "-cp", expanded(class_path), "-d", folder, source])

    digest = hashlib.sha256(source.read_bytes() + class_path.encode()).hexdigest()[:12]
    return f"{made_once(f'java-{source.stem}-{digest}', make)}:{class_path}"


def expanded(class_path: str) -> str:
    """Every jar by name, for a compiler that knows no wildcard."""
    return ":".join(str(jar) for jar in sorted(Path(class_path.removesuffix("/*")).glob("*.jar")))


def go_program(folder: Path) -> Path:
    """The program that Go makes of a module whose `go.mod` and `go.sum` pin what it needs."""
    sources = sorted(folder.iterdir())

    def make(made: Path) -> None:
        run([program("go", "golang-go"), "build", "-mod=readonly", "-o", made / folder.name, "."], folder)

    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    return made_once(f"go-{folder.name}-{digest}", make) / folder.name
