"""What one broker does with raw requests: produce, fetch, and the latency of a steady trickle.

usage: python -m benchmarks.broker_load PORT [--only produce,fetch,latency]

A case runs in windows of half a second until three in a row agree within a tenth (a JVM needs that), or its time or
bytes are over; the median of the last three counts. Every reply's error code is read, and what was acknowledged must
be in the log. Works against any broker that speaks Kafka's protocol.
"""

import argparse
import json
import socket
import ssl
import struct
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

from benchmarks import frames
from moldau.protocol import codec
from moldau.protocol.apis import CREATE_TOPICS, FETCH, LIST_OFFSETS, PRODUCE, Api
from moldau.records.batch import batches

WINDOW_S = 0.5
CASE_S = 10.0
CASE_BYTES = 1_500_000_000
IN_FLIGHT_BYTES = 1 << 20
IN_FLIGHT_MAX = 256
VALUE_BYTES = 200
AGREE = 1.1
NOT_THERE_YET = (3, 6)
"""The topic is unknown, its leader is."""


class Case(NamedTuple):
    """One measurement: a name that compares between brokers, what was counted, and in which unit more is better."""

    name: str
    value: float
    unit: str


class Wire:
    """A blocking connection, with TLS if there is a context; `size` bytes are read into a buffer that is kept."""

    tls: ClassVar[ssl.SSLContext | None] = None

    def __init__(self, port: int, timeout_s: float = 60):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is not None:
            self._socket = self.tls.wrap_socket(self._socket)
        self._buffer = bytearray(1 << 20)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def exactly(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view, got = memoryview(self._buffer), 0
        while got < size:
            count = self._socket.recv_into(view[got:size])
            if not count:
                raise EOFError("the broker closed the connection")
            got += count
        return view[:size]

    def reply(self) -> memoryview:
        (size,) = struct.unpack(">i", self.exactly(4))
        return self.exactly(size)

    def ask(self, api: Api, version: int, frame: bytes) -> Any:
        self.send(frame)
        return codec.read_reply(api, version, bytes(self.reply()))


def new_topic(port: int, partitions: int = 1) -> str:
    """A topic that takes records."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    one = frames.batch(1, 1)
    with Wire(port) as wire:
        created = wire.ask(CREATE_TOPICS, frames.CREATE_VERSION, frames.create(topic, partitions))
        assert not created.topics[0].error_code, created
        for partition in range(partitions):
            while (error := _error(wire, frames.produce(topic, partition, one))) in NOT_THERE_YET:
                time.sleep(0.05)
            assert not error, f"error {error}"
    return topic


def _error(wire: Wire, frame: bytes) -> int:
    answer = wire.ask(PRODUCE, frames.PRODUCE_VERSION, frame)
    error: int = answer.responses[0].partition_responses[0].error_code
    return error


def end_offsets(port: int, topic: str, partitions: int) -> int:
    with Wire(port) as wire:
        answer = wire.ask(LIST_OFFSETS, frames.LIST_VERSION, frames.ends(topic, range(partitions)))
        return sum(part.offset for part in answer.topics[0].partitions)


def drop(port: int, topic: str) -> None:
    """Delete the topic and let its files go, so that the next case finds the memory of this one free."""
    with Wire(port) as wire:
        wire.send(frames.delete(topic))
        wire.reply()
    time.sleep(1.5)


def steady(window: Callable[[], float], spent: Callable[[], int]) -> float:
    """Windows until they agree; the median of the last three."""
    rates: list[float] = []
    ends_at = time.perf_counter() + CASE_S
    while time.perf_counter() < ends_at:
        rates.append(window())
        last = rates[-3:]
        if len(last) == 3 and (max(last) <= AGREE * min(last) or spent() > CASE_BYTES):
            break
    return sorted(rates[-3:])[len(rates[-3:]) // 2]


def produce(port: int, records: int, acks: int = 1, connections: int = 1) -> Case:
    """Requests of one batch of `records`, pipelined; as many partitions as connections."""
    topic = new_topic(port, connections)
    before = end_offsets(port, topic, connections)
    one = frames.batch(records, VALUE_BYTES)
    window_size = max(1, min(IN_FLIGHT_MAX, IN_FLIGHT_BYTES // len(one)))
    bursts = [frames.produce(topic, number, one, acks) * window_size for number in range(connections)]
    reply_size = 4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2 + 8 + 8 + 8 + 4
    error_at = 4 + 4 + 4 + 2 + len(topic) + 4 + 4
    wires = [Wire(port) for _ in range(connections)]
    sent = 0

    def take(wire: Wire) -> None:
        replies = wire.exactly(window_size * reply_size)
        assert not any(replies[error_at::reply_size]) and not any(replies[error_at + 1 :: reply_size])

    def window() -> float:
        nonlocal sent
        first, began = sent, time.perf_counter()
        while time.perf_counter() - began < WINDOW_S:
            for wire, burst in zip(wires, bursts, strict=True):
                wire.send(burst)
                if acks:
                    take(wire)
                sent += window_size
        return (sent - first) / (time.perf_counter() - began)

    if acks:
        for wire, burst in zip(wires, bursts, strict=True):
            wire.send(burst)
            sent += window_size
    rate = steady(window, lambda: sent * len(one))
    if acks:
        for wire in wires:
            take(wire)
    gives_up = time.monotonic() + 60
    while (held := end_offsets(port, topic, connections) - before) < sent * records and time.monotonic() < gives_up:
        time.sleep(0.05)
    assert held == sent * records, f"{sent * records} records were sent, {held} are in the log"
    for wire in wires:
        wire.__exit__()
    drop(port, topic)
    name = f"produce {records} x {VALUE_BYTES} B, acks={acks}, {connections} connection{'s'[: connections > 1]}"
    return Case(name, rate, "requests/s") if records == 1 else Case(name, rate * len(one) / 1e6, "MB/s")


def fetches(port: int, sizes: tuple[int, ...]) -> Iterator[Case]:
    """One consumer that reads a log in circles."""
    topic = new_topic(port)
    one = frames.batch(80, VALUE_BYTES)
    with Wire(port) as wire:
        for _ in range(300_000_000 // len(one) // 50):
            wire.send(frames.produce(topic, 0, one) * 50)
            for _ in range(50):
                wire.reply()
        end = end_offsets(port, topic, 1)
        for size in sizes:
            yield Case(f"fetch {size // 1000} KB", _fetch(wire, topic, end, size), "MB/s")
    drop(port, topic)


def _fetch(wire: Wire, topic: str, end: int, size: int) -> float:
    offset = taken = 0

    def window() -> float:
        nonlocal offset, taken
        first, began = taken, time.perf_counter()
        while time.perf_counter() - began < WINDOW_S:
            wire.send(frames.fetch(topic, offset, size))
            answer = codec.read_reply(FETCH, frames.FETCH_VERSION, wire.reply())
            part = answer.responses[0].partitions[0]
            assert not part.error_code and part.records is not None
            taken += len(part.records)
            last = offset
            for _, header in batches(part.records):
                assert header.base_offset in (last, 0), f"offset {header.base_offset} after {last}"
                last = header.next_offset
            assert last > offset, "a fetch below the end brought nothing"
            offset = 0 if last >= end else last
        return (taken - first) / (time.perf_counter() - began) / 1e6

    return steady(window, lambda: 0)


def latency(port: int, per_second: int, records: int, seconds: float = 8) -> Iterator[Case]:
    """From when a request was due to when its answer was here, at a fixed rate."""
    topic = new_topic(port)
    frame = frames.produce(topic, 0, frames.batch(records, VALUE_BYTES))
    seen: list[float] = []
    gap = records / per_second
    with Wire(port) as wire:
        began = due = time.perf_counter()
        while due - began < seconds:
            while (left := due - time.perf_counter()) > 0:
                if left > 0.0002:
                    time.sleep(left - 0.0001)
            wire.send(frame)
            wire.reply()
            seen.append(time.perf_counter() - due)
            due += gap
    drop(port, topic)
    seen.sort()
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
        what = f"produce of {records} at {per_second // records} requests/s, {name}"
        yield Case(what, seen[int(len(seen) * share)] * 1e3, "ms")


def cases(port: int, only: str = "produce,fetch,latency") -> Iterator[Case]:
    if "produce" in only:
        for acks, connections, sizes in ((1, 1, (1, 50, 80, 400, 4000)), (1, 4, (1, 50))):
            for records in sizes:
                yield produce(port, records, acks, connections)
    if "fetch" in only:
        yield from fetches(port, (200_000, 1_000_000, 10_000_000))
    if "latency" in only:
        yield from latency(port, 1_000, 1)
        yield from latency(port, 10_000, 10)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broker_load", description="Raw load on one broker.")
    parser.add_argument("port", type=int)
    parser.add_argument("--only", default="produce,fetch,latency")
    asked = parser.parse_args()
    for case in cases(asked.port, asked.only):
        print(json.dumps(case._asdict()), flush=True)


if __name__ == "__main__":
    main()
