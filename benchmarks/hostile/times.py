"""How long one synchronous client waits while another asks ListOffsets for times in large compressed batches.

The request comes from a process of its own. The synchronous client, whose longest time is shown, asks for ApiVersions,
the next as soon as the last is answered. The broker's processor time is that of all its threads, and
includes what the synchronous client costs.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks import frames
from benchmarks.broker_load import Case, Wire
from harness.brokers import Broker
from moldau.protocol import codec
from moldau.protocol.apis import API_VERSIONS, LIST_OFFSETS
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.records.batch import encode_batch
from moldau.records.compression import GZIP, ZSTD

EVENTS_PARTITIONS, EVENTS = 200, 9000
EMPTY_PARTITIONS, EMPTY = 8, 1_200_000
ASKERS, WAIT_S = 20, 300.0
"""Connections that ask at once, and how long they wait for their answers."""
BASE_MS = 1_600_000_000_000


def processor_s(pid: int) -> float:
    """User and system time of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fill(port: int, topic: str, partitions: int, batch: bytes) -> None:
    with Wire(port) as wire:
        wire.send(frames.create(topic, partitions))
        wire.reply()
        for number in range(partitions):
            wire.send(frames.produce(topic, number, batch))
            wire.reply()


def question(topic: str, partitions: int, timestamp: int) -> bytes:
    parts = [ListOffsetsPartition(partition_index=number, timestamp=timestamp) for number in range(partitions)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=parts)])
    return codec.write_request(LIST_OFFSETS, 7, 1, frames.CLIENT, request)


class Bystander(threading.Thread):
    """The synchronous client."""

    def __init__(self, port: int):
        super().__init__(daemon=True)
        self.longest_ms = 0.0
        self._port = port
        self._done = threading.Event()

    def run(self) -> None:
        frame = codec.write_request(API_VERSIONS, 0, 1, frames.CLIENT, ApiVersionsRequest())
        with Wire(self._port, WAIT_S) as wire, contextlib.suppress(TimeoutError):
            while not self._done.is_set():
                began = time.perf_counter()
                try:
                    wire.send(frame)
                    wire.reply()
                finally:
                    self.longest_ms = max(self.longest_ms, (time.perf_counter() - began) * 1000)

    def end(self) -> float:
        self._done.set()
        self.join()
        return self.longest_ms


def asked(broker: Broker, name: str, questions: Sequence[bytes]) -> Iterator[Case]:
    """What these cost that are asked at once, each on a connection of its own."""
    port = int(broker.address.rpartition(":")[2])
    began_s = processor_s(broker.pid)
    bystander = Bystander(port)
    bystander.start()
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(Wire(port, WAIT_S)) for _ in questions]
        began = time.perf_counter()
        for wire, frame in zip(wires, questions, strict=True):
            wire.send(frame)
        for wire in wires:
            wire.reply()
        took_ms = (time.perf_counter() - began) * 1000
    longest_ms = bystander.end()
    used_ms = (processor_s(broker.pid) - began_s) * 1000
    yield Case(f"{name}: another client's longest wait", longest_ms, "ms")
    yield Case(f"{name}: answered after", took_ms, "ms")
    yield Case(f"{name}: processor time of the broker", used_ms, "ms")


def cases(start: Callable[[], AbstractContextManager[Broker]]) -> Iterator[Case]:
    events = encode_batch([(b"key", b"an event", BASE_MS + number, []) for number in range(EVENTS)], codec=GZIP)
    times = [BASE_MS] * (EMPTY - 1) + [BASE_MS + 1]
    empty = encode_batch([(None, None, stamp, []) for stamp in times], codec=ZSTD)
    with start() as broker:
        port = int(broker.address.rpartition(":")[2])
        fill(port, "events", EVENTS_PARTITIONS, bytes(events))
        fill(port, "empty", EMPTY_PARTITIONS, bytes(empty))
        kinds = {
            f"{EVENTS_PARTITIONS} partitions of {EVENTS:,} events": question(
                "events", EVENTS_PARTITIONS, BASE_MS + EVENTS - 1
            ),
            "1.2M empty records in 0.9 MB": question("empty", 1, BASE_MS + 1),
            f"{EMPTY_PARTITIONS} of those in one request": question("empty", EMPTY_PARTITIONS, BASE_MS + 1),
        }
        for name, frame in kinds.items():
            yield from asked(broker, name, [frame])
        yield from asked(broker, f"{ASKERS} requests for one of those", [question("empty", 1, BASE_MS + 1)] * ASKERS)
