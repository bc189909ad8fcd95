"""1,500 connections that each send most of a frame of 1 MB: the memory they take is bounded, and others are served."""

import contextlib
import resource
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.half_sent import HalfSent
from moldau.protocol import codec
from moldau.protocol.apis import PRODUCE
from moldau.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.differential.batches import NOW, batch
from tests.end_to_end.raw import Raw
from tests.end_to_end.test_abuse import resident

MIB = 1 << 20
CONNECTIONS = 1500
BOUND = 64 * MIB
EACH_CONNECTION = 24 << 10
"""The memory that it may hold in any case, and that of a connection itself."""
KEPT_BY_THE_ALLOCATOR = 64 * MIB


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    ours = Broker(tmp_path, {"socket.request.max.bytes": str(8 * MIB), "queued.max.request.bytes": str(BOUND)})
    ours.start()
    yield ours
    ours.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Hostile(threading.Thread):
    """Sends what the broker takes until `ended`. `overcome` is set once the broker has closed all connections whose
    frames do not fit into the bound."""

    def __init__(self, address: str):
        super().__init__(daemon=True)
        self.closed = 0
        self.ended = threading.Event()
        self.overcome = threading.Event()
        self._address = address

    def run(self) -> None:
        with HalfSent(self._address, CONNECTIONS, MIB, MIB - 100_000) as peers:
            while not self.ended.is_set():
                peers.step(0.05)
                self.closed = peers.closed
                if self.closed >= CONNECTIONS - 2 * BOUND // MIB:
                    self.overcome.set()


@pytest.mark.timeout(300)
def test_memory_is_bounded_and_others_write_all_the_while(broker: Broker):
    with Raw(broker.address, timeout_s=120) as raw:
        raw.create_topic("good")
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MIB)  # it hands over a request at once
        records = batch(bytes(900_000), timestamp=NOW)
        for _ in range(10):
            assert raw.produce("good", records)[0] == 0
        before, most = resident(broker.pid), 0
        hostile = Hostile(broker.address)
        hostile.start()
        try:
            written = 0
            while not hostile.overcome.is_set() or written < 20:
                assert hostile.is_alive()
                assert raw.produce("good", records)[0] == 0, "it brings what it began"
                written += 1
                most = max(most, resident(broker.pid) - before)
        finally:
            hostile.ended.set()
            hostile.join()
    assert most <= BOUND + CONNECTIONS * EACH_CONNECTION + KEPT_BY_THE_ALLOCATOR, f"{most / MIB:.0f} MiB"
    assert "the slowest first: memory for unfinished requests ran out" in broker.log()


@pytest.mark.timeout(300)
def test_producers_on_slow_lines_are_left_alone(broker: Broker):
    """Forty batches of 1 MB on their way at once take less than the bound, however much is served meanwhile."""
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(Raw(broker.address))
        peers = [stack.enter_context(Raw(broker.address)) for _ in range(40)]
        peers[0].create_topic("good")
        data = PartitionProduceData(index=0, records=batch(bytes(900_000), timestamp=NOW))
        topic = TopicProduceData(name="good", partition_data=[data])
        request = ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[topic])
        frame = codec.write_request(PRODUCE, 9, 1, "slow", request)
        for peer in peers:
            peer.socket.sendall(frame[: len(frame) // 2])
        for _ in range(300):
            other.produce("good", batch(b"x", timestamp=NOW))
        for peer in peers:
            peer.socket.sendall(frame[len(frame) // 2 :])
        for peer in peers:
            assert peer.receive()
    assert "memory for unfinished" not in broker.log()
