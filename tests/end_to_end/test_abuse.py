"""Under a running reader and writer comes everything a hostile peer can send: the broker stays up, its memory stays
small, the others go on, and nothing bad is ever served. How little they notice is a time of this machine, which only
the long tier judges; `tests/net` counts turns."""

import contextlib
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.brokers import Broker
from harness.patience import stretched, wait_until
from harness.tiers import LONG, sized
from moldau.errors import ErrorCode
from moldau.protocol import codec
from moldau.protocol.apis import METADATA
from moldau.protocol.messages.metadata import MetadataRequest
from moldau.records.rows import iterate
from tests.differential.batches import NOW, batch, record, varint
from tests.end_to_end.raw import Raw

MIB = 1 << 20
MEMORY_GROWTH_MAX = 64 * MIB
MEMORY_KEPT_MAX = 48 * MIB
"""When the hostile peers are gone."""
P99_FLOOR_S, P99_RATIO = 0.05, 10
"""Below this a p99 says more about the machine than about the broker; where that is slow it has more time, as it does
for everything."""
ROUNDS_MIN, ROUNDS_MAX = sized(2, 4, 4), 10
HALF_SENT = 200


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    running = Broker(Path(tmp_path_factory.mktemp("abuse")))
    running.start()
    yield running
    print(f"the end of the broker's log:\n{running.log()}")
    running.stop()


def resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Others:
    """A writer and a reader at work all the while; `latencies` are the writer's, `read` what the reader was given."""

    def __init__(self, address: str, topic: str):
        self._address, self._topic = address, topic
        self._stop = threading.Event()
        self.latencies: list[float] = []
        self.written = 0
        self.read: list[bytes] = []
        self.failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, args=(work,)) for work in (self._write, self._read)]
        self._writer, _ = self._threads

    def __enter__(self) -> "Others":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(stretched(60))
        assert not any(thread.is_alive() for thread in self._threads)
        assert not self.failures, self.failures

    def _guarded(self, work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            self.failures.append(error)

    def _write(self) -> None:
        with Raw(self._address) as raw:
            while not self._stop.wait(0.002):
                began = time.perf_counter()
                error, _ = raw.produce(self._topic, batch(b"good %d" % self.written, timestamp=NOW))
                self.latencies.append(time.perf_counter() - began)
                assert error == 0
                self.written += 1

    def _read(self) -> None:
        with Raw(self._address) as raw:
            while True:
                if not self._writer.is_alive() and len(self.read) == self.written:  # the last write may be on its way
                    return
                answer = raw.fetch(self._topic, len(self.read), max_wait_ms=100)
                assert answer.error_code == 0
                self.read += [bytes(row.value or b"") for row in iterate(answer.records, len(self.read))]

    def p99(self, since: int) -> float:
        seen = sorted(self.latencies[since:])
        return seen[int(len(seen) * 0.99)]

    def more(self, count: int) -> None:
        """Wait until so many more were written."""
        goal = self.written + count
        while self.written < goal and not self.failures:
            time.sleep(0.01)


def garbage(address: str) -> None:
    chance = random.Random(1)
    for size in (1, 3, 4, 5, 100, 5000):
        with Raw(address) as raw:
            raw.socket.sendall(b"\xff" * 4 + chance.randbytes(size))
            assert raw.is_closed()
    with Raw(address) as raw:
        raw.socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.is_closed()


def giant_length(address: str) -> None:
    for size in (2**31 - 1, -(2**31), 200 * MIB):
        with Raw(address) as raw:
            raw.socket.sendall(struct.pack(">i", size))
            assert raw.is_closed()


def truncated_frames(address: str) -> None:
    whole = codec.write_request(METADATA, 12, 1, "abuse", MetadataRequest())
    for cut in range(4, len(whole) - 4):
        with Raw(address) as raw:
            body = whole[4:cut]
            raw.socket.sendall(struct.pack(">i", len(body)) + body)
            assert raw.is_closed()


def unknown_keys(address: str) -> None:
    for key, version in ((999, 0), (-1, 0), (4, 0), (3, 99), (3, -1), (0, 2), (1, 3), (52, 0)):
        with Raw(address) as raw:
            body = struct.pack(">hhih", key, version, 1, -1) + bytes(40)
            raw.socket.sendall(struct.pack(">i", len(body)) + body)
            assert raw.is_closed()


@contextlib.contextmanager
def half_sent_frames(address: str) -> Iterator[int]:
    """200 peers declare 50 MB and send a part: a little, or as much as the broker takes. So many bytes are sent."""
    host, _, port = address.rpartition(":")
    sent = 0
    with contextlib.ExitStack() as peers:
        for number in range(HALF_SENT):
            peer = peers.enter_context(socket.create_connection((host, int(port)), 30))
            peer.setblocking(False)
            data = struct.pack(">i", 50 * MIB) + bytes(4 * MIB if number % 10 == 0 else 50_000)
            with contextlib.suppress(BlockingIOError):
                sent += peer.send(data)
        yield sent


def bad_batches(address: str, topic: str) -> None:
    good = batch(b"x", timestamp=NOW)
    bad: dict[str, bytes] = {
        "checksum": batch(b"x", timestamp=NOW, crc=1),
        "count": batch(b"x", timestamp=NOW, count=2),
        "no records": batch(b"x", timestamp=NOW, count=0, last_offset_delta=-1),
        "huge count": batch(b"x", timestamp=NOW, count=2**31 - 1, last_offset_delta=2**31 - 2),
        "record longer than the batch": batch(b"x", body=record((None, b"x"), 0, length=500), timestamp=NOW),
        "negative record length": batch(b"x", body=varint(-5) + bytes(10), timestamp=NOW),
        "offsets out of sequence": batch(
            b"x", b"y", body=record((None, b"x"), 1) + record((None, b"y"), 0), timestamp=NOW
        ),
        "bytes after the last record": batch(b"x", body=record((None, b"x"), 0) + b"rest", timestamp=NOW),
        "endless varint": batch(b"x", body=b"\xff" * 30, timestamp=NOW),
        "gzip that is none": batch(b"x", attributes=1, timestamp=NOW),
        "unknown codec": batch(b"x", attributes=7, timestamp=NOW),
        "control batch": batch(b"x", attributes=0x20, timestamp=NOW),
        "two batches": good + good,
        "old format": batch(b"x", magic=1, timestamp=NOW),
        "a bomb": batch(b"x", codec=4, body=bytes(256 * MIB), timestamp=NOW),
        "nothing": b"",
        "a part of a batch": good[:50],
    }
    with Raw(address) as raw:
        for name, records in bad.items():
            error, base = raw.produce(topic, records)
            assert error in (
                ErrorCode.INVALID_RECORD,
                ErrorCode.CORRUPT_MESSAGE,
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                ErrorCode.MESSAGE_TOO_LARGE,
            ), (name, error)
            assert base == -1
        for position in range(len(good)):
            flipped = bytearray(good)
            flipped[position] ^= 0x40
            error, _ = raw.produce(topic, bytes(flipped))
            if position in range(12, 16):  # the leader's epoch, which a broker writes anyway
                assert error == 0
            else:
                assert error != 0, position


class Round(NamedTuple):
    """What one round of everything hostile cost the others, and the broker."""

    calm_p99_s: float
    hostile_p99_s: float
    sent_mib: float
    growth_mib: float
    kept_mib: float

    @property
    def is_fast(self) -> bool:
        return not LONG or self.hostile_p99_s <= max(P99_RATIO * self.calm_p99_s, stretched(P99_FLOOR_S))

    def __str__(self) -> str:
        return (
            f"p99 {self.calm_p99_s * 1000:.1f} ms before, {self.hostile_p99_s * 1000:.1f} ms meanwhile; memory grew by "
            f"{self.growth_mib:.1f} MiB for {self.sent_mib:.1f} MiB half sent, {self.kept_mib:.1f} MiB were kept"
        )


def one_round(broker: Broker, others: Others, memory: int) -> Round:
    """The others alone, then with everything hostile; `memory` is what the broker had before the first round."""
    address = broker.address
    calm_from = len(others.latencies)
    others.more(300)
    hostile_from = len(others.latencies)
    calm = others.p99(calm_from)
    garbage(address)
    giant_length(address)
    truncated_frames(address)
    unknown_keys(address)
    bad_batches(address, "target")
    with half_sent_frames(address) as sent:
        others.more(200)
        growth = resident(broker.pid) - memory
    others.more(100)
    hostile = others.p99(hostile_from)
    wait_until(lambda: resident(broker.pid) - memory <= MEMORY_KEPT_MAX)  # a bomb's buffer may still be in use
    kept = resident(broker.pid) - memory
    return Round(calm, hostile, sent / MIB, growth / MIB, kept / MIB)


@pytest.mark.timeout(600)
def test_hostile_peers_cost_little_and_spoil_nothing(broker: Broker):
    """What the machine does besides slows a round down, or several; what the broker does slows all of them down. Memory
    is judged over all of them."""
    rounds: list[Round] = []
    with Raw(broker.address) as raw:
        raw.create_topic("good")
        raw.create_topic("target")
    with Others(broker.address, "good") as others:
        others.more(300)
        memory = resident(broker.pid)
        while len(rounds) < ROUNDS_MIN or (not any(one.is_fast for one in rounds) and len(rounds) < ROUNDS_MAX):
            rounds.append(one_round(broker, others, memory))
    shown = "\n".join(map(str, rounds))
    assert all(one.growth_mib * MIB <= MEMORY_GROWTH_MAX for one in rounds), shown
    assert all(one.kept_mib * MIB <= MEMORY_KEPT_MAX for one in rounds), shown
    assert any(one.is_fast for one in rounds), shown
    print(shown)
    assert others.read == [b"good %d" % number for number in range(others.written)]
    with Raw(broker.address) as raw:
        answer = raw.fetch("target", 0)
        assert {bytes(row.value or b"") for row in iterate(answer.records)} == {b"x"}
        flips = 4 * len(rounds)
        assert raw.offset_at("target", -1) == flips, "four flips a round hit the epoch, which no checksum covers"


def test_a_pipeline_of_requests_that_nobody_reads_holds_little(broker: Broker):
    memory = resident(broker.pid)
    one = codec.write_request(METADATA, 12, 1, "greedy", MetadataRequest())
    with Raw(broker.address) as greedy, Raw(broker.address) as raw:
        greedy.socket.setblocking(False)
        try:
            for _ in range(10_000):
                greedy.socket.send(one)
        except BlockingIOError:
            pass
        for _ in range(20):
            assert raw.ask(METADATA, 12, MetadataRequest()).brokers
        assert resident(broker.pid) - memory <= MEMORY_GROWTH_MAX
