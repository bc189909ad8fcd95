"""Three brokers of Apache Kafka, for the script."""

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import apache_kafka
from tests.clients.cluster_tools.script import FOLDERS, SETTINGS

VERSION = "4.3.1"


class KafkasBrokers:
    """`nodes`: the port and the process id of each."""

    def __init__(self, root: Path, nodes: list[tuple[int, int]]):
        self.root = root
        self._nodes = dict(enumerate(nodes, 1))

    @property
    def running(self) -> list[int]:
        return list(self._nodes)

    @property
    def address(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port, _ in self._nodes.values())

    def kill(self, broker: int) -> None:
        _, process = self._nodes.pop(broker)
        os.kill(process, signal.SIGKILL)


@contextlib.contextmanager
def running() -> Iterator[KafkasBrokers]:
    with tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        own = {n: {"log.dirs": ",".join(str(root / str(n) / one) for one in FOLDERS)} for n in (1, 2, 3)}
        with apache_kafka.running_cluster(SETTINGS, version=VERSION, own=own) as nodes:
            brokers = KafkasBrokers(root, nodes)
            try:
                yield brokers
            finally:  # what is left of their quorum could not stop in peace
                for left in [*brokers.running]:
                    brokers.kill(left)
