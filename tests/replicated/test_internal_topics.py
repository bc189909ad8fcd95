"""The topics of groups and transactions in a cluster: broker processes that share a file, and too few of them."""

import time
from pathlib import Path

import pytest

from harness.local_cluster import started
from harness.patience import wait_until
from moldau import Admin, Consumer, Producer
from moldau.cli import main
from moldau.config.internal_topics import FACTOR_SETTINGS, MIN_ISR_SETTING
from moldau.errors import ErrorCode, KafkaError
from moldau.names import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.replicated.broker_processes import broker_processes

SAID_EVERY_S = 30
ONE_REPLICA = {**dict.fromkeys(FACTOR_SETTINGS.values(), "1"), MIN_ISR_SETTING: "1"}


def replicas(address: str) -> dict[str, set[int]]:
    """How many replicas the partitions of the internal topics have."""
    with Admin(address) as admin:
        topics = admin.list_topics(internal=True)
    return {
        name: {len(part.replicas) for part in topics[name].partitions.values()} for name in INTERNAL_TOPICS & {*topics}
    }


def test_they_wait_for_as_many_brokers_as_they_have_replicas_and_the_log_says_so(tmp_path: Path) -> None:
    with broker_processes(tmp_path, 3) as brokers:
        for one in brokers[:2]:
            one.start()
        address, began_s = brokers[0].address, time.monotonic()
        with Admin(address, default_api_timeout_ms=1500) as admin:
            with pytest.raises(KafkaError, match=missing(OFFSETS_TOPIC)) as refused:
                admin.group_offsets("g")
            assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            with pytest.raises(KafkaError, match=missing(TRANSACTIONS_TOPIC)) as refused:
                admin.transactions.describe("t")
            assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not replicas(address)
        log = brokers[0].log()
        for topic in INTERNAL_TOPICS:
            said = log.count(f"the topic {topic} cannot be created yet")
            assert 1 <= said <= 1 + (time.monotonic() - began_s) / SAID_EVERY_S, "whoever asks how often"
            assert FACTOR_SETTINGS[topic] in log

        brokers[2].start()
        with Producer(address, transactional_id="t") as producer, producer.transaction():
            producer.send("t", b"x")
        with Consumer(
            address, group_id="g", auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            consumer.subscribe(["t"])
            assert wait_until(lambda: len(consumer.poll(500)) == 1)
            consumer.commit()
        assert replicas(address) == {OFFSETS_TOPIC: {3}, TRANSACTIONS_TOPIC: {3}}


def missing(topic: str) -> str:
    needed = rf"it needs 3 running brokers \({FACTOR_SETTINGS[topic]}\), and .* has 2"
    return rf"The topic {topic} cannot be created yet: .*{needed}"


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.check), 2])
def test_a_local_cluster_of_fewer_brokers_has_a_replica_on_each(tmp_path: Path, count: int) -> None:
    with started(tmp_path, "--embedded", "--brokers", str(count)) as (_, addresses):
        with Producer(addresses[0], transactional_id="t") as producer, producer.transaction():
            producer.send("t", b"x")
        with Admin(addresses[0]) as admin:
            admin.group_offsets("g")
            described = admin.configs.describe("topic", TRANSACTIONS_TOPIC)
        assert [one.value for one in described if one.name == "min.insync.replicas"] == ["1"]
        assert replicas(addresses[0]) == {OFFSETS_TOPIC: {count}, TRANSACTIONS_TOPIC: {count}}


@pytest.mark.check  # three brokers more
def test_more_replicas_are_added_to_those_that_have_one_and_take_over_when_it_dies(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with broker_processes(tmp_path, 3) as brokers:
        first = brokers[0]
        first.settings |= ONE_REPLICA
        first.start()
        with Admin(first.address) as admin:
            admin.create_topic("t", partitions=2)
        transact(first.address, b"one")
        assert read(first.address, 1) == [b"one"]
        first.stop()
        for name in ONE_REPLICA:
            del first.settings[name]
        for one in brokers:
            one.start()
        everyone = ",".join(one.address for one in brokers)

        commands = hints(everyone, capfd)
        assert [command.split()[3] for command in commands] == [OFFSETS_TOPIC, TRANSACTIONS_TOPIC]
        for command in [*commands, "moldau topics alter t --replication-factor 3"]:
            assert main.run([*command.split()[1:], "-b", first.address]) == 0
        assert hints(everyone, capfd) == []
        assert replicas(everyone) == {OFFSETS_TOPIC: {3}, TRANSACTIONS_TOPIC: {3}}
        with Admin(everyone) as admin:
            assert wait_until(lambda: all(isr == {1, 2, 3} for isr in in_sync(admin)))
            assert [one.value for one in admin.topic_configs(TRANSACTIONS_TOPIC) if one.name == MIN_ISR] == ["2"]

        first.kill()
        left = ",".join(one.address for one in brokers[1:])
        transact(left, b"two")
        assert read(left, 1) == [b"two"], "the group has the offsets it committed before"


MIN_ISR = "min.insync.replicas"


def hints(address: str, capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The commands that `moldau cluster status` names."""
    capfd.readouterr()
    assert main.run(["cluster", "status", "-b", address]) == 0
    return [line.partition(": ")[2] for line in capfd.readouterr().out.splitlines() if "should have" in line]


def in_sync(admin: Admin) -> list[set[int]]:
    topics = admin.list_topics(internal=True).values()
    return [set(part.isr) for topic in topics for part in topic.partitions.values()]


def transact(address: str, value: bytes) -> None:
    with Producer(address, transactional_id="t") as producer, producer.transaction():
        producer.send("t", value, partition=0)


def read(address: str, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    with Consumer(address, group_id="g", auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.subscribe(["t"])
        assert wait_until(lambda: values.extend(one.value for one in consumer.poll(500)) or len(values) >= count)  # type: ignore[func-returns-value]
        consumer.commit()
    return values
