"""SIGKILL under produce, roll, retention and compaction: whatever moment it is, what was acknowledged is there again.

Each round starts the broker on the same folder, reads everything back and compares it with what was acknowledged, lets
the load go on, and kills: from outside at any time, or by the broker's own hand in the middle of a disk operation (see
`fragile_broker`), while it serves or while it starts. `MOLDAU_SEED` repeats a run; the last lines say where it was hit.
"""

import os
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker, NotReady
from harness.commands import moldau
from harness.patience import stretched
from harness.tiers import LONG, seed_or, sized
from moldau.errors import KafkaError
from moldau.records.batch import batches
from moldau.records.rows import iterate
from tests.end_to_end import losing
from tests.end_to_end.compacting_load import Committing, Load, OurClient, Writing, WritingCompressed, WritingOnce
from tests.end_to_end.fragile_broker import AFTER, BEFORE, HALF, SERVING, Point, arm, disarm, seen
from tests.end_to_end.ledger import Found, Ledger, found
from tests.end_to_end.raw import Raw

KILLS = sized(8, 8, 200)
SEED = seed_or(4)
ROOT = Path(__file__).parents[2]
EARLIEST, LATEST = -2, -1
OUT_OF_RANGE = 1
POINT_SECONDS_MAX = 2.0
NOTICED = "lost|acknowledged|given out|follows|reached|starts at|sequence|delivered"
VERIFIED_EVERY = sized(6, 6, 10)
"""Every so many kills the tool that verifies a stopped broker's files looks at a copy of them."""

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "1048576",
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.dedupe.buffer.size": "1100000",
    "log.cleaner.io.buffer.size": "65536",
    "log.cleaner.min.cleanable.ratio": "0",
    "log.initial.task.delay.ms": "50",
    "log.retention.check.interval.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "150",
    "log.segment.delete.delay.ms": "300",
    "log.roll.ms": "150",
    "log.index.interval.bytes": "1000",
    "log.index.size.max.bytes": "600",
}
COMPACTED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.0", "delete_retention_ms": "0"}
TOPICS = {
    "events": {"cleanup_policy": "delete", "retention_ms": "-1"},
    "state": {**COMPACTED, "segment_ms": "100"},
    "table": {**COMPACTED, "delete_retention_ms": "400"},
    "recent": {**COMPACTED, "cleanup_policy": "compact,delete", "retention_ms": "1500", "segment_ms": "100"},
}


class Arena:
    """The broker, the loads and the ledgers; what the kills hit is counted in `hits`, what they left in `left`."""

    def __init__(self, folder: Path, seed: int, mutation: str = ""):
        self.random = random.Random(seed)
        self.folder = folder
        self.hits: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        environment = {"PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}", "MUTATION": mutation}
        program = ("tests.end_to_end.fragile_broker", str(folder))
        self.broker = Broker(folder, SETTINGS, program, environment)
        self.broker.start()
        (folder / SERVING).touch()
        address = self.broker.address
        with Raw(address) as raw:
            for topic, configs in TOPICS.items():
                raw.create_topic(topic, **configs)
        self.events = Ledger("events", 100, compacted=False)
        self.state, self.table = Ledger("state", 150), Ledger("table", 1000)
        self.recent = Ledger("recent", 100, deletes=True)
        self.ledgers = (self.events, self.state, self.table, self.recent)
        self.client = OurClient(address, seed + 1, self.table)
        self.commits = Committing(address, seed + 2, "events")
        self.loads: list[Load] = [
            WritingOnce(address, seed + 3, self.events, 10),
            Writing(address, seed + 4, self.state, 20),
            WritingCompressed(address, seed + 5, self.recent, 20),
            self.client,
            self.commits,
        ]

    def close(self) -> None:
        for load in self.loads:
            load.end()
        self.broker.kill()

    def check(self) -> list[str]:
        """What is wrong with what the broker serves now."""
        assert self.broker.runs, "the broker ended by itself"
        self.client.settle()
        with Raw(self.broker.address) as raw:
            wrong = self.commits.problems(raw)
            for ledger in self.ledgers:
                records, start, end = read(raw, ledger.topic, ledger.known_to)
                wrong += ledger.problems(records, start, end)
        return wrong

    def load_and_kill(self, point: Point | None = None) -> None:
        """Let the load run until the broker is dead: at this point, or wherever chance says."""
        for load in self.loads:
            load.resume()
        if point is None and self.random.random() < 0.6:
            point = self._point(serving=True)
        if point is not None:
            arm(self.folder, point)
        hit = self.broker.wait(stretched(POINT_SECONDS_MAX) if point else self.random.uniform(0.1, 1.2))
        self.broker.kill()
        self._count(f"{point.operation} {point.kind}" if hit and point else "any moment")
        for load in self.loads:
            load.pause()

    def start(self) -> int:
        """Start until it serves; at times it is killed while it starts. How often that was."""
        kills = 0
        while True:
            (self.folder / SERVING).unlink(missing_ok=True)
            point = self._point(serving=False) if self.random.random() < 0.6 and kills < 2 else None
            disarm(self.folder)
            if point is not None:
                arm(self.folder, point)
            try:
                self.broker.start()
                (self.folder / SERVING).touch()
                if point is None or disarm(self.folder):
                    return kills
            except NotReady as failure:
                if point is None or failure.code != -signal.SIGKILL:
                    raise
            self.broker.kill()
            self._count(f"start: {point.operation} {point.kind}" if point else "start")
            kills += 1

    def _point(self, serving: bool) -> Point:
        pairs = seen(self.folder, serving) or [("write", ".log")]
        before = "" if serving else "start: "
        pairs = [pair for pair in pairs if not self.hits[f"{before}{pair[0]} {pair[1]}"]] or pairs
        cleaning = [pair for pair in pairs if "cleaned" in pair[1] or "swap" in pair[1]]
        operation, kind = self.random.choice(cleaning if cleaning and self.random.random() < 0.5 else pairs)
        often = operation == "write" and kind in (".log", ".index")
        count = self.random.randint(1, 300) if often and serving else self.random.choice((1, 1, 1, 3))
        where = self.random.choice((BEFORE, AFTER, HALF) if operation == "write" else (BEFORE, AFTER))
        return Point(operation, kind, count, where)

    def _count(self, what: str) -> None:
        self.hits[what] += 1
        for suffix in (".cleaned", ".swap", ".deleted", ".tmp", "-delete"):
            self.left[suffix] += any(self.broker.data.rglob(f"*{suffix}"))

    def verify_copy(self, folder: Path) -> None:
        """The tool for stopped brokers finds nothing wrong with what a kill left, and changes nothing."""
        shutil.copytree(self.broker.data, folder)
        done = moldau("log", "verify", folder)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        shutil.rmtree(folder)


def read(raw: Raw, topic: str, known_to: int) -> tuple[list[Found], int, int]:
    """The records from `known_to` or the log's start on; its start, as it is afterwards, and its end."""
    end = raw.offset_at(topic, LATEST)
    at = max(known_to, raw.offset_at(topic, EARLIEST))
    records: list[Found] = []
    while at < end:
        answer = raw.fetch(topic, at, 4 << 20, max_wait_ms=0)
        if answer.error_code == OUT_OF_RANGE:
            at = max(at, raw.offset_at(topic, EARLIEST))
            continue
        data = answer.records or b""
        last = max((header.next_offset for _, header in batches(data)), default=at)
        assert not answer.error_code and last > at, f"{topic}: {answer.error_code} at {at} of {end}, {len(data)} bytes"
        records += map(found, iterate(data, at))
        at = last
    return records, raw.offset_at(topic, EARLIEST), end


@pytest.fixture
def arena(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Arena]:
    made = Arena(tmp_path, SEED, getattr(request, "param", ""))
    yield made
    made.close()


@pytest.mark.check  # a kind of kill; `make test` has the bugs below, and the cleaner on the simulated disk
@pytest.mark.timeout(0 if LONG else 480)
def test_nothing_acknowledged_is_lost_whenever_the_broker_is_killed(arena: Arena, tmp_path: Path) -> None:
    kills = 0
    while kills < KILLS:
        arena.load_and_kill()
        kills += 1
        if kills % VERIFIED_EVERY == 0:
            arena.verify_copy(tmp_path / "copy")
        kills += arena.start()
        if wrong := arena.check():
            raise AssertionError(f"seed {SEED}, after {kills} kills ({dict(arena.hits)}): {wrong[:10]}")
    print(f"seed {SEED}: {kills} kills, {sum(ledger.acknowledged_count for ledger in arena.ledgers)} records")
    print("killed at: " + ", ".join(f"{what} ({times})" for what, times in sorted(arena.hits.items())))
    print("left behind: " + ", ".join(f"{suffix} ({times})" for suffix, times in arena.left.items()))
    assert arena.left[".cleaned"] or arena.left[".swap"], "no kill hit the cleaner"
    assert not arena.broker.traceback()
    arena.broker.stop()
    arena.broker.start()
    assert arena.check() == []
    with Raw(arena.broker.address) as raw:
        assert len(read(raw, "state", 0)[0]) < arena.state.acknowledged_count / 4, "nothing was compacted"


@pytest.mark.timeout(480)
@pytest.mark.parametrize("arena", losing.MUTATIONS, indirect=True)
@pytest.mark.bug
def test_a_broker_that_loses_something_is_noticed(arena: Arena) -> None:
    noticed: list[str] = []
    for _ in range(60):
        try:
            arena.load_and_kill(Point("write", ".log", arena.random.randint(50, 300), AFTER))
            arena.start()
            noticed = arena.check()
        except (AssertionError, KafkaError) as failure:
            noticed = [str(failure)]
        if noticed:
            break
    assert noticed and re.search(NOTICED, noticed[0]), noticed[:3]
