"""A run of the script: both brokers started side by side, played to side by side, and their outcomes compared.

Some steps wait for time to pass, and a machine that stands still for seconds turns them round. So a script with
differences is played again, to fresh brokers, and a difference counts when it comes up in two plays of at most three:
what a broker answers wrongly, it answers wrongly again.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness import apache_kafka
from harness.apache_kafka import FOR_KAFKA
from harness.listening import Broker
from tests.differential.accepted import ACCEPTED
from tests.differential.brokers import ONE_AT_A_TIME, SETTINGS, running_moldau
from tests.differential.comparing import Difference, compare, weigh
from tests.differential.playing import Outcome, Player
from tests.differential.script import Step

PLAYS_MAX = 3
Place: TypeAlias = tuple[str, str]
"""A step's name and a path in its reply."""


@dataclass
class Run:
    """What each step came to on both sides, and where they differ."""

    steps: Sequence[Step]
    kafka: list[Outcome]
    ours: list[Outcome]
    used_rules: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.found = [compare(*one, self.used_rules) for one in zip(self.steps, self.kafka, self.ours, strict=True)]

    @property
    def differences(self) -> list[Difference]:
        return [difference for found in self.found for difference in found]

    @property
    def rest(self) -> list[Difference]:
        """The differences that nobody accepted."""
        return weigh(self.differences, ACCEPTED)[0]


def confirmed(runs: Sequence[Run]) -> set[Place]:
    """Where two of these runs differ."""
    times = Counter(place for run in runs for place in {place_of(difference) for difference in run.rest})
    return {place for place, count in times.items() if count >= 2}


def place_of(difference: Difference) -> Place:
    return difference.step.name, difference.path


def play_until_sure(steps: Sequence[Step], play: Callable[[Sequence[Step]], Run]) -> list[Run]:
    """One run without a difference; else runs until a difference is confirmed, or none can be."""
    runs = [play(steps)]
    while runs[0].rest and len(runs) < PLAYS_MAX and not confirmed(runs):
        runs.append(play(steps))
    return runs


def kafka() -> contextlib.AbstractContextManager[Broker]:
    return apache_kafka.running({**SETTINGS, **FOR_KAFKA, **ONE_AT_A_TIME})


def moldau() -> contextlib.AbstractContextManager[Broker]:
    return running_moldau(SETTINGS)


@contextlib.contextmanager
def both(kafka_twice: bool = False) -> Iterator[tuple[Broker, Broker]]:
    """Kafka, and our broker or a second Kafka."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        starting: list[Any] = []
        for start in (kafka, kafka if kafka_twice else moldau):
            context = start()
            starting.append(threads.submit(context.__enter__))
            stack.push(context)
        yield starting[0].result(), starting[1].result()


def play(steps: Sequence[Step], kafka_twice: bool = False) -> Run:
    """Start, play, stop, compare."""
    with both(kafka_twice) as brokers, ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(lambda broker: Player(broker).play(steps), brokers))
    return Run(steps, *outcomes)
