"""The image after a change is the one that would be read from the store."""

import random
import uuid
from collections.abc import Callable, Sequence

import pytest

from moldau.cluster.state import layout
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.image_after import image_after, nodes_after
from moldau.cluster.state.reading import read_image
from moldau.cluster.state.reassignment import begun
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import Check, Delete, NodeOperation
from moldau.names import short_id

HERE = Endpoint("PLAINTEXT", "PLAINTEXT", "localhost", 9092)
Change = Callable[[Image, random.Random], Sequence[NodeOperation]]


def a_partition(chance: random.Random) -> PartitionImage:
    replicas = tuple(chance.sample(range(1, 5), chance.randint(1, 3)))
    directories = tuple(f"d{one}" for one in replicas) if chance.random() < 0.5 else ()
    isr = replicas[: chance.randint(1, len(replicas))]
    part = PartitionImage(chance.choice((-1, *replicas)), chance.randint(0, 9), replicas, isr, directories)
    return part._replace(elr=replicas[len(isr) :], last_elr=replicas[1:2]) if chance.random() < 0.5 else part


def create(image: Image, chance: random.Random) -> Sequence[NodeOperation]:
    name = f"t{chance.randint(0, 99)}"
    if name in image.topics:
        return []
    parts = tuple(a_partition(chance) for _ in range(chance.randint(1, 4)))
    return layout.topic_created(TopicImage(name, uuid.UUID(int=chance.getrandbits(128)), parts, {"a": "b"}), 3)


def change(image: Image, chance: random.Random) -> Sequence[NodeOperation]:
    """Other states, more partitions, other or more replicas or a plan for them, other folders, other settings."""
    if not image.topics:
        return []
    old = chance.choice(list(image.topics.values()))
    parts = [
        part._replace(leader=-1, leader_epoch=part.leader_epoch + 1, isr=(), elr=part.replicas[:1])
        if chance.random() < 0.3
        else part._replace(made=chance.random() < 0.5, directories=tuple("x" for _ in part.replicas))
        if chance.random() < 0.3
        else part.with_replicas(tuple(chance.sample([*part.replicas, 7], len(part.replicas) + 1)))
        if chance.random() < 0.3 and 7 not in part.replicas
        else begun(part, tuple(chance.sample(range(1, 5), chance.randint(1, 3))), 1) or part
        if chance.random() < 0.3
        else part
        for part in old.partitions
    ]
    parts += [a_partition(chance) for _ in range(chance.randint(0, 2))]
    overrides = chance.choice([old.overrides, {"c": "d"}])
    return layout.topic_changed(old, old._replace(partitions=tuple(parts), overrides=overrides), 4)


def delete(image: Image, chance: random.Random) -> Sequence[NodeOperation]:
    return layout.topic_deleted(chance.choice(list(image.topics.values()))) if image.topics else []


def settings(image: Image, chance: random.Random) -> Sequence[NodeOperation]:
    broker, group = chance.choice(["1", "<default>"]), chance.choice(["g/1", ".."])
    path = f"{layout.BROKER_CONFIGS}/{broker}"
    own = image.group_overrides.get(group)
    return [
        layout.config(path, {"x": str(chance.random())}, is_new=broker not in image.broker_overrides),
        *layout.group_changed(group, own, {} if own else {"y": "z"}),
        *layout.client_metrics_changed(group, image.client_metrics.get(group), {} if own else {"metrics": "*"}),
    ]


def others(image: Image, chance: random.Random) -> Sequence[NodeOperation]:
    number = chance.randint(1, 12)
    broker = BrokerImage(number, (HERE,), chance.choice([None, "r"]))
    forgotten = [Delete(f"{layout.DELETED_TOPICS}/{short_id(one)}") for one in list(image.deleted)[:1]]
    return [
        Delete(f"{layout.BROKERS}/{number}") if number in image.brokers else layout.broker(broker, 5),
        layout.controller(number, 0) if image.controller_id < 0 else Delete(layout.CONTROLLER),
        layout.controller_epoch(image.controller_epoch + 1, image.controller_epoch - 1),
        Check(layout.BROKERS),
        *forgotten,
    ]


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_image_in_the_store(seed: int) -> None:
    chance = random.Random(seed)
    store = EmbeddedStore.in_memory()
    session = store.begin_session(lambda _: None)
    store.multi([*layout.new_cluster("c"), layout.controller_epoch(1, None)], session)
    image = store.read(read_image())
    for _ in range(60):
        assert image is not None
        kind: Change = chance.choice([create, change, delete, settings, others])
        operations = kind(image, chance)
        before, topics_before = image, dict(image.topics)
        image, names = image_after(image, nodes_after(operations, store.multi(operations, session)))
        assert image == store.read(read_image())
        assert before.topics == topics_before, "an image never changes"
        was, now = before.topics, image.topics
        assert {name for name in {**was, **now} if was.get(name) != now.get(name)} <= set(names)
        if image.broker_overrides != before.broker_overrides:
            assert set(names) >= image.topics.keys()
        assert image.topics_by_id == {topic.id: topic for topic in image.topics.values()}
    store.close()
