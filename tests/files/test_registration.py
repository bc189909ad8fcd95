import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.cluster.state import layout
from moldau.cluster.state.image import Image
from moldau.cluster.state.reading import read_image
from moldau.files import registration
from moldau.metadata_store.embedded import EmbeddedStore

ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    store = EmbeddedStore(tmp_path)
    yield store
    store.close()


def image_of(store: EmbeddedStore) -> Image:
    image = store.read(read_image())
    assert image is not None
    return image


def block_end(store: EmbeddedStore) -> int | None:
    node = store.get(layout.PRODUCER_ID_BLOCK)
    return int(json.loads(node.data)["block_end"]) if node else None


def test_a_new_store_begins_the_cluster_it_is_given_and_an_old_one_stays(store: EmbeddedStore) -> None:
    assert registration.open_cluster(store, "theirs").cluster_id == "theirs"
    assert registration.open_cluster(store, "another").cluster_id == "theirs"


def test_a_topic_is_led_behind_every_epoch_that_wrote_in_it(store: EmbeddedStore) -> None:
    registration.open_cluster(store, "c")
    registration.register(store, 4, "events", ONE, [7, -1], {"retention.ms": "-1"}, -1)
    topic = image_of(store).topics["events"]
    assert (topic.id, topic.overrides) == (ONE, {"retention.ms": "-1"})
    assert [(part.leader, part.leader_epoch, part.isr) for part in topic.partitions] == [(4, 8, (4,)), (4, 0, (4,))]
    assert block_end(store) is None


def test_producer_ids_begin_behind_those_in_the_records(store: EmbeddedStore) -> None:
    registration.open_cluster(store, "c")
    for number, (largest, end) in enumerate([(0, 999), (500, 999), (1000, 1999), (7_001, 7_999), (12, 7_999)]):
        registration.register(store, 1, f"t{number}", uuid.UUID(int=number), [0], {}, largest)
        assert block_end(store) == end


def test_names_and_ids_that_are_taken_are_refused(store: EmbeddedStore) -> None:
    registration.open_cluster(store, "c")
    registration.register(store, 1, "a.b", ONE, [0], {}, -1)
    image = image_of(store)
    for name, topic_id, said in (
        ("a.b", OTHER, "exists already"),
        ("a_b", OTHER, "differ only in"),
        ("..", OTHER, "cannot be named"),
        ("other", ONE, "has the topic id of a.b"),
    ):
        refused = registration.refusal(image, name, topic_id)
        assert refused is not None and said in str(refused.message)
    assert registration.refusal(image, "other", OTHER) is None and registration.refusal(image, "other", None) is None
    store.multi(layout.topic_deleted(image.topics["a.b"]))
    refused = registration.refusal(image_of(store), "a.b", ONE)
    assert refused is not None and "is still being deleted" in str(refused.message)
