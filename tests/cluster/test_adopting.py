"""The metadata of a broker that was alone becomes those of a cluster, whatever cuts the writing off."""

import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest

from moldau.cluster.adopting import has_cluster, write_cluster
from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state import layout
from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.reading import last_producer_id, read_image
from moldau.errors import StorageError
from moldau.metadata_store.store import Create, NodeOperation, Set, Written
from moldau.simulation.zookeeper_session import ModelSession
from tests.cluster.several import Members, play

ANN = AclEntry("User:ann", "*", 3, AclPermission.ALLOW)
COUNT = 700
"""Topics enough for several steps."""


def alone() -> Image:
    """As a broker alone with the id 1 leaves it: one partition is not made yet, one is in a log folder without a
    leader."""
    parts = (
        PartitionImage(1, 3, (1,), (1,), ("folder-1",)),
        PartitionImage(1, 0, (1,), (1,), ("right",), made=False),
        PartitionImage(-1, 7, (1,), (1,), ("away",)),
    )
    topics = {"t": TopicImage("t", uuid.UUID(int=5), parts, {"retention.ms": "1"})}
    for number in range(COUNT):
        name, topic_id = f"t{number}", uuid.UUID(int=100 + number)
        topics[name] = TopicImage(name, topic_id, (PartitionImage(1, 0, (1,), (1,), ("folder-1",)),), {})
    image = Image(
        "cluster",
        broker_overrides={"1": {"log.cleaner.threads": "2"}, "<default>": {"log.retention.ms": "5"}},
        group_overrides={"a/b": {"consumer.session.timeout.ms": "50000"}},
        client_metrics={"a/b": {"metrics": "*"}},
        deleted={uuid.UUID(int=9): "gone"},
        controller_epoch=12,
        acls={AclPattern(2, "t"): (ANN,), AclPattern(3, "a/b", AclPatternType.PREFIXED): (ANN,)},
    )
    return image.with_topics(topics)


def as_adopted() -> Image:
    image = alone()
    first, second, third = image.topics["t"].partitions
    parts = (first, second._replace(directories=(), made=True), third)
    return image.with_topics({"t": image.topics["t"]._replace(partitions=parts)})


class CutOff(Exception):
    """The process was killed."""


class Cut(ModelSession):
    """A session that is cut off before its write of that number, or after it."""

    left = 10_000
    after = False

    async def multi(self, operations: Sequence[NodeOperation]) -> list[Written | None]:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise CutOff
        written = await super().multi(operations)
        if self.left == 0:
            raise CutOff
        return written


async def write(store: ModelSession, image: Image | None = None, noted: list[str] | None = None) -> None:
    await write_cluster(store, image or alone(), 1, 4999, lambda: (noted if noted is not None else []).append("noted"))


def test_all_of_it_is_there_whatever_write_it_was_cut_off_at() -> None:
    async def scenario(members: Members) -> None:
        ends, number = 0, 0
        while not ends:
            number += 1
            for after in (False, True):
                members.store = type(members.store)()
                noted: list[str] = []
                cut = Cut(members.store)
                cut.left, cut.after = number, after
                try:
                    await write(cut, noted=noted)
                    ends += 1
                except CutOff:
                    pass
                await cut.close()
                again = ModelSession(members.store)
                is_there = await has_cluster(again, "cluster")
                assert noted or not is_there
                if not is_there:
                    if layout.ADOPTION in members.store.nodes:
                        with pytest.raises(StorageError, match="`moldau cluster adopt` again"):
                            await members.made(2).join()
                    await write(again)
                assert await again.read(read_image()) == as_adopted()
                assert await again.read(last_producer_id()) == 4999
                assert layout.ADOPTION not in members.store.nodes
                assert b'"brokers":[1]' in members.store.nodes[f"{layout.DELETED_TOPICS}/AAAAAAAAAAAAAAAAAAAACQ"].data
                await again.close()
        assert number > 5

    play(scenario)


def test_what_has_changed_since_an_attempt_is_brought_up_to_date_and_what_is_gone_refused() -> None:
    async def scenario(members: Members) -> None:
        cut = Cut(members.store)
        cut.left = 3
        with pytest.raises(CutOff):
            await write(cut)
        store = ModelSession(members.store)
        without = alone()
        without = replace(without, topics={}, topics_by_id={}).with_topics(
            {name: topic for name, topic in without.topics.items() if name != "t0"}
        )
        with pytest.raises(StorageError, match="/brokers/topics/t0 is there, which an earlier attempt has written"):
            await write(store, without)
        changed = alone().topics["t1"]._replace(overrides={"retention.ms": "7"})
        await write(store, alone().with_topics({"t1": changed}))
        assert await store.read(read_image()) == as_adopted().with_topics({"t1": changed})
        for session in (cut, store):
            await session.close()

    play(scenario)


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ([Create("/brokers")], "/brokers exists there already"),
        (layout.new_cluster("other"), "cluster other exists there already"),
        (layout.adoption_begun("other"), r"the adoption of another cluster \(other\) has begun there"),
        ([Create("/moldau"), Create("/moldau/adoption", b"x")], "the metadata at /moldau/adoption is not JSON"),
    ],
)
def test_a_place_that_is_not_empty_is_refused(nodes: list[NodeOperation], sentence: str) -> None:
    async def scenario(members: Members) -> None:
        store = ModelSession(members.store)
        await store.multi(nodes)
        before = dict(members.store.nodes)
        with pytest.raises(StorageError, match=sentence):
            await write(store)
        assert members.store.nodes == before
        await store.close()

    play(scenario)


def test_two_adoptions_at_once_do_not_mix() -> None:
    async def scenario(members: Members) -> None:
        first, second = Cut(members.store), ModelSession(members.store)
        first.left = 3
        with pytest.raises(CutOff):
            await write(first)
        await write(second)
        with pytest.raises(StorageError, match="cluster cluster exists there already"):
            await write(first)
        for session in (first, second):
            await session.close()

    play(scenario)


def test_brokers_join_and_the_first_leads_what_it_led_in_new_epochs() -> None:
    async def scenario(members: Members) -> None:
        store = ModelSession(members.store)
        await write(store)
        await store.close()
        await members.join(2)
        image = await members.shown(lambda image: 2 in image.brokers)
        assert [part.leader for part in image.topics["t"].partitions] == [-1, -1, -1]
        await members.join(1)
        image = await members.shown(lambda image: image.topics["t"].partitions[0].leader == 1)
        assert image.controller_epoch == 13
        assert [(part.leader, part.leader_epoch) for part in image.topics["t"].partitions] == [(1, 5), (1, 2), (-1, 7)]
        controller = await members.controller()
        await controller.acting.topics.create([NewTopic("new", 4)])
        assert {part.leader for part in controller.image.topics["new"].partitions} == {1, 2}

    play(scenario)


def test_a_broker_does_not_begin_a_cluster_beside_something_else() -> None:
    async def scenario(members: Members) -> None:
        store = ModelSession(members.store)
        await store.multi([Create("/brokers"), Create("/x"), Set("/x", b"")])
        with pytest.raises(StorageError, match="ZooKeeper has /brokers but no /cluster/id"):
            await members.made(1).join()
        await store.close()

    play(scenario)
