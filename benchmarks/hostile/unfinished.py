"""What 1,500 connections cost that each send most of a frame of 1 MB and then nothing more.

Meanwhile a client writes batches of 1 MB, one after the other.
"""

import contextlib
import resource
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from benchmarks import frames
from benchmarks.broker_load import Case, Wire, new_topic
from benchmarks.startup import resident_mb
from harness.brokers import Broker

CONNECTIONS = 1500
FRAME_BYTES = 1 << 20
SENT_BYTES = 1_000_000
QUIET_S = 3.0
"""The peers have sent all that the broker takes when nothing has moved for so long."""


def allow_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def half_send(port: int, stack: contextlib.ExitStack) -> int:
    """Open the connections and send; returns how many the broker has closed meanwhile."""
    selector = stack.enter_context(selectors.DefaultSelector())
    data = memoryview(struct.pack(">i", FRAME_BYTES) + bytes(SENT_BYTES))
    closed, moved_at = 0, time.perf_counter()
    left: dict[socket.socket, memoryview] = {}
    for _ in range(CONNECTIONS):
        peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        peer.setblocking(False)
        left[peer] = data
        selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE)
    while time.perf_counter() - moved_at < QUIET_S:
        for key, ready in selector.select(0.2):
            peer = key.fileobj  # type: ignore[assignment]
            moved_at = time.perf_counter()
            try:
                if ready & selectors.EVENT_READ and not peer.recv(1):
                    raise ConnectionError
                if ready & selectors.EVENT_WRITE:
                    left[peer] = left[peer][peer.send(left[peer]) :]
                if not left[peer]:
                    selector.modify(peer, selectors.EVENT_READ)
            except OSError:
                selector.unregister(peer)
                closed += 1
    return closed


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
    with start() as broker, contextlib.ExitStack() as stack:
        port = int(broker.address.rpartition(":")[2])
        writer = Writer(port)
        writer.start()
        closed = half_send(port, stack)
        memory_mb = resident_mb(broker.pid)
        took = writer.end()
        yield Case(f"resident with {CONNECTIONS:,} half-sent frames of 1 MB", memory_mb, "MB")
        yield Case("connections closed of those", closed, "connections")
        yield Case("p99 of writing 1 MB meanwhile", took[int(len(took) * 0.99)], "ms")
