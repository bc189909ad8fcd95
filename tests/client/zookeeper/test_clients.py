"""Producers and consumers that know a ZooKeeper alone, against a broker that is registered there."""

import asyncio
import re
import threading
from collections.abc import Callable

import pytest

from harness.brokers import Broker
from harness.pages import examples
from harness.patience import wait_until
from moldau import aio
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.streams.topic_filter import TopicFilter
from moldau.client.producing.producer import Producer
from moldau.errors import CommitFailed, ConfigError, KafkaError, RebalanceInProgress
from moldau.metadata_store.store import Create, Delete, Set
from moldau.names import OffsetAndMetadata, TopicPartition
from tests.client.zookeeper.conftest import Registry, fill

EARLIEST = "earliest"


def read(consumer: Consumer, count: int) -> list[Record]:
    records: list[Record] = []
    assert wait_until(lambda: bool(records.extend(consumer.poll(200))) or len(records) >= count), len(records)
    return records


def test_a_producer_and_a_consumer_find_the_brokers_by_the_registry(connect: str, broker: Broker, topic: str) -> None:
    with Producer(zookeeper_connect=connect) as producer:
        assert f"at ZooKeeper {connect}" in repr(producer)
        producer.send(topic, b"hello")
    with Consumer({"zookeeper.connect": connect, "auto.offset.reset": "smallest"}) as consumer:
        consumer.assign([(topic, 0)])
        assert read(consumer, 1)[0].value == b"hello"


def test_a_producer_uses_new_partitions_as_soon_as_the_registry_has_them(
    connect: str, broker: Broker, topic: str
) -> None:
    with Admin(broker.address) as admin, Producer(zookeeper_connect=connect) as producer:
        admin.create_topic(topic, partitions=1)
        producer.send(topic, b"before").result(30)
        admin.create_partitions(topic, 3)

        def spread() -> bool:
            sent = [producer.send(topic, b"after", key=b"%d" % number) for number in range(20)]
            return len({one.result(30).partition for one in sent}) == 3

        assert wait_until(spread), "its metadata were good for five minutes"


def test_a_client_without_a_registered_broker_says_so(connect: str, broker: Broker, topic: str) -> None:
    with pytest.raises(KafkaError, match=r"no broker with a listener for SSL is registered in ZooKeeper at file:"):
        with Producer(
            zookeeper_connect=connect, security_protocol="SSL", max_block_ms=300, delivery_timeout_ms=300
        ) as producer:
            producer.send(topic, b"")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"bootstrap_servers": "a:1", "zookeeper_connect": "zk:1"}, "both bootstrap_servers and zookeeper_connect"),
        ({"zookeeper_connect": "zk:x"}, "is not of the form HOST:PORT"),
        ({"zookeeper_connect": "zk:1", "group_protocol": "consumer"}, "group_protocol has no effect"),
        ({"zookeeper_connect": "zk:1", "group_instance_id": "a"}, "group_instance_id has no effect"),
        ({"zookeeper_connect": "zk:1", "group_id": "a/b"}, "cannot be the name of a node"),
        ({"zookeeper_connect": "zk:1", "zookeeper_layout": "0.6"}, "is not one of 0.8, 0.7"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Consumer(**settings)  # type: ignore[arg-type]


def test_the_names_of_older_clients_are_understood() -> None:
    names = {
        "zk.connect": "zk:2181/kafka",
        "zk.sessiontimeout.ms": "5000",
        "groupid": "g",
        "autooffset.reset": "smallest",
        "autocommit.interval.ms": "10000",
        "rebalance.max.retries": "7",
    }
    with Consumer(names) as consumer:
        settings = consumer.settings
    assert (settings.zookeeper_connect, settings.zookeeper_session_timeout_ms) == ("zk:2181/kafka", 5000)
    assert (settings.group_id, settings.auto_commit_interval_ms, settings.rebalance_retries_max) == ("g", 10_000, 7)


def test_what_a_group_leaves_in_the_registry(registry: Registry, filled: str, group: str) -> None:
    with Consumer(zookeeper_connect=registry.connect, group_id=group, auto_offset_reset=EARLIEST) as consumer:
        consumer.subscribe(filled)
        assert len(read(consumer, 40)) == 40
        [(member, text)] = registry.children(f"/consumers/{group}/ids").items()
        assert member.startswith(f"{group}_")
        assert text is not None
        assert text.startswith(f'{{"version":1,"subscription":{{"{filled}":1}},"pattern":"static","timestamp":"')
        owners = registry.children(f"/consumers/{group}/owners/{filled}")
        assert owners == dict.fromkeys(["0", "1", "2", "3"], f"{member}-0")
        assert registry.children(f"/consumers/{group}/offsets/{filled}") == {}
        consumer.commit()
        assert registry.children(f"/consumers/{group}/offsets/{filled}") == dict.fromkeys(["0", "1", "2", "3"], "10")
        assert consumer.committed()[TopicPartition(filled, 3)] == OffsetAndMetadata(10)
        with pytest.raises(ConfigError, match="a transaction cannot have the offsets of a group in ZooKeeper"):
            consumer.group_metadata()
    assert registry.children(f"/consumers/{group}/ids") == {}
    assert registry.children(f"/consumers/{group}/owners/{filled}") == {}


def test_the_next_member_goes_on_at_the_offsets_and_one_out_of_range_is_reset(
    registry: Registry, broker: Broker, filled: str, group: str
) -> None:
    with Consumer(zookeeper_connect=registry.connect, group_id=group, auto_offset_reset=EARLIEST) as consumer:
        consumer.subscribe(filled)
        read(consumer, 40)
        consumer.commit()
    fill(broker.address, filled, 4, first=10)
    registry.write([Set(f"/consumers/{group}/offsets/{filled}/2", b"99999")])
    with Consumer(zookeeper_connect=registry.connect, group_id=group, auto_offset_reset=EARLIEST) as consumer:
        consumer.subscribe(filled)
        records = read(consumer, 50)
    offsets = {number: [r.offset for r in records if r.partition == number] for number in range(4)}
    assert offsets == {0: [*range(10, 20)], 1: [*range(10, 20)], 2: [*range(20)], 3: [*range(10, 20)]}


def test_an_offset_that_is_not_a_number_is_an_error_that_names_the_node(
    registry: Registry, filled: str, group: str
) -> None:
    path = f"/consumers/{group}/offsets/{filled}/1"
    parts = path.split("/")[1:]
    above = ["/" + "/".join(parts[: end + 1]) for end in range(1, len(parts))]
    registry.write([*map(Create, above[:-1]), Create(path, b"ten")])
    with Consumer(zookeeper_connect=registry.connect, group_id=group) as consumer:
        consumer.subscribe(filled)
        with pytest.raises(KafkaError, match=f"the node {path} in ZooKeeper has no offset, but 'ten'"):
            read(consumer, 1)


def test_the_layout_of_kafka_0_7(registry: Registry, filled: str, group: str) -> None:
    settings = {"zookeeper_connect": registry.connect, "group_id": group, "zookeeper_layout": "0.7"}
    with Consumer(**settings, auto_offset_reset=EARLIEST) as consumer:  # type: ignore[arg-type]
        consumer.subscribe(filled)
        read(consumer, 40)
        consumer.commit()
        [(member, text)] = registry.children(f"/consumers/{group}/ids").items()
        assert text == f'{{ "{filled}": 1 }}'
        names = [f"1-{number}" for number in range(4)]
        assert registry.children(f"/consumers/{group}/owners/{filled}") == dict.fromkeys(names, f"{member}-0")
        assert registry.children(f"/consumers/{group}/offsets/{filled}") == dict.fromkeys(names, "10")
    former = f"/consumers/{group}/offsets/{filled}"
    registry.write([Delete(f"{former}/1-2"), Create(f"{former}/7-2", b"4")])
    with Consumer(**settings) as consumer:  # type: ignore[arg-type]
        consumer.subscribe(filled)
        assert [record.offset for record in read(consumer, 6)] == [4, 5, 6, 7, 8, 9], "broker 7 had it before"
        consumer.commit()
    assert registry.children(former) == dict.fromkeys(names, "10"), "under its present name alone"


def test_several_streams_have_the_partitions_that_the_registry_says(
    registry: Registry, filled: str, group: str
) -> None:
    consumer = Consumer(zookeeper_connect=registry.connect, group_id=group, auto_offset_reset=EARLIEST)
    streams = consumer.create_message_streams({filled: 2})[filled]
    seen: list[list[Record]] = [[], []]
    threads = [threading.Thread(target=seen[n].extend, args=[streams[n]], daemon=True) for n in range(2)]
    for thread in threads:
        thread.start()
    assert wait_until(lambda: len(registry.children(f"/consumers/{group}/owners/{filled}")) == 4)
    owners = registry.children(f"/consumers/{group}/owners/{filled}")
    assert wait_until(lambda: len(seen[0]) + len(seen[1]) == 40)
    consumer.close()
    for thread in threads:
        thread.join()
    for number in range(2):
        assert all(str(owners[str(record.partition)]).endswith(f"-{number}") for record in seen[number])
    assert [str(owners[str(number)])[-2:] for number in range(4)] == ["-0", "-0", "-1", "-1"]


@pytest.mark.re2
def test_a_new_topic_that_a_filter_selects_is_read_at_once(
    registry: Registry, broker: Broker, fresh: Callable[[], str], group: str
) -> None:
    beginning = fresh() + "-of"
    with Consumer(zookeeper_connect=registry.connect, group_id=group, auto_offset_reset=EARLIEST) as consumer:
        consumer.subscribe(re.compile(f"{beginning}.*"))
        consumer.poll(1_000)
        fill(broker.address, f"{beginning}-one", 1)
        assert {record.topic for record in read(consumer, 10)} == {f"{beginning}-one"}
        [text] = registry.children(f"/consumers/{group}/ids").values()
        assert text is not None and f'{{"{beginning}.*":1}},"pattern":"white_list"' in text
    with Consumer(zookeeper_connect=registry.connect, group_id=group) as consumer:
        with pytest.raises(ConfigError, match="one TopicFilter"):
            consumer.create_message_streams({TopicFilter.allow("a"): 1, "b": 1})
        with pytest.raises(ConfigError, match="cannot have flags"):
            consumer.subscribe(re.compile("a", re.IGNORECASE))


def test_a_partition_that_another_member_keeps_is_an_error_in_the_end(
    registry: Registry, filled: str, group: str
) -> None:
    owner = f"/consumers/{group}/owners/{filled}/2"
    settings = {"zookeeper_connect": registry.connect, "group_id": group, "auto_offset_reset": EARLIEST}
    with Consumer(**settings, rebalance_backoff_ms=20, rebalance_retries_max=2) as consumer:  # type: ignore[arg-type]
        parts = owner.split("/")[1:-1]
        registry.write([Create("/" + "/".join(parts[: end + 1])) for end in range(1, len(parts))])
        registry.write([Create(owner, b"somebody-0")])
        consumer.subscribe(filled)
        with pytest.raises(RebalanceInProgress, match=f"another member still owns {filled}-2"):
            read(consumer, 1)
        assert list(registry.children(f"/consumers/{group}/owners/{filled}")) == ["2"], "the others were given up"
        registry.write([Delete(owner)])
        assert len(read(consumer, 40)) == 40


def test_a_commit_for_a_partition_that_is_not_owned_any_more_fails(registry: Registry, filled: str, group: str) -> None:
    with Consumer(
        zookeeper_connect=registry.connect, group_id=group, auto_offset_reset=EARLIEST, enable_auto_commit=False
    ) as consumer:
        consumer.subscribe(filled)
        read(consumer, 40)
        owner = f"/consumers/{group}/owners/{filled}/1"
        registry.write([Delete(owner), Create(owner, b"somebody-0")])
        with pytest.raises(CommitFailed, match=f"committing {filled}-1 for group {group}: this consumer does not own"):
            consumer.commit()
        with pytest.raises(CommitFailed, match="does not own it"):
            consumer.commit({TopicPartition("other", 0): 1})
    assert registry.children(f"/consumers/{group}/offsets/{filled}") == {"0": "10", "2": "10", "3": "10"}


def test_an_offset_that_somebody_else_has_moved_on_does_not_go_back(
    registry: Registry, filled: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Consumer(
        zookeeper_connect=registry.connect, group_id=group, auto_offset_reset=EARLIEST, enable_auto_commit=False
    ) as consumer:
        consumer.subscribe(filled)
        read(consumer, 40)
        tp = TopicPartition(filled, 0)
        consumer.commit({tp: 5})
        consumer.commit({tp: 3})
        assert consumer.committed([tp])[tp].offset == 3, "the application may go back"
        registry.write([Set(f"/consumers/{group}/offsets/{filled}/0", b"8")])
        consumer.commit({tp: 6})
        assert consumer.committed([tp])[tp].offset == 8
        assert f"the offset of {tp} was moved to 8" in caplog.text
        consumer.commit({tp: 9})
        assert consumer.committed([tp])[tp].offset == 9


def test_offsets_are_kept_for_partitions_that_are_assigned_by_hand(registry: Registry, filled: str, group: str) -> None:
    settings: dict[str, object] = {"zookeeper_connect": registry.connect, "group_id": group}
    settings["enable_auto_commit"] = False  # the end would commit what the call of poll may have returned
    for offset in (7, 8):
        with Consumer(**settings) as consumer:  # type: ignore[arg-type]
            consumer.assign([(filled, 1)])
            consumer.poll(timeout_ms=0)
            consumer.commit({TopicPartition(filled, 1): offset})
    assert registry.children(f"/consumers/{group}/offsets/{filled}") == {"1": "8"}


def test_clients_of_asyncio_do_the_same(registry: Registry, filled: str, group: str) -> None:
    async def whole() -> int:
        async with aio.Producer(zookeeper_connect=registry.connect) as producer:
            await (await producer.send(filled, b"more", partition=0))
        settings = {"zookeeper_connect": registry.connect, "group_id": group, "auto_offset_reset": EARLIEST}
        async with aio.Consumer(**settings) as consumer:  # type: ignore[arg-type]
            consumer.subscribe(filled)
            count = 0
            async for _ in consumer:
                count += 1
                if count == 41:
                    return count
        return 0

    assert asyncio.run(whole()) == 41
    offsets = registry.children(f"/consumers/{group}/offsets/{filled}")
    assert sum(int(text or 0) for text in offsets.values()) == 40, "all but the one that the loop was left with"


def test_the_example_of_the_page_runs(connect: str, broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    [example] = examples("zookeeper-clients.md")
    exec(compile(example.code.replace("localhost:2181", connect), "zookeeper-clients.md", "exec"), {})
    assert capsys.readouterr().out == "visits 0 0 b'first'\n"
