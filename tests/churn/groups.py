"""Runs plans: several groups at once on one broker, records produced all the while, until every record is processed."""

import contextlib
import heapq
import json
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.patience import Deadline, stretched
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from tests.churn.clients import start
from tests.churn.kills import Kills, now_ms
from tests.churn.plan import JOIN, KILL, RIVAL, Script, Step, plan
from tests.churn.statics import static_plan

PRODUCE_SECONDS, PULSE_SECONDS, LATE_MS_MIN = 0.03, 0.02, 50
DRAIN_SECONDS_MAX, LEAVE_SECONDS_MAX, JOIN_SECONDS_MAX = 90, 30, 30
LOOK_AGAIN_SECONDS = 0.1


class Timing(NamedTuple):
    """What the members of classic groups ask for, and the broker tells those of the consumer protocol."""

    session_ms: int
    heartbeat_ms: int

    @property
    def settle_s(self) -> float:
        """Enough for a group to settle from whatever happened to it."""
        return (self.session_ms + 3 * self.heartbeat_ms + 1000) / 1000


class Life:
    """A member from its start to its end, and the file it writes its notes into."""

    def __init__(self, client: str, step: Step, notes: Path, process: "subprocess.Popen[bytes]"):
        self.client = client
        self.step = step
        self.notes = notes
        self.process = process
        self.began = time.monotonic()
        self._read = 0
        self._rest = b""

    def news(self) -> Iterator[tuple[int, str, list[Any]]]:
        """The notes since the last time; a line that is cut off waits for its end."""
        if not self.notes.exists():
            return
        with open(self.notes, "rb") as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            at_ms, what, names = json.loads(line)
            yield at_ms, what, names

    def said(self) -> str:
        return self.notes.with_suffix(".err").read_text(errors="replace")[-3000:]


class Group:
    """One group and its topic, both called by the script's name."""

    def __init__(self, script: Script, steps: Sequence[Step], bootstrap: str, folder: Path, timing: Timing):
        self.script = script
        self.steps = list(steps)
        self.dead_ms: dict[str, int] = {}
        self.left_ms: dict[str, int] = {}
        self.told: set[str] = set()
        """Those who said that they were told which partitions they have."""
        self.fenced: set[str] = set()
        """Those who said that another has their instance id."""
        self.processed: list[tuple[int, int]] = []
        self.read_ms: dict[tuple[str, int], list[int]] = {}
        self.stalls: list[tuple[int, int]] = []
        self.stuck: list[str] = []
        """Those who did not end when they were asked to leave, or when another had their instance id."""
        self.lives: dict[int, Life] = {}
        self.rivals: list[Life] = []
        """Those who end by themselves, as another has their instance id."""
        self.everybody: list[Life] = []
        self._bootstrap = bootstrap
        self._folder = folder
        self._timing = timing

    def do(self, step: Step) -> None:
        client = f"{self.script.name}.{step.life}.{step.kind.client}.{step.kind.protocol}"
        if step.what == JOIN:
            self.lives[step.life] = self._start(step, client)
        elif step.what == RIVAL:
            self._rival(step, client)
        elif step.what == KILL:
            life = self.lives.pop(step.life)
            self.dead_ms[life.client] = now_ms()
            life.process.kill()
            life.process.wait()
        else:
            life = self.lives.pop(step.life)
            self._close(life)

    def _rival(self, step: Step, client: str) -> None:
        """Who comes last is the instance, by the classic protocol; by the newer one, who is there."""
        assert step.holder is not None
        rival = self._start(step, client)
        if step.kind.protocol == "classic":
            rival, self.lives[step.life] = self.lives.pop(step.holder), rival
        self.rivals.append(rival)

    def _start(self, step: Step, client: str) -> Life:
        notes = self._folder / f"{client}.notes"
        asked = {
            "bootstrap": self._bootstrap,
            "group": self.script.name,
            "topic": self.script.name,
            "client": client,
            "notes": str(notes),
            "session_ms": self._timing.session_ms,
            "heartbeat_ms": self._timing.heartbeat_ms,
            "instance": step.instance,
            "patient": step.what == JOIN,
        }
        with open(self._folder / f"{client}.err", "w") as errors:
            life = Life(client, step, notes, start(step.kind, asked, errors))
        self.everybody.append(life)
        return life

    @staticmethod
    def _close(life: Life) -> None:
        assert life.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            life.process.stdin.close()

    def is_ready(self, step: Step) -> bool:
        """Whether those it waits for have been told what they have; as good as that, whether they had time enough."""
        now = time.monotonic()
        lives = [self.lives[life] for life in step.waits_for]
        return all(life.client in self.told or now - life.began > stretched(JOIN_SECONDS_MAX) for life in lives)

    def look(self) -> None:
        """Read what members have noted since; one that ended by itself is a failure."""
        for life in self.everybody:
            for at_ms, what, names in life.news():
                if what == "took":
                    self.processed += [(partition, offset) for partition, offset in names]
                    for partition in {partition for partition, _ in names}:
                        self.read_ms.setdefault((life.client, partition), []).append(at_ms)
                elif what == "assigned":
                    self.told.add(life.client)
                elif what == "left":
                    self.left_ms[life.client] = at_ms
                elif what == "fenced":
                    self.fenced.add(life.client)
                elif what == "late":
                    self.stalls.append((at_ms, names[0]))
        for number, life in list(self.lives.items()):
            code = life.process.poll()
            if code == 0 and life.client in self.fenced:
                self._succeed(number, life)
            else:
                assert code is None, f"{life.client} ended with {code}:\n{life.said()}"

    def _succeed(self, number: int, life: Life) -> None:
        """A member was fenced that has no rival that should have. If the machine stalls for a session, a rival may find
        its place free, and it is started again after librdkafka has fenced itself: that joins anew then, while a commit
        of before is on its way."""
        for at, rival in enumerate(self.rivals):
            if rival.step.instance == life.step.instance and rival.process.poll() is None:
                self.lives[number], self.rivals[at] = rival, life
                return
        self.lives[number] = self._start(life.step, f"{life.client}.again")

    def leave_all(self) -> None:
        """Everybody goes, and those who went before are waited for."""
        for life in self.lives.values():
            self._close(life)
        self.lives.clear()
        for life in self.everybody:
            try:
                life.process.wait(stretched(LEAVE_SECONDS_MAX))
            except subprocess.TimeoutExpired:
                self.stuck.append(life.client)
                life.process.kill()

    def end(self) -> None:
        """Nothing stays."""
        for life in self.everybody:
            life.process.kill()
            life.process.wait()
            with contextlib.suppress(OSError):
                assert life.process.stdin is not None
                life.process.stdin.close()


class Stream:
    """Producers that do not stop while groups change."""

    def __init__(self, bootstrap: str, topics: Mapping[str, int]):
        self._bootstrap = bootstrap
        self._topics = topics
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            number = 0
            with Producer(self._bootstrap, acks="all") as producer:
                while not self._stop.wait(PRODUCE_SECONDS):
                    for topic, partitions in self._topics.items():
                        producer.send(topic, value=str(number), partition=number % partitions)
                    number += 1
        except BaseException as error:
            self._failure = error

    def end(self) -> None:
        """Raises what the producer failed with."""
        self._stop.set()
        self._thread.join(stretched())
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure


class Pulse:
    """Waits a little again and again, and notes when the machine kept it waiting for longer."""

    def __init__(self) -> None:
        self.stalls: list[tuple[int, int]] = []
        self._stop = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        before = time.monotonic()
        while not self._stop.wait(PULSE_SECONDS):
            now = time.monotonic()
            late_ms = round((now - before - PULSE_SECONDS) * 1000)
            if late_ms > LATE_MS_MIN:
                self.stalls.append((now_ms(), late_ms))
            before = now

    def end(self) -> None:
        self._stop.set()


class Ran(NamedTuple):
    """What is known when all is over, but for the broker's trace."""

    groups: list[Group]
    produced: dict[str, dict[int, int]]
    until_ms: int
    stalls: list[tuple[int, int]]
    told: dict[str, frozenset[str]]
    """By group, who had been told until then which partitions they have."""


def run(
    scripts: Sequence[Sequence[Script]],
    seed: int,
    bootstrap: str,
    folder: Path,
    timing: Timing,
    kills: Kills | None = None,
) -> Ran:
    """The scripts of a row one after the other, the rows side by side; raises AssertionError if members fail or
    records are not processed in time."""
    rows = [[_group(script, seed, bootstrap, folder, timing) for script in row] for row in scripts]
    groups = [group for row in rows for group in row]
    topics = {group.script.name: group.script.partitions for group in groups}
    with Admin(bootstrap) as admin:
        for topic, partitions in topics.items():
            admin.create_topic(topic, partitions=partitions)
        while not topics.keys() <= admin.list_topics().keys():  # Kafka's own brokers hear of them a little later
            time.sleep(LOOK_AGAIN_SECONDS)
    pulse = Pulse()
    stream = Stream(bootstrap, topics)
    try:
        _play(rows, kills)
        time.sleep(timing.settle_s)
        stream.end()
        produced = _ends(bootstrap, topics)
        _drain(groups, produced)
        told = {group.script.name: frozenset(group.told) for group in groups}
        until_ms = now_ms()
        for group in groups:
            group.leave_all()
            group.look()
        return Ran(groups, produced, until_ms, pulse.stalls, told)
    finally:
        pulse.end()
        stream.end()
        for group in groups:
            group.end()


def _group(script: Script, seed: int, bootstrap: str, folder: Path, timing: Timing) -> Group:
    steps = (static_plan if script.instances else plan)(script, seed, timing.settle_s)
    return Group(script, steps, bootstrap, folder, timing)


def _play(rows: Sequence[Sequence[Group]], kills: Kills | None) -> None:
    """Every step when its pause after the one before is over."""
    done = 0
    if kills is not None:
        kills.plan(sum(len(group.steps) for row in rows for group in row))
    due: list[tuple[float, int, Iterator[tuple[Group, Step]]]] = []
    waiting: dict[int, tuple[Group, Step]] = {}

    def next_of(number: int, steps: Iterator[tuple[Group, Step]]) -> None:
        for group, step in steps:
            waiting[number] = group, step
            heapq.heappush(due, (time.monotonic() + step.pause_s, number, steps))
            return

    for number, row in enumerate(rows):
        next_of(number, ((group, step) for group in row for step in group.steps))
    while due:
        at, number, steps = heapq.heappop(due)
        time.sleep(max(0.0, at - time.monotonic()))
        group, step = waiting[number]
        group.look()
        if not group.is_ready(step):
            heapq.heappush(due, (time.monotonic() + LOOK_AGAIN_SECONDS, number, steps))
            continue
        group.do(step)
        next_of(number, steps)
        if kills is not None:
            kills.passed(done)
        done += 1


def _ends(bootstrap: str, topics: Mapping[str, int]) -> dict[str, dict[int, int]]:
    with Admin(bootstrap) as admin:
        return {topic: {tp.partition: marks[1] for tp, marks in admin.watermarks(topic).items()} for topic in topics}


def _drain(groups: Sequence[Group], produced: Mapping[str, Mapping[int, int]]) -> None:
    until = Deadline(DRAIN_SECONDS_MAX)
    for group in groups:
        ends = produced[group.script.name]
        while True:
            group.look()
            missing = sum(ends.values()) - len(set(group.processed))
            if missing <= 0:
                break
            if until.passed:
                break
            time.sleep(0.1)
