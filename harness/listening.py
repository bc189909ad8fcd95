"""A broker that listens at an address: a free port for it, waiting until it answers, stopping its process."""

import contextlib
import random
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from harness.patience import Deadline, stretched
from moldau.protocol.apis import METADATA
from moldau.protocol.codec import read_reply, write_request

START_SECONDS = 90.0
NEVER_GIVEN = (20_000, 32_000)
"""Linux gives 32,768 and above, macOS 49,152 and above, and well-known programs listen below."""


@dataclass(frozen=True)
class Broker:
    name: str
    host: str
    port: int


def free_port() -> int:
    """A port at which nobody listens. It is none of those that the kernel gives to connections, which would take it
    before a process that needs seconds to start."""
    while True:
        port = random.randrange(*NEVER_GIVEN)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            return port


def ask_metadata(broker: Broker) -> int:
    """The number of brokers in its metadata."""
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
