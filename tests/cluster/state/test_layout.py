"""The documents of the metadata, where a change of theirs has no test of its own elsewhere."""

import json
import uuid

import pytest

from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.image_after import image_after, nodes_after
from moldau.cluster.state.reading import read_image
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import BadVersion, node_at

PATH = layout.state_path("t", 0)


def topic(part: PartitionImage) -> TopicImage:
    return TopicImage("t", uuid.UUID(int=1), (part,), {})


def test_a_state_is_written_only_at_its_partition_epoch_and_names_eligible_leaders_only_if_there_are_some() -> None:
    store = EmbeddedStore.in_memory()
    session = store.begin_session(lambda _: None)

    def changed(image: Image, part: PartitionImage) -> Image:
        operations = layout.topic_changed(image.topics["t"], topic(part), 1)
        return image_after(image, nodes_after(operations, store.multi(operations, session)))[0]

    first = PartitionImage(1, 0, (1, 2, 3), (1, 2, 3))
    store.multi([*layout.new_cluster("c"), *layout.topic_created(topic(first), 1)], session)
    image = store.read(read_image())
    assert image is not None
    node = store.read(node_at(PATH))
    assert node is not None
    assert node.data == b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}', "as Kafka's"

    alone = first._replace(isr=(1,), elr=(2,), last_elr=(3,))
    after = changed(image, alone)
    assert after.topics["t"].partitions == (alone._replace(partition_epoch=1),)
    assert after == store.read(read_image())
    node = store.read(node_at(PATH))
    assert node is not None
    assert json.loads(node.data).items() >= {"isr": [1], "elr": [2], "last_elr": [3]}.items()
    with pytest.raises(BadVersion) as refused:
        changed(image, first._replace(leader=2))
    assert refused.value.path == PATH
    store.close()
