"""What differs between two images: enough to make the later one, no more than that, and the same after its message."""

import uuid
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.tiers import examples
from moldau.cluster.state.change_messages import from_message, to_message
from moldau.cluster.state.image import BrokerImage, Endpoint, Image, PartitionImage, TopicImage
from moldau.cluster.state.image_changes import ImageChange, applied, difference, replaced, whole
from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.messages.follow_cluster import FollowedChange, FollowedPartition, FollowedTopic
from tests.cluster.drawn_images import IMAGES, later

few = settings(max_examples=examples(25, 30))
PARTITION = PartitionImage(1, 0, (1,), (1,))
BROKER = BrokerImage(1, (Endpoint("PLAINTEXT", "PLAINTEXT", "here", 9092),), epoch=5)


def topic(name: str, partitions: int = 1, number: int = 1) -> TopicImage:
    return TopicImage(name, uuid.UUID(int=number), (PARTITION,) * partitions, {})


def image_of(*topics: TopicImage) -> Image:
    return Image("c", 1, {1: BROKER}).with_topics({one.name: one for one in topics})


def sent(change: ImageChange) -> ImageChange:
    """The change after its way over the wire."""
    data = schema.write(to_message(change), 0, True)
    message, end = schema.read(FollowedChange, 0, True, data)
    assert end == len(data)
    return from_message(message)


@few
@given(st.data())
def test_the_change_between_two_images_makes_the_one_of_the_other(data: st.DataObject) -> None:
    before = data.draw(IMAGES)
    after = data.draw(later(before) | IMAGES)
    change = difference(before, after)
    made, names = applied(before, sent(change))
    assert made == after
    assert made.topics_by_id == {one.id: one for one in made.topics.values()}
    assert sent(change) == change
    differing = {
        name for name in {**before.topics, **after.topics} if before.topics.get(name) != after.topics.get(name)
    }
    assert differing <= set(names)
    if before.broker_overrides == after.broker_overrides:
        assert set(names) == differing


@few
@given(st.data())
def test_parts_that_did_not_change_are_the_same_objects(data: st.DataObject) -> None:
    before = data.draw(IMAGES)
    after = data.draw(later(before))
    made, _ = applied(before, sent(difference(before, after)))
    for one in fields(Image):
        if getattr(before, one.name) == getattr(after, one.name):
            assert getattr(made, one.name) is getattr(before, one.name), one.name
    for name, old in before.topics.items():
        new = made.topics.get(name)
        if new == old:
            assert new is old
        elif new is not None and new.id == old.id:
            for then, now in zip(old.partitions, new.partitions, strict=False):
                assert now is then or now != then or len(new.partitions) < len(old.partitions)


@few
@given(st.data())
def test_the_whole_image_replaces_any_other_and_shares_what_is_equal(data: st.DataObject) -> None:
    before = data.draw(IMAGES)
    after = data.draw(later(before) | IMAGES)
    made, names = replaced(before, sent(whole(after)))
    assert made == after
    assert all(made.topics[name] is old for name, old in before.topics.items() if after.topics.get(name) == old)
    assert {name for name in before.topics if name not in after.topics} <= set(names)


def test_no_difference_is_a_change_without_entries() -> None:
    image = image_of(topic("t"))
    change = difference(image, image)
    assert change.entries == 0
    made, names = applied(image, change)
    assert (made, names) == (image, [])
    assert made.topics is image.topics


def test_one_partition_of_ten_thousand_costs_one_entry() -> None:
    wide, other = topic("wide", 10_000), topic("other", 10_000, number=2)
    before = image_of(wide, other)
    moved = (*wide.partitions[:7000], PARTITION._replace(leader=2, leader_epoch=1), *wide.partitions[7001:])
    change = difference(before, before.with_topics({"wide": wide._replace(partitions=moved)}))
    assert change.entries == 2, "the topic and its partition"
    assert list(change.changed[0].partitions) == [7000]
    assert len(schema.write(to_message(change), 0, True)) < 150
    after, names = applied(before, change)
    assert names == ["wide"] and after.topics["other"] is other
    assert sum(one is not old for one, old in zip(after.topics["wide"].partitions, wide.partitions, strict=True)) == 1


def test_a_topic_that_was_deleted_and_made_again_is_a_new_one() -> None:
    before, after = image_of(topic("t", 3)), image_of(topic("t", 2, number=2))
    change = difference(before, after)
    assert [one.id.int for one in change.created] == [2] and not change.changed and not change.removed
    made, names = applied(before, change)
    assert made == after and names == ["t"]
    assert list(made.topics_by_id) == [uuid.UUID(int=2)]


def test_changed_settings_of_brokers_name_all_topics_since_they_inherit_them() -> None:
    before = image_of(topic("a"), topic("b", number=2))
    after = replace(before, broker_overrides={"<default>": {"log.retention.ms": "1"}})
    assert applied(before, difference(before, after))[1] == ["a", "b"]


def test_brokers_are_listed_by_their_numbers() -> None:
    before = image_of()
    brokers = {10: BROKER._replace(id=10), 1: BROKER, 2: BROKER._replace(id=2)}
    made, _ = applied(before, difference(before, replace(before, brokers=brokers)))
    assert list(made.brokers) == [1, 2, 10]


@pytest.mark.parametrize("numbers", [[1], [0, 2], [1, 0]])
def test_a_new_topic_with_a_gap_in_its_partitions_is_a_violation(numbers: list[int]) -> None:
    partitions = [FollowedPartition(number=number) for number in numbers]
    message = FollowedChange(topics=[FollowedTopic(name="t", id=uuid.UUID(int=1), partitions=partitions)])
    with pytest.raises(ProtocolViolation, match="numbered from 0"):
        from_message(message)
