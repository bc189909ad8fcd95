"""What every client with transactions must be able to do with the broker: one behaviour kit, for all of them; and with
three brokers, of which one after the other is killed meanwhile.

Three clients get three brokers that nobody kills. kafka-python, if it cannot connect to the coordinator that it has
just looked up, drops the request for it and waits for ever. @platformatic/kafka commits offsets with the coordinator
that it found first, and gives up if another broker is the coordinator by then. KafkaJS sends InitProducerId and EndTxn
once: if the connection ends meanwhile, its transaction can be neither committed nor aborted any more.

@platformatic/kafka hands out aborted records to whoever wants committed ones, and cannot take an id over: it says that
it was producer 0 before.
"""

import sys
import uuid
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import pytest

from harness.replicated_brokers import ReplicatedBrokers
from moldau.client.administration.admin import Admin
from moldau.errors import KafkaError
from tests import versions
from tests.clients.client import DRIVERS, Client, ClientFailed
from tests.clients.referee import SIZES, BrokerOfATest, of_its_own
from tests.clients.scenarios import group, numbered, soon, values
from tests.clients.test_java_client import QUICK_START
from tests.clients.transactions.reading import contents
from tests.environments import java_class, kafka_jars, node_with, python_with

__all__ = ["group"]

pytestmark = pytest.mark.check

PYTHON = {
    "confluent-2.8": (versions.CONFLUENT_BEFORE, "confluent.py"),
    "confluent": (versions.CONFLUENT, "confluent.py"),
    "aiokafka": (versions.AIOKAFKA, "aio.py"),
    "kafka-python-2": (versions.KAFKA_PYTHON_BEFORE, "kafka_python.py"),
    "kafka-python-3": (versions.KAFKA_PYTHON, "kafka_python.py"),
}
NODE = {
    "kafkajs": (versions.KAFKAJS, "kafkajs.mjs"),
    "platformatic": (versions.PLATFORMATIC, "platformatic.mjs"),
}
OURS = {"ours": "sync", "ours-aio": "aio"}
SPARED = ("kafka-python-2", "kafka-python-3", "platformatic", "kafkajs")
ALL = [*OURS, *PYTHON, *NODE, "java"]
NEW_EPOCHS = (*OURS, "java")
"""Clients that end transactions by version 2 of the protocol (KIP-890): each takes its producer to a new epoch."""
WHOLLY = pytest.mark.parametrize("client", [kind for kind in ALL if kind != "platformatic"], indirect=True)
BROKER = {"transaction.state.log.num.partitions": "4"}


@pytest.fixture(scope="module", params=SIZES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerOfATest]:
    ours = of_its_own(tmp_path_factory.mktemp("broker"), BROKER, request.param)
    ours.start()
    try:
        yield ours
        ours.stop()
    finally:
        ours.kill()


@pytest.fixture(scope="module", params=ALL)
def client(
    request: pytest.FixtureRequest, broker: BrokerOfATest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    command: list[str | Path]
    environment = {}
    if face := OURS.get(request.param):
        command = [sys.executable, DRIVERS / "ours.py", face]
    elif pins := PYTHON.get(request.param):
        command = [python_with(pins[0]), DRIVERS / pins[1]]
    elif pins := NODE.get(request.param):
        node, modules = node_with(pins[0])
        command, environment = [node, DRIVERS / pins[1]], {"NODE_PATH": str(modules)}
    else:
        command = [
            "java",
            *QUICK_START,
            "-cp",
            java_class(DRIVERS / "Driver.java", kafka_jars(versions.KAFKA)),
            "Driver",
        ]
    strikes = isinstance(broker, ReplicatedBrokers) and request.param not in SPARED and broker.being_killed()
    with strikes or nullcontext():
        started = Client(command, broker.address, tmp_path_factory.mktemp("client"), environment)
        yield started
        started.close()


@pytest.fixture
def topic(broker: BrokerOfATest) -> str:
    """A topic of one partition. It waits for a broker that was killed: a topic needs as many brokers as replicas."""
    name = f"events-{uuid.uuid4().hex[:12]}"

    def exists() -> bool:
        with suppress(KafkaError), Admin(broker.address) as admin:
            if name in admin.list_topics():
                return True
            admin.create_topic(name, partitions=1)
        return False

    assert soon(exists)
    return name


@pytest.fixture
def name() -> str:
    return f"transactional-{uuid.uuid4().hex[:12]}"


def test_what_is_committed_can_be_read_and_what_is_aborted_cannot(
    client: Client, broker: BrokerOfATest, topic: str, name: str
) -> None:
    parts = [numbered(first, 10) for first in (0, 10, 20)]
    for part, commits in zip(parts, (True, False, True), strict=True):
        client.begin(name, name)
        client.write(name, topic, part)
        client.end(name, commits)
    read = partial(contents, broker.address, topic, 1)
    assert soon(lambda: [value for _, value in read()[0]] == [m.value for m in (*parts[0], *parts[2])])
    assert [value for _, value in read("read_uncommitted")[0]] == [m.value for part in parts for m in part]


@pytest.mark.parametrize(
    ("client", "epoch"), [(kind, 3 if kind in NEW_EPOCHS else 0) for kind in ALL], indirect=["client"]
)
def test_a_transaction_ends_by_the_version_that_its_client_knows(
    client: Client, broker: BrokerOfATest, topic: str, name: str, epoch: int
) -> None:
    for first, commits in ((0, True), (10, False), (20, True)):
        client.begin(name, name)
        client.write(name, topic, numbered(first, 10))
        client.end(name, commits)
    with Admin(broker.address) as admin:
        assert soon(lambda: admin.transactions.describe(name).producer_epoch >= epoch)
        if not isinstance(broker, ReplicatedBrokers):  # after a lost answer a producer takes a new epoch, too
            assert admin.transactions.describe(name).producer_epoch == epoch


@WHOLLY
def test_who_wants_committed_records_gets_those_and_no_others(
    client: Client, topic: str, group: str, name: str
) -> None:
    parts = [numbered(first, 10) for first in (0, 10, 20, 30)]
    for part, commits in zip(parts, (True, False, True, False), strict=True):
        client.begin(name, name)
        client.write(name, topic, part)
        client.end(name, commits)
    client.produce(topic, last := numbered(40, 10))
    client.subscribe(topic, group, "read_committed")
    assert values(client.take(30)) == values([*parts[0], *parts[2], *last])
    client.unsubscribe()
    client.subscribe(topic, f"{group}-dirty", "read_uncommitted")
    assert values(client.take(50)) == values([message for part in (*parts, last) for message in part])
    client.unsubscribe()


def test_a_group_goes_on_where_a_committed_transaction_left_it_not_an_aborted_one(
    client: Client, topic: str, group: str, name: str
) -> None:
    client.produce(topic, numbered(0, 40))
    client.subscribe(topic, group, "read_committed")
    client.take(20)
    for commits, committed in ((False, 0), (True, 20)):
        client.begin(name, name)
        client.send_offsets(name, group)
        client.end(name, commits)
        assert soon(lambda expected=committed: client.committed(group, topic) == expected)  # type: ignore[misc]
    client.unsubscribe()


@WHOLLY
def test_a_second_producer_with_the_same_id_fences_the_first(client: Client, topic: str, group: str, name: str) -> None:
    client.begin("first", name)
    client.write("first", topic, numbered(0, 10))
    client.begin("second", name)
    with pytest.raises(ClientFailed):
        client.end("first", commits=True)
    client.write("second", topic, second := numbered(10, 10))
    client.end("second", commits=True)
    client.subscribe(topic, group, "read_committed")
    assert values(client.take(10)) == values(second)
    client.unsubscribe()
