"""The two brokers of a run and what is the same for both: settings, waiting until one answers, stopping it.

`SETTINGS` go to both. Our broker is started as a user starts it: the command, a free port, a temporary folder.
"""

import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from moldau.protocol.apis import METADATA
from moldau.protocol.codec import read_reply, write_request
from tests.brokers import Broker as Process
from tests.patience import Deadline, stretched

START_SECONDS = 90.0
SETTINGS = {
    "node.id": "1",
    "num.partitions": "2",
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "2000",
    "group.max.size": "3",
    "log.retention.check.interval.ms": "3600000",
    "log.initial.task.delay.ms": "3600000",
}
ONE_AT_A_TIME = {"num.network.threads": "1", "num.io.threads": "1"}
"""Kafka takes requests in the order in which they come, as ours does: two members' words are never turned round."""
FOR_KAFKA = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}


@dataclass(frozen=True)
class Broker:
    name: str
    host: str
    port: int


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def ask_metadata(broker: Broker) -> int:
    """How many brokers its metadata names."""
    with socket.create_connection((broker.host, broker.port), 5) as connection:
        connection.sendall(write_request(METADATA, 1, 1, "waiting", METADATA.request(topics=[])))
        stream = connection.makefile("rb")
        size = int.from_bytes(stream.read(4), "big")
        return len(read_reply(METADATA, 1, stream.read(size)).brokers)


def wait_until_ready(broker: Broker, process: subprocess.Popen[str] | subprocess.Popen[bytes], log: Path) -> Broker:
    """Wait until the broker names itself in its metadata."""
    deadline = Deadline(START_SECONDS)
    while not deadline.passed:
        if process.poll() is not None:
            raise RuntimeError(f"{broker.name} stopped with code {process.returncode}:\n{log.read_text()[-4000:]}")
        with contextlib.suppress(OSError, ValueError):
            if ask_metadata(broker):
                return broker
        time.sleep(0.05)
    raise RuntimeError(f"{broker.name} did not answer within {START_SECONDS} s:\n{log.read_text()[-4000:]}")


def stop(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(stretched(20))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(stretched(20))


@contextlib.contextmanager
def running_moldau(settings: Mapping[str, str]) -> Iterator[Broker]:
    """Our broker with these settings."""
    with tempfile.TemporaryDirectory(prefix="moldau-", ignore_cleanup_errors=True) as name:
        process = Process(Path(name), dict(settings))
        try:
            process.start()
            host, _, port = process.address.rpartition(":")
            yield Broker("Moldau", host.strip("[]"), int(port))
            process.stop()
        finally:
            process.kill()
            if text := process.log():
                print(f"--- what moldau wrote to standard error ---\n{text}")
