"""Workers copy a topic in transactions while they are killed, frozen and replaced, and the broker is killed too.

`Script` is drawn from a seed before anything runs: at which step of a transaction a worker is struck, how, and what
takes its place. Which worker it is depends on who comes to that step first, and on the machine.
"""

import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness.patience import Deadline
from moldau.client.administration.admin import Admin
from tests.clients.referee import BrokerOfATest, kill_and_start, of_its_own
from tests.clients.transactions.judging import faults_of_a_copy
from tests.clients.transactions.reading import Feeder, contents, size
from tests.clients.transactions.workers import FENCED, HUNG, Worker, wait_for

SOURCE, COPY, GROUP = "in", "out", "copiers"
PARTITIONS = 4
"""One more than places: a worker whose place was taken is a member until it is missed, and notices nothing without a
partition."""
PLACES = {"classic": ("first", "second", ""), "consumer": ("", "", "")}
"""Instances of the places. A classic group stands still until a member that was killed is missed, unless another one
takes its instance over; a newer one hands out its partitions then, and the others go on."""
STEPS = ("began", "wrote", "offsets", "committed")
BROKER = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.state.log.num.partitions": "4",
    "offsets.topic.num.partitions": "4",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
TIMEOUT_MS = 3000
SESSION_S = 6.0
SEEDS_MAX = 3
NOTHING_SHOWN = "no stroke hit a transaction: this showed nothing"
STEP_SECONDS_MAX = 20
END_SECONDS_MAX = 180

Command = Callable[[str, str], list[str | Path]]
"""The command of a worker, from the broker's address and its settings as JSON."""


class Stroke(NamedTuple):
    """What happens to the worker that comes to `step` next, `after_s`.

    `kill`: it is killed and replaced. `usurp`: it is frozen, replaced, and woken; it must notice. `freeze`: it is
    frozen for longer than its session lasts, and woken. A replacement has a new transactional id if it is `fresh`.
    """

    what: str
    step: str
    after_s: float
    fresh: bool
    broker_too: bool


def drawn(seed: int, kills: int, others: int) -> list[Stroke]:
    chance = random.Random(seed)
    kinds = ["kill"] * kills + ["usurp", "freeze"] * others
    chance.shuffle(kinds)
    strokes = []
    for number, kind in enumerate(kinds):
        fresh = kind == "kill" and chance.random() < 0.4
        after_s = chance.choice((0.0, chance.uniform(0, 0.03)))
        strokes.append(Stroke(kind, chance.choice(STEPS), after_s, fresh, kind == "kill" and number % 3 == 2))
    return strokes


@dataclass
class Place:
    """A place of the group that one worker after another takes; with an `instance` the group keeps it for a while."""

    instance: str
    transactional_id: str
    worker: Worker


@dataclass
class Copiers:
    broker: BrokerOfATest
    command: Command
    folder: Path
    protocol: str
    started: int = 0
    places: list[Place] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def start(self, instance: str, transactional_id: str) -> Worker:
        self.started += 1
        asked = {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TIMEOUT_MS,
            "group.instance.id": instance,
            "group.protocol": self.protocol,
            "linger_ms": 15,
        }
        log = self.folder / f"worker-{self.started}.log"
        return Worker(self.command(self.broker.address, json.dumps(asked)), log)

    def fill(self, instances: Sequence[str]) -> None:
        for number, instance in enumerate(instances):
            transactional_id = f"copier-{number}"
            self.places.append(Place(instance, transactional_id, self.start(instance, transactional_id)))

    def replace(self, place: Place, fresh: bool) -> None:
        if fresh:
            place.transactional_id = f"copier-{self.started}-fresh"
        place.worker = self.start(place.instance, place.transactional_id)

    def revive(self) -> None:
        """Put others in the place of those that found that they can go on no more."""
        for place in self.places:
            if place.worker.ended:
                code = place.worker.wait_for_its_end(0)
                if code not in (FENCED, HUNG):
                    self.faults.append(f"a worker ended with {code}: {place.worker.errors()}")
                place.worker.kill()
                self.replace(place, fresh=False)

    def strike(self, stroke: Stroke) -> None:
        self.revive()
        workers = [place.worker for place in self.places]
        worker = wait_for(workers, stroke.step, STEP_SECONDS_MAX) or workers[0]
        place = next(place for place in self.places if place.worker is worker)
        time.sleep(stroke.after_s)
        if stroke.what == "kill":
            worker.kill()
            if stroke.broker_too:
                kill_and_start(self.broker)
            self.replace(place, stroke.fresh)
        elif stroke.what == "usurp":
            self.usurp(place)
        else:
            worker.freeze()
            time.sleep(SESSION_S + 1)
            worker.wake()

    def usurp(self, place: Place) -> None:
        zombie = place.worker
        zombie.freeze()
        self.replace(place, fresh=False)
        if "ready" not in place.worker.said and not place.worker.wait_until_it_says("ready", 60):
            self.faults.append(f"no replacement came up: {place.worker.errors()}")
        zombie.wake()
        if (code := zombie.wait_for_its_end(60)) not in (FENCED, HUNG):
            self.faults.append(f"a zombie went on (exit code {code}): {zombie.errors()}")
        zombie.kill()

    def end(self) -> None:
        for place in self.places:
            place.worker.kill()


def copy_under_strokes(
    broker: BrokerOfATest, command: Command, folder: Path, strokes: Sequence[Stroke], protocol: str
) -> list[str]:
    """What is wrong with the copy after all that; nothing, if it is exact."""
    with Admin(broker.address) as admin:
        admin.create_topic(SOURCE, partitions=PARTITIONS)
        admin.create_topic(COPY, partitions=PARTITIONS)
    copiers = Copiers(broker, command, folder, protocol)
    feeder = Feeder(broker.address, SOURCE, PARTITIONS)
    try:
        copiers.fill(PLACES[protocol])
        for stroke in strokes:
            copiers.strike(stroke)
        fed = feeder.stop()
        until = Deadline(END_SECONDS_MAX)
        while size(contents(broker.address, COPY, PARTITIONS)) < fed and not until.passed:
            copiers.revive()
            time.sleep(0.2)
    finally:
        feeder.stop()
        copiers.end()
    source = contents(broker.address, SOURCE, PARTITIONS)
    faults = [*copiers.faults, *faults_of_a_copy(source, contents(broker.address, COPY, PARTITIONS))]
    if size(source) != fed:
        faults.append(f"{fed} records were sent, {size(source)} are there")
    if faults:
        faults += [f"{place.transactional_id}: {place.worker.errors()}" for place in copiers.places]
    elif size(contents(broker.address, COPY, PARTITIONS, "read_uncommitted")) <= fed:
        faults.append(NOTHING_SHOWN)
    return faults


def check_copy(command: Command, folder: Path, seed: int, kills: int, protocol: str, brokers: int) -> None:
    """With a broker of its own, workers that are killed so often, and the fewer other strokes: the copy is exact. Where
    the machine was so busy that no stroke hit a transaction, all is done once more with the next seeds."""
    for one in range(seed, seed + SEEDS_MAX):
        place = folder / str(one)
        place.mkdir()
        broker = of_its_own(place, BROKER, brokers)
        broker.start()
        try:
            faults = copy_under_strokes(broker, command, place, drawn(one, kills, -(-kills // 10)), protocol)
            broker.stop()
        finally:
            broker.kill()
        if faults != [NOTHING_SHOWN]:
            break
    assert not faults, "\n".join([f"MOLDAU_SEED={one}", *faults])
