"""A group of real processes: whoever comes, leaves or is killed, every partition has one owner and no message is
skipped.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer

PARTITIONS = 6
TOPIC, GROUP = "shared", "sharers"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    ours = Broker(tmp_path)
    ours.start()
    yield ours
    ours.kill()


def soon(holds: Callable[[], bool], seconds: float, what: Callable[[], object]) -> None:
    """Wait until it holds."""
    assert wait_until(holds, seconds), what()


class Member:
    """`owned` is what it was given last, `read` every (partition, offset) that it read."""

    def __init__(self, address: str):
        self.owned: set[int] = set()
        self.read: list[tuple[int, int]] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.end_to_end.member", address, GROUP, TOPIC],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event, what = json.loads(line)
            if event == "read":
                self.read.append((what[0], what[1]))
            elif event == "assigned":
                self.owned = set(what)
            else:
                self.owned -= set(what)

    def end(self, *, kill: bool = False) -> None:
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(stretched(20))
        self._listener.join(stretched(20))
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.owned = set()


class Stream:
    """A producer that does not stop while the group changes."""

    def __init__(self, address: str):
        self.sent = 0
        self._address = address
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with Producer(self._address, acks="all") as producer:
            while not self._stop.wait(0.005):
                producer.send(TOPIC, value=str(self.sent), partition=self.sent % PARTITIONS)
                self.sent += 1

    def stop(self) -> None:
        self._stop.set()

    def end(self) -> int:
        self.stop()
        self._thread.join(stretched(30))
        assert not self._thread.is_alive()
        return self.sent


def shared_out(*members: Member) -> bool:
    owned = [partition for member in members for partition in member.owned]
    return sorted(owned) == list(range(PARTITIONS)) and all(member.owned for member in members)


def test_every_partition_has_one_owner_after_each_change_and_no_message_is_skipped(broker: Broker) -> None:
    address = broker.address
    with Admin(address) as admin:
        admin.create_topic(TOPIC, partitions=PARTITIONS)
    stream = Stream(address)
    members = {name: Member(address) for name in ("first", "second")}
    try:

        def settled(*names: str) -> None:
            there = [members[name] for name in names]
            soon(lambda: shared_out(*there), 20, lambda: {name: members[name].owned for name in members})
            marks = {name: len(members[name].read) for name in names}
            soon(lambda: all(len(members[name].read) > marks[name] for name in names), 20, lambda: "nobody reads")

        settled("first", "second")
        members["third"] = Member(address)
        settled("first", "second", "third")
        members["second"].end(kill=True)
        settled("first", "third")
        members["first"].end()
        with Admin(address) as admin:
            assert len(admin.describe_group(GROUP).members) == 1, "one that leaves is not waited for"
        settled("third")
        sent = stream.end()
        soon(lambda: len({one for m in members.values() for one in m.read}) >= sent, 20, lambda: "messages are missing")
    finally:
        stream.stop()
        for member in members.values():
            if member.process.poll() is None:
                member.end()

    read = {one for member in members.values() for one in member.read}
    each = [len([one for one in read if one[0] == partition]) for partition in range(PARTITIONS)]
    assert read == {(partition, offset) for partition, count in enumerate(each) for offset in range(count)}
    assert len(read) == sent
    with Admin(address) as admin:
        described = admin.describe_group(GROUP)
        committed = admin.group_offsets(GROUP)
    assert (described.state, described.members) == ("Empty", [])
    assert [committed[tp].offset for tp in sorted(committed)] == each
