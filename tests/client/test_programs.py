"""Random programs of poll, iteration, break, raise, seek, pause, commit, close and rebalance never lose a record.

`MOLDAU_SEED=N` runs the program of that seed alone; `MOLDAU_TIER=long` runs 1,000.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from harness.tiers import seeds_or, sized
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from moldau.testing import Broker
from tests.client.programs.running import Program
from tests.replacing import Instead, nothing, replaced, returns

TOPIC = "orders"
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": 10,
    "group.consumer.heartbeat.interval.ms": 20,
    "group.consumer.assignment.interval.ms": 0,
}
PROGRAMS = sized(12, 40, 1_000)
SEEDS = seeds_or(0, PROGRAMS)


class Scene(NamedTuple):
    bootstrap: str
    ends: Mapping[TopicPartition, int]
    admin: Admin


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """A topic with batches of all sizes, which all programs read, each as a group of its own."""
    chance = random.Random(14)
    with Broker(SETTINGS) as broker, Admin(broker.address) as admin:
        broker.create_topic(TOPIC, 3)
        ends = {TopicPartition(TOPIC, number): chance.randint(20, 60) for number in range(3)}
        with Producer(broker.address) as producer:
            for tp, end in ends.items():
                for number in range(end):
                    producer.send(TOPIC, b"%d" % number * chance.randint(1, 30), partition=tp.partition)
                    if chance.random() < 0.2:
                        producer.flush()
        yield Scene(broker.address, ends, admin)


def run(scene: Scene, seed: int) -> None:
    program = Program(seed, *scene)
    try:
        program.run()
    except Exception as failure:
        failure.add_note(f"MOLDAU_SEED={seed}\n" + "\n".join(program.trace))
        raise


def test_no_program_loses_a_record_that_it_has_not_processed(scene: Scene) -> None:
    for seed in SEEDS:
        run(scene, seed)


def _take_up_to_the_end(come_back: Any, handout: Any) -> dict[TopicPartition, int]:
    come_back(handout)
    return {}


def _commit_one_more(original: Any, core: Any, thread: Any, record: Any) -> Any:
    return thread.run(core.commit, {record.topic_partition: record.offset + 2})


COMMITS, HANDOUT = "moldau.client.consuming.commits:Commits", "moldau.client.consuming.fetched.handout:Handout"
BUGS = {
    "automatic commits cover all that was handed out": Instead(f"{COMMITS}.processed", lambda _, one: one.delivered()),
    "automatic commits are not made": Instead(f"{COMMITS}.quietly", nothing),
    "what a left loop had not asked for is dropped": Instead(f"{HANDOUT}.come_back", _take_up_to_the_end),
    "a loop goes on with what was fetched before a seek": Instead(f"{HANDOUT}.drop", nothing),
    "a record's commit covers the next one": Instead(
        "moldau.client.consuming.consumer:_commit_record", _commit_one_more
    ),
    "a record counts as processed once it was handed out": Instead(f"{HANDOUT}.unprocessed", returns({})),
}
LOOKED_AT = range(60)


@pytest.mark.bug
@pytest.mark.parametrize("bug", BUGS)
def test_programs_find(scene: Scene, bug: str) -> None:
    def run_all() -> None:
        for seed in LOOKED_AT:
            run(scene, seed)

    with replaced([BUGS[bug]]), pytest.raises(AssertionError):
        run_all()
