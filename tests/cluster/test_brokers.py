"""Three brokers of one cluster in this process, over real sockets and one embedded store: any of them takes any
request, and topics, groups and transactions work wherever they are led."""

import asyncio
import contextlib
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness.patience import within
from moldau import aio
from moldau.broker import Broker
from moldau.cluster.beginning import BrokerConflict
from moldau.cluster.membership import SharedStore
from moldau.config import broker_config
from moldau.errors import KafkaError, StorageError
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.metadata_store.store import node_at
from moldau.names import TopicPartition
from moldau.peers.address import parse_address
from moldau.peers.link import connect
from moldau.protocol.apis import DESCRIBE_CLUSTER, METADATA
from moldau.runtime import Runtime

SETTINGS = {
    "listeners": "PLAINTEXT://localhost:0",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "group.initial.rebalance.delay.ms": "0",
}


_numbers = itertools.count()


class Three(dict[int, Broker]):
    """The brokers by id."""

    def __init__(self, folder: Path):
        super().__init__()
        self._folder = folder
        (folder / "metadata").mkdir()
        self.store = EmbeddedStore(folder / "metadata", is_durable=False)

    async def start(self, broker_id: int, folder: str = "", timeout_s: float = 5.0) -> Broker:
        async def opened() -> EmbeddedSession:
            return EmbeddedSession(self.store, Runtime())

        folder = str(self._folder / (folder or str(broker_id)))
        config, _ = broker_config({**SETTINGS, "node.id": str(broker_id), "log.dirs": folder})
        broker = Broker(config, Runtime(), shared=SharedStore(opened, timeout_s))
        await broker.start()
        self[broker_id] = broker
        return broker

    async def stop(self, broker_id: int) -> None:
        await self.pop(broker_id).stop()

    @property
    def bootstraps(self) -> list[str]:
        return [f"localhost:{broker.port}" for broker in self.values()]

    @property
    def bootstrap(self) -> str:
        return ",".join(self.bootstraps)

    async def shown(self, holds: Callable[[Broker], bool]) -> None:
        """Wait until this holds on every broker."""
        while not all(holds(broker) for broker in self.values()):
            await asyncio.sleep(0.01)


@asynccontextmanager
async def three(folder: Path) -> AsyncIterator[Three]:
    brokers = Three(folder)
    try:
        await asyncio.gather(*(brokers.start(number) for number in (1, 2, 3)))
        await brokers.shown(lambda broker: len(broker.cluster.image.brokers) == 3)
        yield brokers
    finally:
        for number in list(brokers):
            await brokers.stop(number)
        brokers.store.close()


def play(folder: Path, scenario: Callable[[Three], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with three(folder) as brokers:
            await scenario(brokers)

    asyncio.run(within(whole(), 60))


async def read(
    bootstrap: str, topic: str, count: int, group: str = "", isolation: str = "read_uncommitted"
) -> list[str]:
    values: list[str] = []
    group = group or f"once-{next(_numbers)}"
    async with aio.Consumer(
        bootstrap, group_id=group, auto_offset_reset="earliest", isolation_level=isolation
    ) as consumer:
        consumer.subscribe([topic])
        while len(values) < count:
            values += [(record.value or b"").decode() for record in await consumer.poll(timeout_ms=500)]
    return sorted(values)


async def write(bootstrap: str, topic: str, values: list[str]) -> None:
    async with aio.Producer(bootstrap) as producer:
        for delivery in [await producer.send(topic, value, key=value) for value in values]:
            await delivery


def leaders(broker: Broker, topic: str) -> list[int]:
    return [part.leader for part in broker.cluster.image.topics[topic].partitions]


def test_a_topic_made_at_any_broker_is_written_and_read_by_any(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        for number, bootstrap in enumerate(brokers.bootstraps):
            topic, values = f"t{number}", [f"{number}:{at}" for at in range(60)]
            async with aio.Admin(bootstrap) as admin:
                await admin.create_topic(topic, partitions=6)
            assert all(topic in broker.cluster.image.topics for broker in brokers.values()), "known when answered"
            assert Counter(leaders(brokers[1], topic)) == {1: 2, 2: 2, 3: 2}
            await write(bootstrap, topic, values)
            for other in brokers.bootstraps:
                assert await read(other, topic, 60) == sorted(values)

    play(tmp_path, scenario)


def test_every_broker_names_the_same_controller_and_all_brokers(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        seen = []
        for bootstrap in brokers.bootstraps:
            async with aio.Admin(bootstrap) as admin:
                seen.append(await admin.describe_cluster())
        assert len({one.controller_id for one in seen}) == len({one.cluster_id for one in seen}) == 1
        assert all(sorted(one.brokers) == [1, 2, 3] for one in seen)

    play(tmp_path, scenario)


def test_metadata_names_the_broker_that_answers_as_the_controller(tmp_path: Path) -> None:
    """It forwards. A tool that compares this with DescribeCluster finds both ids among the brokers of either answer."""

    async def scenario(brokers: Three) -> None:
        for bootstrap in brokers.bootstraps:
            link = await connect(parse_address(bootstrap), "test", 10_000)
            described = await link.call(DESCRIBE_CLUSTER, DESCRIBE_CLUSTER.request(), 10_000)
            metadata = await link.call(METADATA, METADATA.request(topics=[]), 10_000)
            [named] = [broker for broker in metadata.brokers if broker.node_id == metadata.controller_id]
            assert named.port == parse_address(bootstrap).port
            known = {broker.node_id for broker in metadata.brokers}
            assert known == {broker.broker_id for broker in described.brokers} == {1, 2, 3}
            assert described.controller_id in known
            link.connection.close()

    play(tmp_path, scenario)


def test_groups_are_coordinated_by_different_brokers_and_keep_their_offsets(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        values = [str(at) for at in range(30)]
        await write(brokers.bootstraps[0], "created-by-its-first-producer", values)
        for group in range(9):
            got = await read(brokers.bootstraps[group % 3], "created-by-its-first-producer", 30, f"g{group}")
            assert got == sorted(values)
        assert set(leaders(brokers[1], "__consumer_offsets")) == {1, 2, 3}
        async with aio.Admin(brokers.bootstraps[0]) as admin:
            groups = await admin.list_groups()
            assert {group.group_id for group in groups} == {f"g{number}" for number in range(9)}

    play(tmp_path, scenario)


def test_transactions_reach_partitions_of_all_brokers_whoever_coordinates_them(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        async with aio.Admin(brokers.bootstraps[0]) as admin:
            await admin.create_topic("t", partitions=6)
        for number in range(6):
            async with aio.Producer(brokers.bootstrap, transactional_id=f"id-{number}") as producer:
                async with producer.transaction() as transaction:
                    for partition in range(6):
                        await producer.send("t", f"{number}:{partition}", partition=partition)
                    await transaction.send_offsets({TopicPartition("t", 0): number}, f"g{number}")
                with contextlib.suppress(ZeroDivisionError):
                    async with producer.transaction():
                        await producer.send("t", "aborted", partition=number)
                        raise ZeroDivisionError
        wanted = sorted(f"{number}:{partition}" for number in range(6) for partition in range(6))
        assert await read(brokers.bootstrap, "t", 36, isolation="read_committed") == wanted
        assert set(leaders(brokers[1], "__transaction_state")) == {1, 2, 3}

    play(tmp_path, scenario)


def test_the_cluster_goes_on_without_the_broker_that_was_its_controller(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        first = brokers[1].cluster.image.controller_id
        async with aio.Admin(brokers.bootstrap) as admin:
            await admin.create_topic("t", partitions=6)
            await brokers.stop(first)
            await brokers.shown(lambda broker: broker.cluster.image.controller_id not in (-1, first))
            await brokers.shown(lambda broker: first not in broker.cluster.image.brokers)
            assert Counter(leaders(next(iter(brokers.values())), "t"))[-1] == 2
            await admin.create_topic("later", partitions=4)
            await write(brokers.bootstrap, "later", ["a", "b", "c"])
            await admin.delete_topic("t")
        await brokers.start(first)
        assert await read(brokers.bootstrap, "later", 3) == ["a", "b", "c"]
        await brokers.shown(lambda broker: len(broker.cluster.image.brokers) == 3)
        await brokers.shown(lambda broker: not broker.cluster.image.deleted)
        assert not [one for one in (tmp_path / str(first)).iterdir() if one.name in {f"t-{n}" for n in range(6)}]

    play(tmp_path, scenario)


def test_a_broker_that_is_back_has_its_records(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        values = [str(at) for at in range(40)]
        async with aio.Admin(brokers.bootstrap) as admin:
            await admin.create_topic("t", partitions=6)
        await write(brokers.bootstrap, "t", values)
        for number in (1, 2, 3):
            await brokers.stop(number)
            await brokers.start(number)
            await brokers.shown(lambda broker: -1 not in leaders(broker, "t"))
        assert await read(brokers.bootstrap, "t", 40) == sorted(values)

    play(tmp_path, scenario)


def kept_by(brokers: Three, broker_id: int) -> list[int]:
    """The registrations since which a broker has told that its log folder has lost nothing."""
    node = brokers.store.read(node_at(f"/brokers/ids/{broker_id}"))
    assert node is not None
    [epochs] = json.loads(node.data).get("kept", {"": []}).values()
    return list(epochs)


def noted(brokers: Three, broker_id: int) -> int:
    node = brokers.store.read(node_at(f"/moldau/brokers/{broker_id}"))
    assert node is not None
    return int(json.loads(node.data)["epoch"])


def test_a_broker_shows_at_its_start_that_it_has_lost_nothing(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        assert kept_by(brokers, 2) == [], "its folder was new"
        before = noted(brokers, 2)
        await brokers.stop(2)
        await brokers.start(2)
        assert kept_by(brokers, 2) == [before]
        before = noted(brokers, 2)
        killed = brokers.pop(2)
        await killed.cluster.close()  # its session ends, and its process with it: no log is closed
        killed.abort()
        killed.abandon()
        await brokers.start(2)
        assert kept_by(brokers, 2) == [before]

    play(tmp_path, scenario)


def test_settings_of_topics_are_changed_at_any_broker(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        for number, bootstrap in enumerate(brokers.bootstraps):
            async with aio.Admin(bootstrap) as admin:
                await admin.create_topic(f"t{number}", partitions=3)
                await admin.alter_topic_configs(f"t{number}", {"retention.ms": 5000 + number})
            for broker in brokers.values():
                assert broker.cluster.metadata.topic_config(f"t{number}").retention_ms == 5000 + number

    play(tmp_path, scenario)


def test_more_replicas_than_brokers_are_refused_with_a_sentence(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        for bootstrap in brokers.bootstraps:
            async with aio.Admin(bootstrap) as admin:
                with pytest.raises(KafkaError, match="4 is above the number of running brokers, 3"):
                    await admin.create_topic("t", partitions=3, replication_factor=4)

    play(tmp_path, scenario)


def test_a_second_broker_with_the_same_id_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        first = brokers[2]
        began = time.monotonic()
        with pytest.raises(BrokerConflict, match=f"the id 2 is running at PLAINTEXT://localhost:{first.port}"):
            await brokers.start(2, "other", timeout_s=0.1)
        assert time.monotonic() - began > 2
        await write(brokers.bootstrap, "t", ["a"])
        assert await read(f"localhost:{first.port}", "t", 1) == ["a"]

    play(tmp_path, scenario)


def test_the_folder_of_a_broker_that_was_alone_is_refused(tmp_path: Path) -> None:
    async def scenario(brokers: Three) -> None:
        config, _ = broker_config({**SETTINGS, "node.id": "4", "log.dirs": str(tmp_path / "alone")})
        alone = Broker(config, Runtime())
        await alone.start()
        await alone.stop()
        with pytest.raises(StorageError, match="belongs to a broker that was alone"):
            await brokers.start(4, "alone")

    play(tmp_path, scenario)
