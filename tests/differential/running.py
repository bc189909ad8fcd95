"""Plays of the script: to our broker, in virtual time or as a process, and to a live Kafka; each judged by a recording.

In virtual time a play is exact. Beside it, some steps wait for time to pass, and a machine that stands still for
seconds turns them round. So a play in real time that has differences is repeated with a fresh broker, and a difference
counts when it comes up in two plays of at most three: what a broker answers wrongly, it answers wrongly again.
"""

import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness import apache_kafka
from harness.apache_kafka import FOR_KAFKA
from harness.listening import Broker
from moldau.simulation.network import Weather
from moldau.simulation.ports import START_MS
from moldau.simulation.world import PORT, World
from tests.differential import playing
from tests.differential.accepted import ACCEPTED
from tests.differential.batches import NOW
from tests.differential.brokers import ONE_AT_A_TIME, SETTINGS, running_moldau
from tests.differential.comparing import Accepted, Difference, compare, weigh
from tests.differential.normalising import normalised
from tests.differential.playing import Outcome, Player
from tests.differential.recording import Recording
from tests.differential.script import Step, steps_of

PLAYS_MAX = 3
HOST = "127.0.0.1"
DELAY_MS_MAX = 0.5
"""Every message takes a little: time passes from step to step, as it does with a broker of one's own machine."""
Place: TypeAlias = tuple[str, str]
"""A step's name and a path in its reply."""


@dataclass
class Run:
    """What each step came to with a broker, normalised, beside what was recorded, and where the two differ."""

    recording: Recording
    steps: Sequence[Step]
    outcomes: Sequence[Outcome]
    accepted: Sequence[Accepted] = ()
    used_rules: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        there = self.recording.outcomes
        self.found = [
            compare(step, there[step.name], outcome, self.used_rules) if step.name in there else []
            for step, outcome in zip(self.steps, self.outcomes, strict=True)
        ]

    @property
    def differences(self) -> list[Difference]:
        return [difference for found in self.found for difference in found]

    @property
    def rest(self) -> list[Difference]:
        """The differences that nobody accepted."""
        return weigh(self.differences, self.accepted)[0]


def judged(recording: Recording, steps: Sequence[Step], outcomes: Sequence[Outcome], ours: bool = True) -> Run:
    """The outcomes of these steps, as a broker gave them, beside the recording; of the steps that Kafka was asked."""
    by_name = {step.name: outcome for step, outcome in zip(steps, outcomes, strict=True)}
    asked = steps_of(recording.version, steps)
    rules: set[str] = set()
    normal = [normalised(step.api.name, by_name[step.name], rules) for step in asked]
    return Run(recording, asked, normal, ACCEPTED[recording.version] if ours else (), rules | recording.rules)


def confirmed(runs: Sequence[Run]) -> set[Place]:
    """Where two of these runs differ."""
    times = Counter(place for run in runs for place in {place_of(difference) for difference in run.rest})
    return {place for place, count in times.items() if count >= 2}


def place_of(difference: Difference) -> Place:
    return difference.step.name, difference.path


def play_until_sure(play: Callable[[], Run]) -> list[Run]:
    """One run without a difference; else runs until a difference is confirmed, or none can be."""
    runs = [play()]
    while runs[0].rest and len(runs) < PLAYS_MAX and not confirmed(runs):
        runs.append(play())
    return runs


def play_to_kafka(version: str, steps: Sequence[Step]) -> list[Outcome]:
    settings = {**SETTINGS, **FOR_KAFKA, **ONE_AT_A_TIME}
    with apache_kafka.running(settings, version=version) as broker:
        return playing.play(broker, steps)


def play_to_process(steps: Sequence[Step]) -> list[Outcome]:
    """To our broker as a user starts it."""
    with running_moldau(SETTINGS) as broker:
        return playing.play(broker, steps)


def play_in_virtual_time(steps: Sequence[Step]) -> list[Outcome]:
    """To our broker on a simulated loop, network and disk: nothing waits, and every play is the same."""

    async def scenario(world: World) -> list[Outcome]:
        world.host(HOST).clock.skew_ms = NOW - START_MS
        await world.start_broker(HOST, **{name.replace(".", "_"): value for name, value in SETTINGS.items()})
        player = Player(Broker("Moldau", HOST, PORT), stretch=lambda seconds: seconds)
        outcomes = await world.on(HOST, player.play(steps))
        await world.stop_broker(HOST)
        return outcomes

    with levels_of_loggers_kept():
        return World(1, Weather(DELAY_MS_MAX)).run(scenario)


@contextlib.contextmanager
def levels_of_loggers_kept() -> Iterator[None]:
    """A broker's clients may change levels, which here are those of the tests' own process."""
    others = logging.Logger.manager.loggerDict.values()
    loggers = [logging.root, *(one for one in others if isinstance(one, logging.Logger))]
    before = [(one, one.level) for one in loggers]
    logging.root.setLevel(logging.INFO)
    try:
        yield
    finally:
        for one, level in before:
            one.setLevel(level)
