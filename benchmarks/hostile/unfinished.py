"""What 1,500 connections cost that each send most of a frame of 1 MB and then nothing more.

Meanwhile a client writes batches of 1 MB, one after the other.
"""

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from benchmarks import frames
from benchmarks.broker_load import Case, Wire, new_topic
from benchmarks.startup import resident_mb
from harness.brokers import Broker
from harness.half_sent import HalfSent

CONNECTIONS = 1500
FRAME_BYTES = 1 << 20
SENT_BYTES = 1_000_000
QUIET_S = 3.0
"""The peers have sent all that the broker takes when nothing has moved for this time."""


def allow_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def send_all_that_is_taken(peers: HalfSent) -> None:
    """Returns once nothing has moved for `QUIET_S`."""
    moved_at = time.perf_counter()
    while time.perf_counter() - moved_at < QUIET_S:
        if peers.step(0.2):
            moved_at = time.perf_counter()


class Writer(threading.Thread):
    """Writes batches of 1 MB, and how long each took."""

    def __init__(self, port: int):
        super().__init__(daemon=True)
        self.took_ms: list[float] = []
        self._port = port
        self._frame = frames.produce(new_topic(port), 0, frames.batch(5000, 190))
        self._done = threading.Event()

    def run(self) -> None:
        with Wire(self._port) as wire:
            while not self._done.wait(0.01):
                began = time.perf_counter()
                wire.send(self._frame)
                wire.reply()
                self.took_ms.append((time.perf_counter() - began) * 1000)

    def end(self) -> list[float]:
        self._done.set()
        self.join()
        return sorted(self.took_ms)


def cases(start: Callable[[], AbstractContextManager[Broker]]) -> Iterator[Case]:
    allow_descriptors()
    with start() as broker:
        writer = Writer(int(broker.address.rpartition(":")[2]))
        writer.start()
        with HalfSent(broker.address, CONNECTIONS, FRAME_BYTES, SENT_BYTES) as peers:
            send_all_that_is_taken(peers)
            memory_mb = resident_mb(broker.pid)
            took = writer.end()
        yield Case(f"resident with {CONNECTIONS:,} half-sent frames of 1 MB", memory_mb, "MB")
        yield Case("connections closed of those", peers.closed, "connections")
        yield Case("p99 of writing 1 MB meanwhile", took[int(len(took) * 0.99)], "ms")
