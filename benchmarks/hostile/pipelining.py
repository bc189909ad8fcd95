"""How long one synchronous client waits while others pipeline small requests without end.

The clients that pipeline are a process of their own, which sends whatever the broker takes and reads every reply. The
synchronous one, whose times are shown, asks for ApiVersions, the next as soon as the last is answered. A Produce is one
record of 100 bytes.
"""

import contextlib
import multiprocessing
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from benchmarks import frames
from benchmarks.broker_load import Case, Wire, new_topic
from harness.brokers import Broker
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, HEARTBEAT
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest

CASE_S = 3.0
SETTLING_S = 1.0
AT_ONCE = 200
"""Frames of one call of `send`."""
RATE_S = 2.0
IN_FLIGHT = 256


def flood(port: int, connections: int, frame: bytes) -> None:
    """Send without end on so many connections, and read what comes back."""
    some, scratch = frame * AT_ONCE, bytearray(1 << 20)
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        left: dict[socket.socket, memoryview] = {}
        for _ in range(connections):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            peer.setblocking(False)
            selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE)
            left[peer] = memoryview(some)
        while True:
            for key, ready in selector.select():
                peer = key.fileobj  # type: ignore[assignment]
                with contextlib.suppress(BlockingIOError):
                    if ready & selectors.EVENT_READ and not peer.recv_into(scratch):
                        return
                    if ready & selectors.EVENT_WRITE:
                        left[peer] = left[peer][peer.send(left[peer]) :] or memoryview(some)


@contextlib.contextmanager
def flooding(port: int, connections: int, frame: bytes) -> Iterator[None]:
    """Others pipeline this frame meanwhile."""
    process = multiprocessing.get_context("spawn").Process(target=flood, args=(port, connections, frame), daemon=True)
    process.start()
    try:
        time.sleep(SETTLING_S)
        assert process.is_alive(), "the broker closed the connections of those that pipeline"
        yield
    finally:
        process.kill()
        process.join()


def latencies_ms(port: int, seconds: float) -> list[float]:
    """How long each of the requests of a synchronous client took, sorted."""
    frame = codec.write_request(API_VERSIONS, 0, 1, frames.CLIENT, ApiVersionsRequest())
    took: list[float] = []
    with Wire(port) as wire:
        ends_at = time.perf_counter() + seconds
        while not took or time.perf_counter() < ends_at:
            began = time.perf_counter()
            wire.send(frame)
            wire.reply()
            took.append((time.perf_counter() - began) * 1000)
    return sorted(took)


def requests_a_second(port: int, topic: str) -> float:
    """What one connection that pipelines one-record Produce reaches when it is alone."""
    frame = frames.produce(topic, 0, frames.batch(1, 100))
    count = 0
    with Wire(port) as wire:
        wire.send(frame * IN_FLIGHT)
        began = time.perf_counter()
        while time.perf_counter() - began < RATE_S:
            for _ in range(IN_FLIGHT // 2):
                wire.reply()
            count += IN_FLIGHT // 2
            wire.send(frame * (IN_FLIGHT // 2))
        return count / (time.perf_counter() - began)


def cases(start: Callable[[], AbstractContextManager[Broker]]) -> Iterator[Case]:
    with start() as broker:
        port = int(broker.address.rpartition(":")[2])
        topic = new_topic(port)
        heartbeat = HeartbeatRequest(group_id="hostile", generation_id=1, member_id="nobody")
        kinds = {
            "Heartbeat": codec.write_request(HEARTBEAT, 3, 1, frames.CLIENT, heartbeat),
            "Produce": frames.produce(topic, 0, frames.batch(1, 100)),
        }
        yield Case("one pipelining Produce alone", requests_a_second(port, topic), "requests/s")
        for kind, frame in kinds.items():
            for connections in (1, 20):
                with flooding(port, connections, frame):
                    took = latencies_ms(port, CASE_S)
                beside = f"beside {connections} pipelining {kind}"
                yield Case(f"p50 {beside}", took[len(took) // 2], "ms")
                yield Case(f"p99 {beside}", took[int(len(took) * 0.99)], "ms")
