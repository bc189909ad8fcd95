"""Worker processes and brokers of both clusters are killed while records and transactions come: each committed record
is in the target once. `MOLDAU_TIER=long` has 30 kills."""

import asyncio
import contextlib
import random
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from harness.tiers import seed_or, sized
from moldau.client.producing.producer import Producer
from moldau.errors import KafkaError, NotDelivered
from moldau.names import TopicPartition
from moldau.testing import Broker
from tests.mirror.foreign.foreign_mirroring import ForeignMirroring, foreign_mirroring

KILLS, RECORDS = sized(2, 5, 30), sized(1_500, 4_000, 100_000)
PARTITIONS = 3


class Workers:
    """Two worker processes; `kill` kills one and starts another."""

    def __init__(self, source: str, target: str):
        self._command = [
            *(sys.executable, "-m", "moldau", "mirror", "start", "--from", source, "--to", target, "--foreign"),
            *("--topics", "killed", "--from-alias", "A", "--to-alias", "B", "--refresh", "0.2"),
            *("--session-timeout", "2"),
        ]
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._running.append(subprocess.Popen(self._command, stderr=subprocess.DEVNULL))

    def kill(self, chance: random.Random) -> None:
        victim = self._running.pop(chance.randrange(len(self._running)))
        victim.kill()
        victim.wait()

    def check(self) -> None:
        """A worker has no reason to end by itself."""
        assert [process.poll() for process in self._running] == [None, None]

    def stop(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


@pytest.fixture
def clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker(group_min_session_timeout_ms=1_000) as target:
        yield source, target


def write(address: str, first: int, count: int, done: threading.Event) -> None:
    """An idempotent producer, and a transactional one that aborts every other transaction."""
    with (
        contextlib.suppress(NotDelivered, KafkaError),  # what was not acknowledged may be missing, in both clusters
        Producer(address, acks="all", linger_ms=5) as producer,
        Producer(address, transactional_id="killed", linger_ms=5) as transactional,
    ):
        for start in range(first, first + count, 100):
            if done.is_set():
                return
            for number in range(start, start + 75):
                producer.send("killed", b"record %d" % number, partition=number % PARTITIONS)
            transactional.begin_transaction()
            for number in range(start, start + 25):
                transactional.send("killed", b"in a transaction %d" % number, partition=number % PARTITIONS)
            transactional.flush()
            if start % 200:
                transactional.abort_transaction()
            else:
                transactional.commit_transaction()


async def mirrored_records(mirror: ForeignMirroring) -> int:
    """How many offsets the mirror has."""
    known = (await mirror.target.admin.list_topics()).get("A.killed")
    partitions = [TopicPartition("A.killed", number) for number in (known.partitions if known else ())]
    ends = await mirror.target.admin.offsets(dict.fromkeys(partitions, "latest")) if partitions else {}
    return sum(ends.values())


@pytest.mark.check
@pytest.mark.timeout(sized(120, 300, 3_600))
def test_each_committed_record_is_in_the_target_once_whatever_was_killed(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    seed = seed_or(7)
    print(f"MOLDAU_SEED={seed}")
    chance, done = random.Random(seed), threading.Event()
    source.create_topic("killed", PARTITIONS)
    workers = Workers(source.address, target.address)

    async def kill(mirror: ForeignMirroring, number: int) -> None:
        if number % 2:
            await until_more(mirror)
        else:
            await asyncio.sleep(chance.random())
        what = chance.choice(["worker", "worker", "source", "target"])
        print(what)
        if what == "worker":
            await asyncio.to_thread(workers.kill, chance)
            workers.start()
            return
        broker = source if what == "source" else target
        await asyncio.to_thread(broker.kill)
        await asyncio.sleep(chance.random())
        await asyncio.to_thread(broker.start)

    copied = 0

    async def until_more(mirror: ForeignMirroring) -> None:
        """Wait for records that were copied since the last time: a worker that has just started has copied none."""
        before = copied

        async def is_more() -> bool:
            nonlocal copied
            copied = await mirrored_records(mirror)
            return copied > before

        await mirror.until(is_more)

    async def scenario() -> None:
        async with foreign_mirroring(source.address, target.address, "killed", start=False) as mirror:
            for number in range(KILLS):
                count = RECORDS // KILLS
                writing = asyncio.to_thread(write, source.address, number * count, count, done)
                await asyncio.gather(writing, kill(mirror, number))
            for partition in range(PARTITIONS):
                found = await mirror.until_equal(TopicPartition("killed", partition), meanwhile=workers.check)
                assert len(found) > RECORDS // PARTITIONS // 4

    for _ in range(2):
        workers.start()
    try:
        asyncio.run(scenario())
    finally:
        done.set()
        workers.stop()
