"""The documents of the metadata, where a change of theirs has no test of its own elsewhere."""

import json
import uuid

import pytest

from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.image_after import image_after, nodes_after
from moldau.cluster.state.reading import partitions, read_image
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.store import BadVersion, node_at

PATH = layout.state_path("t", 0)


def topic(*parts: PartitionImage) -> TopicImage:
    return TopicImage("t", uuid.UUID(int=1), parts, {})


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


MOVING = PartitionImage(1, 0, (3, 1, 2), (1, 2), adding_replicas=(3,), removing_replicas=(1, 2))
RESTING = PartitionImage(1, 0, (1, 2), (1, 2))
NODE = (
    b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":{"0":[1,2],"1":[3,1,2]},'
    b'"adding_replicas":{"1":[3]},"removing_replicas":{"1":[1,2]}}'
)
"""As Kafka 2.8 and 3.9 write it while partition 1 is being reassigned."""


def test_a_topic_whose_partitions_are_reassigned_has_kafkas_node_and_is_read_from_it() -> None:
    store = EmbeddedStore.in_memory()
    session = store.begin_session(lambda _: None)
    store.multi([*layout.new_cluster("c"), *layout.topic_created(topic(RESTING, MOVING), 1)], session)
    node = store.read(node_at("/brokers/topics/t"))
    assert node is not None and node.data == NODE
    image = store.read(read_image())
    assert image is not None and image.topics["t"].partitions == (RESTING, MOVING)
    store.close()


@pytest.mark.parametrize(
    "moves", [b"", b',"adding_replicas":null,"removing_replicas":null', b',"adding_replicas":{},"removing_replicas":{}']
)
def test_a_node_that_says_nothing_of_reassignments_has_none(moves: bytes) -> None:
    found = json.loads(b'{"version":2,"partitions":{"0":[1,2]}%s}' % moves)
    [part] = partitions(found, "t")
    assert (part.replicas, part.adding_replicas, part.removing_replicas) == ((1, 2), (), ())


def test_a_partition_that_loses_replicas_has_its_new_state_before_the_node_has_fewer() -> None:
    """A controller that dies in between leaves a reassignment that is under way, and no leader that is no replica."""
    done = PartitionImage(3, 1, (3,), (3,))
    steps = layout.topic_changed(topic(MOVING._replace(isr=(3, 1, 2))), topic(done), 1)
    assert [one.path for one in steps] == [PATH, "/brokers/topics/t"]
    begun = layout.topic_changed(topic(RESTING), topic(MOVING), 1)
    assert [one.path for one in begun] == [PATH, "/brokers/topics/t"]
    assert not layout.topic_changed(topic(MOVING), topic(MOVING), 1)
