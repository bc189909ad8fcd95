"""The metadata knows in which log folder each partition is: over restarts, and when a folder is away."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from moldau.cluster.cluster import Cluster
from moldau.cluster.controlling.controller import MorePartitions, NewTopic
from moldau.cluster.state import elections
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import read_image
from moldau.config import broker_config
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import Delete, Set
from moldau.names import TopicPartition
from moldau.runtime import Runtime
from tests.cluster.opening import HERE, session_in

CONFIG = broker_config({"node.id": "1"})[0]


def in_turn(partitions: Sequence[TopicPartition]) -> Sequence[str]:
    return [("left", "right")[number % 2] for number in range(len(partitions))]


async def opened(folder: Path, directories: dict[str, bool] | None = None, *, clean: bool = True) -> Cluster:
    cluster = await Cluster.open(
        session_in(folder), CONFIG, Runtime(), clean=clean, directories=directories, place=in_turn
    )
    await cluster.registration.register([HERE], list(directories or ()))
    return cluster


def seen(image: Image, topic: str = "t") -> list[tuple[str, int, int]]:
    """Directory, leader and epoch of each partition."""
    return [(part.directory_of(1), part.leader, part.leader_epoch) for part in image.topics[topic].partitions]


def test_new_partitions_are_assigned_together_and_for_good(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await opened(tmp_path, {"left": True, "right": True})
        await cluster.topics.create([NewTopic("t", 1), NewTopic("u", 2)])
        await cluster.topics.create_partitions([MorePartitions("t", 2)])
        expected = [("left", 1, 0), ("left", 1, 0)], [("right", 1, 0), ("left", 1, 0)]
        assert (seen(cluster.image), seen(cluster.image, "u")) == expected
        assert cluster.image.brokers[1].directories == ("left", "right")
        await cluster.close()
        again = await opened(tmp_path, {"left": True, "right": True})
        assert (seen(again.image), seen(again.image, "u")) == expected
        await again.close()

    asyncio.run(scenario())


def test_what_is_in_a_folder_that_is_away_has_no_leader_until_it_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await opened(tmp_path, {"left": True, "right": True})
        await cluster.topics.create([NewTopic("t", 2)])
        await cluster.registration.serve_only(["left"])
        assert seen(cluster.image) == [("left", 1, 0), ("right", -1, 1)]
        assert cluster.image.topics["t"].partitions[1].isr == (1,)
        me = cluster.image.brokers[1]
        assert [me.serves(name) for name in ("left", "right", "")] == [True, False, True]
        await cluster.close()
        for directories, expected in (
            ({"left": True}, [("left", 1, 0), ("right", -1, 1)]),
            ({"left": True, "right": False}, [("left", 1, 0), ("right", 1, 2)]),
            ({"right": False, "left": True}, [("left", 1, 0), ("right", 1, 3)]),
            ({"right": True}, [("left", -1, 1), ("right", 1, 3)]),
        ):
            cluster = await opened(tmp_path, directories)
            assert seen(cluster.image) == expected
            await cluster.close()

    asyncio.run(scenario())


def test_folders_of_partitions_may_be_learnt_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = await Cluster.open(session_in(tmp_path), CONFIG, Runtime())
        await cluster.registration.register([HERE])
        await cluster.topics.create([NewTopic("t", 3)])
        assert seen(cluster.image) == [("", 1, 0)] * 3
        assert elections.directories_lost(cluster.image, 1, ["left"]) == []
        await cluster.directories.assign({"t": {0: "left", 2: "right"}, "gone": {0: "left"}})
        await cluster.close()
        again = await opened(tmp_path, {"left": True}, clean=False)
        assert seen(again.image) == [("left", 1, 0), ("", 1, 1), ("right", -1, 1)]
        await again.close()

    asyncio.run(scenario())


def test_folders_that_an_earlier_version_kept_in_the_nodes_of_topics_are_moved(tmp_path: Path) -> None:
    def made_earlier(store: EmbeddedStore) -> None:
        """Make the tree that of an earlier version, with a partition that is not made yet."""
        for name, added in (("t", {"directories": {"0": ["left"], "1": ["right"]}, "unmade": [1]}), ("u", {})):
            node = store.get(f"/brokers/topics/{name}")
            assert node is not None
            store.multi([Set(f"/brokers/topics/{name}", json.dumps({**json.loads(node.data), **added}).encode())])
        names = store.children("/moldau/directories")
        store.multi([Delete(f"/moldau/directories/{name}") for name in names] + [Delete("/moldau/directories")])

    async def scenario() -> None:
        cluster = await Cluster.open(session_in(tmp_path), CONFIG, Runtime())
        await cluster.registration.register([HERE])
        await cluster.topics.create([NewTopic("t", 2), NewTopic("u", 1)])
        await cluster.close()
        with contextlib.closing(EmbeddedStore(tmp_path)) as store:
            made_earlier(store)
            image = store.read(read_image())
            assert image is not None
            assert [part.made for part in image.topics["t"].partitions] == [True, False]
        for _ in range(2):
            cluster = await opened(tmp_path, {"left": True, "right": True})
            assert seen(cluster.image) == [("left", 1, 0), ("right", 1, 0)]
            assert [part.made for part in cluster.image.topics["t"].partitions] == [True, False]
            await cluster.close()
            with contextlib.closing(EmbeddedStore(tmp_path)) as store:
                assert store.read(read_image()) == replace(cluster.image, brokers={}, controller_id=-1)
                node, placed = store.get("/brokers/topics/t"), store.get("/moldau/directories/t")
                assert store.children("/moldau/directories") == ["t"]
            assert node is not None
            assert list(json.loads(node.data)) == [
                "version", "topic_id", "partitions", "adding_replicas", "removing_replicas"
            ]  # fmt: skip
            assert placed is not None
            assert json.loads(placed.data) == {
                "version": 1,
                "directories": {"1": {"left": [0], "right": [1]}},
                "unmade": [1],
            }
        cluster = await opened(tmp_path, {"left": True, "right": True})
        await cluster.directories.assign({"t": {1: "left"}, "u": {0: "left"}})
        await cluster.topics.delete([("t", None)])
        await cluster.close()
        with contextlib.closing(EmbeddedStore(tmp_path)) as store:
            assert store.children("/moldau/directories") == ["u"]

    asyncio.run(scenario())
