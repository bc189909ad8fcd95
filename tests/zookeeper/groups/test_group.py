"""A group in a real ZooKeeper whose members are processes that are killed, stopped and started: no partition has two
live owners, no offset goes back, nothing is skipped. A program that is written with kazoo alone is one of them.

`make check` has a few kills (`make test` has all of it in virtual time: tests/client/zookeeper), `make long` 100, 32
partitions, ten members and an ensemble whose leader is killed; `-s` shows its figures. `MOLDAU_SEED` repeats the order.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError

from harness.brokers import SOURCE, Broker
from harness.patience import SECONDS, wait_until
from harness.tiers import LONG, seed_or, sized
from harness.zookeeper import ZooKeeper
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from tests.zookeeper.groups.written import COMMIT_MS, Line, lines_in

KILLS, PARTITIONS, MEMBERS_MAX = sized(4, 4, 100), sized(8, 8, 32), sized(4, 4, 10)
MEMBERS_MIN = 3
SESSION_MS = 4_000
GROUP, TOPIC = "group", "events"
OURS, KAZOO = "tests.zookeeper.groups.consuming", "tests.zookeeper.groups.kazoo_alone"
SEED = seed_or(3)
pytestmark = pytest.mark.check


class Members:
    """The processes of the group."""

    def __init__(self, connect: str, folder: Path):
        self._connect, self._folder = connect, folder
        self._made = 0
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "notes").mkdir()

    @property
    def notes(self) -> Path:
        return self._folder / "notes"

    def join(self, program: str = OURS) -> None:
        name = f"{program.rpartition('.')[2]}-{self._made}"
        self._made += 1
        given = [self._connect, GROUP, TOPIC, str(SESSION_MS), str(self.notes / name)]
        with (self._folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", program, *given],
                stdout=log,
                stderr=log,
                cwd=SOURCE.parent,
                env={**os.environ, "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}"},
            )

    def end(self, name: str, how: int) -> None:
        process = self.running.pop(name)
        process.send_signal(how)
        process.wait(120)

    def pause(self, name: str, seconds: float) -> None:
        process = self.running[name]
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def kazoo(self) -> str | None:
        return next((name for name in self.running if name.startswith("kazoo")), None)

    def close(self) -> None:
        for name in list(self.running):
            self.end(name, signal.SIGTERM)


class Writer:
    """Writes records until it is stopped; `ends` are the ends of the partitions then."""

    def __init__(self, bootstrap: str):
        self.ends = dict.fromkeys(range(PARTITIONS), 0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, args=[bootstrap])
        self._thread.start()

    def _run(self, bootstrap: str) -> None:
        with Producer(bootstrap) as producer:
            while not self._over.wait(0.05):
                for partition in self.ends:
                    producer.send(TOPIC, b"", partition=partition)
                    self.ends[partition] += 1

    def stop(self) -> dict[int, int]:
        self._over.set()
        self._thread.join()
        return self.ends


class OffsetWatch:
    """Reads the group's offsets again and again."""

    def __init__(self, connect: str):
        self.fallen: list[str] = []
        self.seen: dict[int, int] = {}
        self._over = threading.Event()
        self._client = KazooClient(connect, 10)
        self._client.start(60)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(0.1):
            self._look()
        self._look()  # what was written since the last look

    def _look(self) -> None:
        for partition in range(PARTITIONS):
            try:
                text, _ = self._client.get(f"/consumers/{GROUP}/offsets/{TOPIC}/{partition}")
            except NoNodeError:
                continue
            except KazooException:
                break
            if int(text or 0) < self.seen.get(partition, 0):
                self.fallen.append(f"{partition}: {self.seen[partition]}, then {text.decode()}")
            self.seen[partition] = int(text or 0)

    def stop(self) -> None:
        """Returns when everything that was written before is in `seen`."""
        self._over.set()
        self._thread.join()
        self._client.stop()
        self._client.close()


def skipped(lines: list[Line]) -> str:
    """The first record that was handed out before one in front of it; empty if there is none."""
    following: dict[int, int] = {}
    for line in lines:
        expected = following.get(line.partition, 0)
        if line.offset > expected:
            return f"{line} came before offset {expected}"
        following[line.partition] = max(expected, line.offset + 1)
    return ""


def owned_by_two(lines: list[Line]) -> str:
    """Two spells of a partition that overlap in time; empty if there are none. A record that was asked for before the
    other's spell may have been handed out before it."""
    spells: dict[tuple[int, str, int], list[float]] = {}
    for line in lines:
        spell = spells.setdefault((line.partition, line.member, line.spell), [line.handed_s, line.asked_s])
        spell[1] = max(spell[1], line.asked_s)
    ordered = sorted((key[0], begin_s, end_s, key[1:]) for key, (begin_s, end_s) in spells.items())
    for (partition, _, end_s, before), (other, begin_s, _, after) in itertools.pairwise(ordered):
        if partition == other and end_s > begin_s:
            return f"partition {partition}: {before} until {end_s}, {after} from {begin_s}"
    return ""


def back_s(lines: list[Line]) -> float:
    """The longest time by which a record that was handed out again was handed out before its owner's end."""
    handed_s: dict[tuple[int, int], float] = {}
    last: dict[int, Line] = {}
    longest = end_s = 0.0
    for line in lines:
        before = last.get(line.partition)
        if before is not None and line.offset <= before.offset:
            end_s = before.handed_s
        again = handed_s.get((line.partition, line.offset))
        if again is not None:
            longest = max(longest, end_s - again)
        handed_s[line.partition, line.offset] = line.handed_s
        last[line.partition] = line
    return longest


@pytest.fixture
def zookeeper(request: pytest.FixtureRequest) -> ZooKeeper:
    chosen: ZooKeeper = request.getfixturevalue("three" if LONG else "single")
    return chosen


def hit(members: Members, chance: random.Random) -> None:
    """One kill, stop or pause of a member, and another member in its place if there are few."""
    name = chance.choice(list(members.running))
    kind = chance.random()
    if kind < 0.7:
        members.end(name, signal.SIGKILL)
    elif kind < 0.85 or name == members.kazoo():
        members.end(name, signal.SIGTERM)
    else:
        members.pause(name, chance.uniform(0.5, 2) * SESSION_MS / 1000)
    if members.kazoo() is None:
        members.join(KAZOO)
    while len(members.running) < MEMBERS_MIN or (len(members.running) < MEMBERS_MAX and chance.random() < 0.5):
        members.join()


@pytest.mark.timeout(3_600)
def test_no_partition_has_two_owners_and_no_record_is_skipped(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    chance, connect = random.Random(SEED), f"{zookeeper.connect}/group-of-members"
    broker = Broker(tmp_path, {"broker.id": "1", "zookeeper.connect": connect}, may_be_held=True)
    broker.start()
    members = Members(connect, tmp_path)
    try:
        with Admin(broker.address) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS)
        writer, watch = Writer(broker.address), OffsetWatch(connect)
        try:
            members.join(KAZOO)
            for _ in range(MEMBERS_MIN - 1):
                members.join()
            assert wait_until(
                lambda: len({line.member for line in lines_in(members.notes)}) == MEMBERS_MIN, 2 * SECONDS
            )
            for number in range(KILLS):
                time.sleep(chance.uniform(0.2, 3))
                hit(members, chance)
                if LONG and number == KILLS // 3:
                    os.kill(zookeeper.servers()[zookeeper.leader()], signal.SIGKILL)
        finally:
            ends = writer.stop()
        everything = {(partition, offset) for partition, end in ends.items() for offset in range(end)}

        def handed_out() -> set[tuple[int, int]]:
            return {(line.partition, line.offset) for line in lines_in(members.notes)}

        assert wait_until(lambda: handed_out() == everything, 4 * SECONDS, 0.5), sorted(everything - handed_out())[:9]
        # Before they end: the program that is written with kazoo alone commits once a second, and not at its end.
        assert wait_until(lambda: watch.seen == ends, 2 * SECONDS), "all that was handed out is committed"
        members.close()
        watch.stop()
    finally:
        for process in members.running.values():
            process.kill()
            process.wait()
        broker.stop()
    lines = lines_in(members.notes)
    assert not skipped(lines)
    assert not owned_by_two(lines)
    assert not watch.fallen
    assert watch.seen == ends
    print(f"{len(lines):,} records, {len(lines) - len(everything):,} of them again, at most {back_s(lines):.2f} s back")
    if LONG:
        assert back_s(lines) <= COMMIT_MS / 1000 + SESSION_MS / 1000
