"""A run of the script: both brokers started side by side, played to side by side, and their outcomes compared."""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.differential import apache_kafka
from tests.differential.brokers import FOR_KAFKA, SETTINGS, Broker, running_moldau
from tests.differential.comparing import Difference, compare
from tests.differential.playing import Outcome, Player
from tests.differential.script import Step


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


def kafka() -> contextlib.AbstractContextManager[Broker]:
    return apache_kafka.running({**SETTINGS, **FOR_KAFKA})


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
