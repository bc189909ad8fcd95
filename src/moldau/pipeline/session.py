"""Starts Spark for the pipeline: checks Java, sets the workers' Python, and keeps Spark's output off the terminal.

A worker with another Python than the driver's fails with only DATA_SOURCE_NOT_FOUND, so `PYSPARK_PYTHON` is always set
here; on a cluster, what the user set stays. A session that is already running is used as it is.
"""

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from moldau.errors import MoldauError
from moldau.names import how_to_install
from moldau.pipeline import driver_jvm, worker_daemon
from moldau.pipeline.scratch import scratch_folder
from moldau.pipeline.spark_home import home_without_archives

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN = 17
TASK_ATTEMPTS_MAX = 3
HOME_OF_DRIVER_ONLY = ("local", "spark://")
"""Masters whose executors do not use the driver's SPARK_HOME; on YARN it is where the executors' PySpark comes from."""
MASTERS = r"local(\[[0-9*]+(,[0-9]+)?])?$|spark://.|k8s://.|yarn$"
INSTALL_JAVA = "install a JRE, for example with 'apt-get install openjdk-17-jre-headless' or 'brew install openjdk@17'"
LOG_SETTINGS = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


SOCKET_NAME = f".{'0' * 36}.sock"
SOCKET_PATH_MAX = 103
"""Bytes of the path of a Unix socket: 107 on Linux, 103 on macOS."""


class SparkMissing(MoldauError):
    """Spark cannot start on this machine; the text says what to install."""


def check_java() -> int:
    """The version of the Java that Spark will use. Raises `SparkMissing` if no Java is found or it is too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    try:
        command = [java or "java", "-version"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        raise SparkMissing(f"Spark needs Java {JAVA_MIN} or newer and none was found: {INSTALL_JAVA}.") from None
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    version = int(match[1]) if match else 0
    if version < JAVA_MIN:
        raise SparkMissing(f"Spark needs Java {JAVA_MIN} or newer and {java} is Java {version}: {INSTALL_JAVA}.")
    return version


def start_session(name: str, master: str = "local[*]", scratch: Path | None = None, **settings: str) -> "SparkSession":
    """A Spark session for `master`; `settings` are Spark's, with dots as underscores twice (`spark__ui__enabled`)."""
    if not re.match(MASTERS, master):
        raise SparkFailed(f"{master!r} is not a Spark master: use local[*], local[4], spark://HOST:PORT or yarn.")
    check_java()
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SparkMissing(f"The pipeline needs PySpark: {how_to_install('spark')}.") from None
    for logger_name in (None, "py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(logger_name).addFilter(_not_of_the_gateway)
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    set_environment(master.startswith("local"))
    named = {"spark.app.name": name, "spark.master": with_retries(master), **_settings(master, scratch)}
    named |= {setting.replace("__", "."): value for setting, value in settings.items()}
    builder = SparkSession.builder.config(map=dict(named))
    with errors_in_a_sentence():
        if not driver_jvm.is_running():
            home = _home(scratch) if master.startswith(HOME_OF_DRIVER_ONLY) else contextlib.nullcontext()
            with _signals_wait(), _log_of(scratch) as log, home:
                driver_jvm.launch(named, log)
        session: SparkSession = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        driver_jvm.silence_accumulators(session)
    return session


@contextlib.contextmanager
def own_session(
    name: str, master: str = "local[*]", scratch: Path | None = None, **settings: str
) -> "Iterator[SparkSession]":
    """As `start_session`, for a command: Spark, its JVM and its files end with the block, however that ends. The files
    are below `scratch`, or in a folder that is removed."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(scratch_folder()) if scratch is None else scratch
        if not driver_jvm.is_running():
            stack.callback(driver_jvm.end)
        with ctrl_c_stays():
            session = start_session(name, master, folder, **settings)
        if scratch is None:
            driver_jvm.removes_at_its_end(folder)
        stack.callback(driver_jvm.stop, session)
        yield session


@contextlib.contextmanager
def ctrl_c_stays() -> Iterator[None]:
    """Keep who hears of Ctrl-C. Spark takes it when a session starts, and cancels its jobs: by a call of the JVM in the
    middle of another call, and those jobs end with the block of `own_session`."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def set_environment(is_local: bool) -> None:
    """Set what Spark's processes inherit. On a cluster the workers' Python may be elsewhere, and the driver needs an
    address that the executors can reach."""
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.pop("PYSPARK_PYTHON", None)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = python_path()


@contextlib.contextmanager
def _home(scratch: Path | None) -> Iterator[None]:
    """Start the JVM in this block with a SPARK_HOME of our own, unless the user has set one."""
    home = home_without_archives(scratch / "spark-home") if scratch and "SPARK_HOME" not in os.environ else None
    if home is None:
        yield
        return
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _not_of_the_gateway(record: logging.LogRecord) -> bool:
    """Log filter: drops the stack traces that Py4J logs on the root logger, because it also raises the errors, and on
    its own when it closes a connection that a signal or the JVM has broken."""
    return record.module not in ("java_gateway", "clientserver")


class SparkFailed(MoldauError):
    """Spark failed; the text is the first line of its error."""


@contextlib.contextmanager
def errors_in_a_sentence() -> Iterator[None]:
    """Turn an exception of Spark or its gateway, with pages of stack traces, into one line."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except Py4JJavaError as error:
        raise SparkFailed(f"Spark failed: {_first_line(str(error.java_exception))}") from error
    except (Py4JError, PySparkException) as error:
        raise SparkFailed(f"Spark failed: {_first_line(str(error))}") from error
    except ConnectionError as error:
        raise SparkFailed("Spark failed: its JVM has ended") from error


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "it did not say why")[:300]


def python_path() -> str:
    """PYTHONPATH for child processes, so that they import this package from the same place."""
    folders = [str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return os.pathsep.join(dict.fromkeys(folder for folder in folders if folder))


def with_retries(master: str) -> str:
    """The master with retries: by default a local master runs a task only once; ours retries it, as a real cluster."""
    local = re.fullmatch(r"local(?:\[(\d+|\*)])?", master.strip())
    return f"local[{local[1] or 1},{TASK_ATTEMPTS_MAX}]" if local else master


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block has ended: a JVM that is interrupted while it starts never exits."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _: waiting.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])


@contextlib.contextmanager
def _log_of(scratch: Path | None) -> "Iterator[IO[bytes] | None]":
    """Where the standard error of the JVM that starts in this block goes, to keep its warnings off the terminal; None:
    where ours goes. PySpark's own temporary folder is in `scratch`, too, where it is removed if we are killed."""
    if scratch is None:
        yield None
        return
    scratch.mkdir(parents=True, exist_ok=True)
    before, tempfile.tempdir = tempfile.tempdir, str(scratch)
    try:
        with (scratch / "spark.log").open("ab") as log:
            yield log
    finally:
        tempfile.tempdir = before


def _settings(master: str, scratch: Path | None) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.shuffle.partitions": "2" if master.startswith("local") else "32",
        "spark.executorEnv.PYTHONPATH": python_path(),
        "spark.python.daemon.module": worker_daemon.__name__,
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
        quiet = scratch / "log4j2.properties"
        quiet.write_text(LOG_SETTINGS)
        settings |= {
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet.as_uri()}",
            "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
            "spark.local.dir": str(scratch / "spark-local"),
        }
        if master.startswith("local"):
            settings |= _sockets_in(scratch)
    return settings


def _sockets_in(folder: Path) -> dict[str, str]:
    """Have Spark (4.1 or newer) exchange rows with Python by Unix sockets in a folder that other users cannot enter,
    unless their paths are too long. At a TCP port, the JVM takes the first four bytes of any client for a length, and
    fails with "Java heap space" if they are a great one."""
    if len(os.fsencode(folder / SOCKET_NAME)) > SOCKET_PATH_MAX:
        return {}
    folder.chmod(0o700)
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(folder)}
