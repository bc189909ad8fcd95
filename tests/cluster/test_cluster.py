"""The cluster as a broker sees it: images, subscribers, and that everything outlives the process."""

import asyncio
import contextlib
import json
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.cluster.controlling.controller import MorePartitions, NewTopic, Refusal
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, TopicImage
from moldau.cluster.state.reading import read_image
from moldau.errors import StorageError
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import Create, Delete, Set
from moldau.names import TopicPartition, long_id, short_id
from tests.cluster.opening import open_cluster

ELSEWHERE = Endpoint("PLAINTEXT", "PLAINTEXT", "elsewhere", 1234)


def test_a_new_cluster_gets_an_id_that_it_keeps(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        found = []
        for _ in range(2):
            cluster = await open_cluster(tmp_path)
            found.append(cluster.image.cluster_id)
            await cluster.close()
        return found

    first, second = asyncio.run(scenario())
    assert first == second
    assert len(first) == 22
    assert short_id(long_id(first)) == first
    assert not first.startswith("-")


def test_a_registered_broker_is_in_the_image_and_controls(tmp_path: Path) -> None:
    async def scenario() -> Image:
        cluster = await open_cluster(tmp_path, {"broker.rack": "r1"})
        await cluster.registration.register([ELSEWHERE])
        await cluster.close()
        return cluster.image

    image = asyncio.run(scenario())
    assert image.controller_id == 1
    assert list(image.brokers.values()) == [BrokerImage(1, (ELSEWHERE,), "r1", (), image.brokers[1].epoch)]
    assert image.brokers[1].epoch > 0


def test_everything_that_was_answered_is_there_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> tuple[Image, Image]:
        cluster = await open_cluster(tmp_path)
        await cluster.topics.create([NewTopic("a", 3, configs=[("retention.ms", "5")]), NewTopic("b"), NewTopic("c")])
        await cluster.topics.create_partitions([MorePartitions("a", 5)])
        await cluster.configs.alter_topics([("b", [Alteration("cleanup.policy", OpType.SET, "compact")])])
        await cluster.configs.alter_broker("1", [Alteration("log.segment.bytes", OpType.SET, "2000000")])
        await cluster.topics.delete([("c", None)])
        before = cluster.image
        await cluster.close()
        cluster = await open_cluster(tmp_path)
        await cluster.close()
        return before, cluster.image

    before, after = asyncio.run(scenario())
    assert after.brokers[1].epoch > before.brokers[1].epoch
    assert replace(before, controller_epoch=before.controller_epoch + 1, brokers=after.brokers) == after
    assert list(after.topics) == ["a", "b"]
    assert len(after.topics["a"].partitions) == 5
    assert after.topics["a"].overrides == {"retention.ms": "5"}
    assert list(after.deleted.values()) == ["c"]
    assert after.partition(TopicPartition("a", 4)) is not None
    assert after.partition(TopicPartition("a", 5)) is None
    assert after.topics_by_id[after.topics["b"].id].name == "b"


def test_after_an_unclean_stop_partitions_are_led_in_a_new_epoch(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        epochs = []
        for clean in (True, True, False, False):
            cluster = await open_cluster(tmp_path, clean=clean)
            part = (await cluster.topics.ensure("a")).partitions[0]  # type: ignore[union-attr]
            epochs.append(part.leader_epoch)
            await cluster.close()
        return epochs

    assert asyncio.run(scenario()) == [0, 0, 1, 2]


def test_the_store_holds_the_documents_that_kafka_kept_in_zookeeper(tmp_path: Path) -> None:
    async def scenario() -> TopicImage | Refusal:
        cluster = await open_cluster(tmp_path)
        topic = await cluster.topics.ensure("a")
        taken = cluster.producer_ids.next()
        assert not isinstance(taken, int)
        await taken
        broker = document("/brokers/ids/1")
        assert broker["endpoints"] == ["PLAINTEXT://localhost:9092"]
        assert document("/controller")["brokerid"] == 1
        assert document("/controller_epoch") == 1
        await cluster.close()
        return topic

    def document(path: str) -> dict[str, object]:
        store = open_again()
        node = store.get(path)
        assert node is not None
        found: dict[str, object] = json.loads(node.data)
        return found

    stores: list[EmbeddedStore] = []

    def open_again() -> EmbeddedStore:
        if not stores:
            stores.append(ReadOnly(tmp_path))
        return stores[0]

    class ReadOnly(EmbeddedStore):
        def _prepare(self) -> None:
            """Looks without ending the ephemeral nodes of the one who is there."""

    topic = asyncio.run(scenario())
    assert isinstance(topic, TopicImage)
    assert document("/brokers/topics/a")["topic_id"] == short_id(topic.id)
    assert document("/brokers/topics/a")["partitions"] == {"0": [1]}
    state = document("/brokers/topics/a/partitions/0/state")
    assert (state["leader"], state["leader_epoch"], state["isr"], state["controller_epoch"]) == (1, 0, [1], 1)
    assert document("/config/topics/a") == {"version": 1, "config": {}}
    assert document("/latest_producer_id_block")["block_end"] == "999"
    assert open_again().get("/brokers/ids/1") is None
    open_again().close()


def test_every_controller_has_an_epoch_of_its_own_and_names_it_in_what_it_changes(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        epochs = []
        for _ in range(3):
            cluster = await open_cluster(tmp_path, clean=False)
            await cluster.topics.ensure("a")
            await cluster.close()
            epochs.append(cluster.image.controller_epoch)
        return epochs

    assert asyncio.run(scenario()) == [1, 2, 3]
    with contextlib.closing(EmbeddedStore(tmp_path)) as store:
        node = store.get("/brokers/topics/a/partitions/0/state")
        assert node is not None
        assert json.loads(node.data)["controller_epoch"] == 3
        assert store.read(read_image()).controller_epoch == 3  # type: ignore[union-attr]


def test_what_earlier_versions_had_elsewhere_is_moved_and_wishes_of_tools_stay(tmp_path: Path) -> None:
    async def scenario() -> Image:
        cluster = await open_cluster(tmp_path)
        await cluster.close()
        return cluster.image

    asyncio.run(scenario())
    topic_id = short_id(uuid.UUID(int=7))
    ours = ("/moldau/deleted_topics", "/moldau/brokers", "/moldau/directories", "/moldau")
    earlier = [*map(Delete, (*ours, "/consumers", "/controller_epoch"))]
    with contextlib.closing(EmbeddedStore(tmp_path)) as store:
        store.multi([*earlier, Create(f"/admin/delete_topics/{topic_id}", b'{"version":1,"name":"gone"}')])
        store.multi([Create("/admin/delete_topics/a-wish")])
    image = asyncio.run(scenario())
    assert image.deleted == {uuid.UUID(int=7): "gone"}
    assert image.controller_epoch == 1
    with contextlib.closing(EmbeddedStore(tmp_path)) as store:
        assert store.children("/admin/delete_topics") == ["a-wish"]
        assert store.children("/moldau/deleted_topics") == [topic_id]
        assert "consumers" in store.children("/")


def test_metadata_that_is_not_what_it_should_be_is_refused_by_path(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await open_cluster(tmp_path)
        await cluster.topics.ensure("a")
        await cluster.close()
        store = EmbeddedStore(tmp_path)
        store.multi([Set("/brokers/topics/a", b'{"partitions": []}')])
        store.close()
        await open_cluster(tmp_path)

    with pytest.raises(StorageError, match="/brokers/topics/a"):
        asyncio.run(scenario())
