"""Apache Kafka's command-line tools: their classes, and a JVM that runs many of them; to start one costs a second."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.patience import stretched
from harness.tiers import LONG
from tests.clients.test_java_client import QUICK_START
from tests.environments import java_class, kafka_jars
from tests.versions import KAFKA

TOPICS = "org.apache.kafka.tools.TopicCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PRODUCER_PERF = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERF = "org.apache.kafka.tools.ConsumerPerformance"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
CLIENT_METRICS = "org.apache.kafka.tools.ClientMetricsCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
IN_4_3 = {CONFIGS: "kafka.admin.ConfigCommand"}
"""Classes that had other names in Kafka 4.3."""
ALONE = (CONSOLE_CONSUMER,)
"""Tools that count in static fields: they run once in a JVM."""
SECONDS_MAX = 60
SOURCE = Path(__file__).parent / "ManyTools.java"


class Tools:
    """The tools of one release. The long tier starts each as its users do; else they share a JVM, except those that
    must be `ALONE`. Use it with `with`; `folder` is for their input."""

    def __init__(self, folder: Path, version: str = KAFKA):
        self._folder = folder
        self._version = version
        self._java: subprocess.Popen[str] | None = None

    def run(self, name: str, *options: str, text: str = "", code: int = 0) -> str:
        """What the tool printed; it must end with `code`. Its errors are behind that if it is not 0."""
        called = self._name(name)
        ended, said = (
            self._alone(called, options, text) if LONG or name in ALONE else self._shared(called, options, text)
        )
        assert ended == code, f"{name} {' '.join(options)} ended with {ended}: {said}"
        return said

    def _name(self, name: str) -> str:
        return IN_4_3.get(name, name) if self._version.startswith("4.3.") else name

    def _alone(self, name: str, options: Sequence[str], text: str) -> tuple[int, str]:
        done = subprocess.run(
            ["java", *QUICK_START, "-cp", kafka_jars(self._version), name, *options],
            input=text,
            capture_output=True,
            text=True,
            timeout=stretched(SECONDS_MAX),
        )
        return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def _shared(self, name: str, options: Sequence[str], text: str) -> tuple[int, str]:
        java = self._java = self._java or subprocess.Popen(
            ["java", *QUICK_START, "-cp", java_class(SOURCE, kafka_jars(self._version)), "ManyTools"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert java.stdin is not None and java.stdout is not None
        given = self._folder / "input"
        given.write_text(text)
        java.stdin.write("\x1f".join([f"<{given}", name, *options]) + "\n")
        java.stdin.flush()
        printed: list[str] = []
        for line in java.stdout:
            if line.startswith("exit code "):
                return int(line.split()[2]), "".join(printed).removesuffix("\n")
            printed.append(line)
        raise AssertionError("".join(printed))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._java:
            with self._java:
                self._java.kill()
