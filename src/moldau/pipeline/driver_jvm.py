"""The JVM of a Spark driver: a signal to the whole process group does not end it, the end of the command does.

A terminal sends Ctrl-C, and a supervisor SIGTERM, to every process of a command. A JVM that obeys takes Spark away from
a load that is about to commit. So the JVM has a process group of its own and ignores SIGTERM, which systemd and
container runtimes send to all processes of a unit. It ends when its standard input does: also if the driver is killed.
"""

import contextlib
import logging
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

END_S_MAX = 10.0
logger = logging.getLogger(__name__)


def is_running() -> bool:
    """Whether this process has a JVM already, which a session then uses as it is."""
    from pyspark import SparkContext

    return bool(SparkContext._gateway)


def launch(settings: Mapping[str, str], stderr: IO[bytes] | None) -> None:
    """Start the JVM with these settings of Spark; its standard error goes to the file, or where ours goes. Raises
    PySparkException."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    gateway: Any = launch_gateway(conf, {"process_group": 0, "stderr": stderr})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)
    signals: Any = gateway.jvm.sun.misc
    with contextlib.suppress(Exception):  # a Java without the module jdk.unsupported
        signals.Signal.handle(signals.Signal("TERM"), signals.SignalHandler.SIG_IGN)


def silence_accumulators(session: "SparkSession") -> None:
    """Print no stack trace in the thread that receives accumulators when the JVM dies: the job's error says it."""
    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None


def removes_at_its_end(folder: Path) -> None:
    """Have the JVM remove a folder when it ends: of a command that was killed it is the last process."""
    from pyspark import SparkContext

    jvm: Any = SparkContext._jvm
    jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(str(folder)))


def stop(session: "SparkSession") -> None:
    """Stop the session, and do not complain if its JVM is dead."""
    from py4j.protocol import Py4JError

    try:
        session.stop()
    except (Py4JError, OSError) as error:
        logger.debug("Spark was dead before it was stopped: %s", error)


def end() -> None:
    """End the JVM, and wait until it has ended; kill it if that takes longer than `END_S_MAX`."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None or gateway.proc is None:
        return
    process: subprocess.Popen[bytes] = gateway.proc
    try:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S_MAX)
    finally:  # also after a signal that does not want to wait
        process.kill()
        process.wait()
