"""Random programs of a consumer (`tests.client.programs`) whose broker is killed, stands still and answers late, and
whose connections break: no record that was not processed is ever lost.

`MOLDAU_SEED` repeats a program; `MOLDAU_TIER=long` runs 1,000 new ones.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from harness.proxy import Proxy
from harness.tiers import LONG, seeds_or, sized
from moldau import Admin, Producer, TopicPartition
from tests.client.programs.running import Program
from tests.end_to_end.faults import Faults
from tests.replacing import Instead, replaced

PROGRAMS = sized(12, 12, 1_000)
SEEDS = seeds_or(14, PROGRAMS)
TOPIC = "orders"
REQUEST_BYTES_MAX = 2_000
"""A request breaks within so many bytes: those of a consumer are small."""
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "10",
    "group.consumer.heartbeat.interval.ms": "20",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.session.timeout.ms": "5000",
    "group.consumer.session.timeout.ms": "5000",
}
"""A member that could not tell its group that it leaves has its partitions for 5 s at most."""


class Scene(NamedTuple):
    broker: Broker
    proxy: Proxy
    ends: Mapping[TopicPartition, int]
    admin: Admin


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A broker behind a proxy, and a topic with batches of all sizes."""
    chance = random.Random(14)
    ends = {TopicPartition(TOPIC, number): chance.randint(20, 60) for number in range(3)}
    with Proxy() as proxy:
        settings = {**SETTINGS, "advertised.listeners": f"PLAINTEXT://{proxy.address}"}
        broker = Broker(tmp_path_factory.mktemp("broker"), settings)
        broker.start()
        try:
            proxy.target = broker.address
            admin = Admin(proxy.address, request_timeout_ms=1_000, default_api_timeout_ms=300_000)
            with admin, Producer(proxy.address) as producer:
                admin.create_topic(TOPIC, partitions=3)
                for tp, end in ends.items():
                    for number in range(end):
                        producer.send(TOPIC, b"%d" % number * chance.randint(1, 30), partition=tp.partition)
                        if chance.random() < 0.2:
                            producer.flush()
                producer.flush(stretched())
                yield Scene(broker, proxy, ends, admin)
        finally:
            broker.kill()


def run(scene: Scene, seed: int) -> None:
    faults = Faults(scene.broker, scene.proxy, seed, request_bytes_max=REQUEST_BYTES_MAX)
    program = Program(seed, scene.proxy.address, scene.ends, scene.admin, faults.each)
    try:
        program.run()
    except Exception as failure:
        failure.add_note(f"MOLDAU_SEED={seed}\n" + "\n".join(program.trace))
        raise


@pytest.mark.timeout(0 if LONG else 300)
def test_no_program_loses_a_record_whatever_befalls_its_broker(scene: Scene) -> None:
    for seed in SEEDS:
        run(scene, seed)


async def _skip_what_was_asked_for(original: Any, poller: Any, failure: Any, topics: Any = ()) -> None:
    for state in poller.assigned.values():
        if state.position is not None:
            state.start(state.position + 1)
    await original(poller, failure, topics)


@pytest.mark.bug
def test_programs_find_a_consumer_that_skips_what_a_broken_connection_was_to_bring(scene: Scene) -> None:
    bug = Instead("moldau.client.consuming.polling:Poller._failed", _skip_what_was_asked_for)

    def run_all() -> None:
        for seed in range(14, 34):
            run(scene, seed)

    with replaced([bug]), pytest.raises(AssertionError):
        run_all()
