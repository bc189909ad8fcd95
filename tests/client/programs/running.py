"""One random program: up to two members of a group at a time, their calls in one thread, and a check after each close.

The seed decides about all that the program does. What the group does meanwhile is not certain, and the model only
demands what holds for every course. With `befall`, a fault of the broker or its connections, even less is certain: a
commit may fail, and a member may lose its partitions.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.patience import Deadline
from moldau.client.administration.admin import Admin
from moldau.client.consuming.fetched.record import Record
from moldau.errors import KafkaError
from moldau.names import TopicPartition
from tests.client.programs.faces import AsyncFace, Face, Interrupted, SyncFace
from tests.client.programs.model import Lost, Progress, Seen

STEPS_MAX = 30
WEIGHTS = {"poll": 4, "iterate": 6, "seek": 4, "pause": 3, "commit": 3, "close": 1, "resubscribe": 1}
"""How often each step is drawn."""
REBALANCES = 0.2
"""The share of programs in which a second member comes and goes."""
FAULTS_MAX = 3
FAULTY_STEPS_MAX = 10
WITH_FAULTS: dict[str, Any] = {"request_timeout_ms": 300, "max_poll_interval_ms": 5_000}
"""Settings with which requests that are not answered, and members that do not come back, cost little time."""


class Member:
    """A consumer and what it was handed."""

    def __init__(self, name: str, face: Face, seen: Seen, topic: str):
        self.name = name
        self.face = face
        self.seen = seen
        self.topic = topic
        self.subscribe()

    def subscribe(self) -> None:
        """Nothing is known of the partitions until the group has assigned them."""
        self.face("subscribe", self.topic, on_assigned=self.seen.assigned, on_revoked=self.seen.revoked)

    def poll(self, timeout_ms: int, most: int | None = None) -> list[Record]:
        self.seen.come_back()
        records: list[Record] = self.face("poll", timeout_ms, most)
        for record in records:
            self.seen.handed(record)
        return records


class Program:
    """The program of a seed on a topic whose partitions end at `ends`; `trace` has its steps. `befall` causes a fault
    and returns when it is over."""

    def __init__(
        self,
        seed: int,
        bootstrap: str,
        ends: Mapping[TopicPartition, int],
        admin: Admin,
        befall: Callable[[], str] | None = None,
    ):
        self.chance = chance = random.Random(seed)
        self.trace: list[str] = []
        self._admin = admin
        self._progress = Progress(ends)
        self._partitions = sorted(ends)
        self._group = f"program-{seed}-{id(self)}"
        self._loop = asyncio.new_event_loop()
        self._rebalances = chance.random() < REBALANCES
        self._face: type[Face] = chance.choice((SyncFace, AsyncFace))
        self._settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "group_id": self._group,
            "auto_offset_reset": "earliest",
            "fetch_max_wait_ms": 20,
            "enable_auto_commit": chance.random() < 0.8,
            "auto_commit_interval_ms": chance.choice((0, 5, 5_000)),
            "max_poll_records": chance.choice((1, 5, 20, 500)),
            "max_partition_fetch_bytes": chance.choice((300, 1_000, 1_000_000)),
        } | chance.choice(
            (
                {"group_protocol": "consumer"},
                {"heartbeat_interval_ms": 20},
                {"heartbeat_interval_ms": 20, "partition_assignment_strategy": "sticky"},
                {"heartbeat_interval_ms": 20, "partition_assignment_strategy": "cooperative-sticky"},
            )
        )
        self._befall = befall
        self._faults_at: list[int] = []
        if befall is not None:
            self._settings |= WITH_FAULTS
            self._faults_at = [chance.randrange(STEPS_MAX // 2) for _ in range(chance.randint(1, FAULTS_MAX))]
        self._members: list[Member] = []
        self._count = 0
        self._alone = True

    def run(self) -> None:
        """Raises `Lost` and `AssertionError`; `trace` says after which steps."""
        self.trace.append(f"{self._face.__name__} {self._settings}")
        try:
            for number in range(self.chance.randint(3, STEPS_MAX)):
                self._step()
                if number in self._faults_at:
                    self._through_a_fault()
            while self._members:
                self.close()
            self._finish()
        finally:
            for member in self._members:
                member.face("close")
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _step(self) -> None:
        steps = WEIGHTS | ({"open": 3, "share": 3} if self._rebalances else {})
        if not self._members:
            steps = {"open": 1}
        (step,) = self.chance.choices(list(steps), list(steps.values()))
        getattr(self, step)()

    def _through_a_fault(self) -> None:
        """Go on with steps while a fault lasts. They are drawn apart, because nobody knows how many there will be."""
        assert self._befall is not None
        chance, self.chance = self.chance, random.Random(self.chance.random())
        self._say("a fault begins")
        with ThreadPoolExecutor(1) as aside:
            fault, steps = aside.submit(self._befall), 0
            while not fault.done():
                self._step()
                steps += 1
                if steps % FAULTY_STEPS_MAX == 0:  # a program that has paused all partitions asks the broker nothing
                    self._check_committed()
            self._say(f"the fault is over: {fault.result()}")
        self.chance = chance

    def _say(self, what: str) -> None:
        self.trace.append(what)

    # -- the steps

    def open(self) -> None:
        if len(self._members) == 2:
            return
        self._alone = not self._members and self._befall is None
        self._count += 1
        self._check_committed()
        self._join(self._settings)
        self._say(f"open {self._members[-1].name}")

    def _join(self, settings: dict[str, Any]) -> Member:
        face = self._face(settings, self._loop)
        member = Member(f"member {self._count}", face, Seen(self._progress), self._partitions[0].topic)
        self._members.append(member)
        if len(self._members) == 1:
            self._read_on(member)
        return member

    def _read_on(self, member: Member) -> None:
        """Poll until the member is assigned partitions. All it gets counts as handed out."""
        deadline = Deadline()
        while not member.seen.assigned_once:
            assert not deadline.passed, "no partition was assigned"
            member.poll(50, 1)

    def poll(self) -> None:
        member = self.chance.choice(self._members)
        most = self.chance.choice((None, 1, 3, 10))
        records = member.poll(self.chance.choice((0, 5, 30)), most)
        self._say(f"poll {member.name} {most}: {_names(records)}")

    def iterate(self) -> None:
        """A loop over some records, which ends with `break` or an exception."""
        member = self.chance.choice(self._members)
        ready = member.seen.ready if self._befall is None else member.seen.ready_whatever_befalls
        left = min(self.chance.choice((1, 2, 5, 25)), ready)
        if len(self._members) > 1 or not left:
            return
        raises = self.chance.random() < 0.5
        records: list[Record] = []

        def body(record: Record) -> bool:
            member.seen.come_back()
            member.seen.handed(record)
            records.append(record)
            if len(records) == left and raises:
                raise Interrupted
            return len(records) < left

        try:
            member.face.walk(body)
        except Interrupted:
            pass
        self._say(f"iterate {member.name}, {'raise' if raises else 'break'}: {_names(records)}")

    def seek(self) -> None:
        member = self.chance.choice(self._members)
        known = sorted(member.seen.delivered)
        if not known or len(self._members) > 1:
            return
        tp = self.chance.choice(known)
        offset = self.chance.randint(0, self._progress.ends[tp])
        member.face("seek", tp, offset)
        member.seen.sought(tp, offset)
        self._say(f"seek {member.name} {tp}@{offset}")

    def pause(self) -> None:
        member = self.chance.choice(self._members)
        here = sorted(member.seen.next)
        if not here:
            return
        chosen = self.chance.sample(here, self.chance.randint(1, len(here)))
        resumes = self.chance.random() < 0.5
        member.face("resume" if resumes else "pause", chosen)
        member.seen.paused = member.seen.paused - set(chosen) if resumes else member.seen.paused | set(chosen)
        self._say(f"{'resume' if resumes else 'pause'} {member.name} {chosen}")

    def commit(self) -> None:
        """Commit all that was handed out, or one record, and wait or not."""
        member = self.chance.choice(self._members)
        how = self.chance.choice(("commit", "commit_async", "record"))
        pending = [record for record in member.seen.pending if record.topic_partition in member.seen.next]
        record = self.chance.choice(pending) if pending else None
        if how == "record" and record is None:
            return
        offsets = member.seen.delivered
        if how == "record" and record is not None:
            offsets = {record.topic_partition: record.offset + 1}
        member.seen.commits(offsets)
        self._say(f"{how} {member.name} {offsets}")
        try:
            if how == "record" and record is not None:
                member.face.commit_record(record)
            else:
                member.face(how)
        except KafkaError as failure:
            if self._alone:
                raise
            self._say(f"  failed: {failure}")

    def resubscribe(self) -> None:
        """Leave the group and come back with the same consumer."""
        member = self.chance.choice(self._members)
        if len(self._members) > 1:
            return
        due = self._due(member)
        member.face("unsubscribe")
        self._say(f"unsubscribe {member.name}")
        member.seen.pending = []
        self._check_committed(due)
        member.seen.revoked(self._partitions)
        member.seen.assigned_once = False
        member.subscribe()
        self._read_on(member)

    def close(self) -> None:
        member = self._members.pop(self.chance.randrange(len(self._members)))
        due = self._due(member)
        member.face("close")
        self._say(f"close {member.name}")
        self._check_committed(due)

    def share(self) -> None:
        """Both members poll until they share the partitions."""
        deadline = Deadline()
        while len(self._members) == 2 and not self._shared():
            assert not deadline.passed, "two members do not come to share the partitions"
            for member in self._members:
                member.poll(10, 2)
        self._say(f"share {[sorted(member.seen.next) for member in self._members]}")

    def _shared(self) -> bool:
        owned = [tp for member in self._members for tp in member.seen.next]
        return all(member.seen.next for member in self._members) and sorted(owned) == self._partitions

    # -- the checks

    def _due(self, member: Member) -> dict[TopicPartition, int]:
        """What the close of a member commits, where that is certain."""
        if not self._alone or not self._settings["enable_auto_commit"]:
            return {}
        due = {tp: member.seen.due_at_close(tp) for tp in self._partitions}
        return {tp: at for tp, at in due.items() if at is not None}

    def _check_committed(self, due: Mapping[TopicPartition, int] = {}) -> None:
        found = self._admin.group_offsets(self._group)
        for tp, at in found.items():
            self._progress.check_before(tp, at.offset, "the group has committed")
        committed = {tp: found[tp].offset if tp in found else 0 for tp in due}
        assert committed == due, f"closed with {committed} committed, {due} was processed"

    def _finish(self) -> None:
        """A last member reads to the end: what nobody has processed is handed out to it."""
        self._alone = self._befall is None
        member = self._join({**self._settings, "enable_auto_commit": True, "max_partition_fetch_bytes": 1_000_000})
        deadline = Deadline()
        while left := self._progress.unprocessed:
            if deadline.passed:
                raise Lost(f"never handed out: {' '.join(left)}; the last member has {sorted(member.seen.next)}")
            member.poll(50, 500)
        self.close()


def _names(records: list[Record]) -> str:
    return " ".join(f"{record.partition}@{record.offset}" for record in records)
