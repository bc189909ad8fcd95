"""The image that fits the partitions in the log folders, from an image that may not, or from none."""

import contextlib
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

from moldau.cluster.rebuilding import PRODUCER_IDS_SKIPPED, Known, Rebuilt, rebuild, unknown_to
from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.cluster.state.reading import last_producer_id, read_image
from moldau.log.folders.traces import Trace
from moldau.metadata_store.embedded import EmbeddedStore
from moldau.names import TopicPartition

A, B, NEW = uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=99)
ONE, TWO = Path("/one"), Path("/two")
DIRECTORIES = {str(ONE): "first", str(TWO): "second"}


def part(epoch: int = 0, directory: str = "first", *, made: bool = True) -> PartitionImage:
    return PartitionImage(1, epoch, (1,), (1,), (directory,), made)


def image(**topics: TopicImage) -> Image:
    return Image("cluster").with_topics(topics)


def trace(name: str, topic_id: uuid.UUID | None, folder: Path = ONE, **more: int) -> Trace:
    topic, _, number = name.rpartition("-")
    return Trace(TopicPartition(topic, int(number)), folder / name, topic_id, **more)


def rebuilt(found: list[Trace], before: Image | None, **more: Any) -> Rebuilt:
    return rebuild(found, Known(1, "cluster", DIRECTORIES, lambda: NEW, before, **more))


def test_everything_of_an_image_is_read_back_as_it_was() -> None:
    whole = replace(
        image(a=TopicImage("a", A, (part(3), part(2, made=False)), {"retention.ms": "1"})),
        broker_overrides={"1": {"log.cleaner.threads": "2"}, layout.DEFAULT_BROKER: {}},
        group_overrides={"a/../b": {"consumer.session.timeout.ms": "45000"}},
        client_metrics={"a/../b": {"metrics": "*"}},
        deleted={B: "b"},
    )
    with contextlib.closing(EmbeddedStore.in_memory(EmbeddedStore.file_of(layout.whole(whole)))) as store:
        assert store.read(read_image()) == whole


def test_partitions_that_are_where_they_were_change_nothing() -> None:
    before = image(a=TopicImage("a", A, (part(3), part(2, "second")), {}))
    result = rebuilt([trace("a-0", A), trace("a-1", None, TWO)], before, stale=False, producer_id=999)
    assert (result.image, result.done, result.problems, result.producer_id) == (before, [], [], 999)


def test_older_metadata_are_led_and_numbered_behind_everything_that_wrote() -> None:
    before = image(a=TopicImage("a", A, (part(3), part(7)), {"retention.ms": "1"}))
    found = [trace("a-0", A, leader_epoch=5, producer_id=70_000_000), trace("a-1", A, TWO)]
    result = rebuilt(found, before, producer_id=999)
    assert result.image.topics["a"].partitions == (part(6), part(8, "second"))
    assert result.image.topics["a"].overrides == {"retention.ms": "1"}
    with contextlib.closing(EmbeddedStore.in_memory(EmbeddedStore.file_of(result.operations(1)))) as store:
        assert store.read(last_producer_id()) >= 70_000_000 + PRODUCER_IDS_SKIPPED


def test_a_topic_that_is_not_known_is_made_of_its_partitions() -> None:
    result = rebuilt([trace("b-0", B, leader_epoch=2), trace("b-1", None, TWO), trace("c-0", None)], None)
    assert {name: topic.id for name, topic in result.image.topics.items()} == {"b": B, "c": NEW}
    assert result.image.topics["b"].partitions == (part(3), part(1, "second"))
    assert result.image.topics["b"].overrides == {"retention.ms": "-1", "retention.bytes": "-1"}
    assert result.problems == [] and len(result.done) == 2


def test_what_speaks_against_itself_is_a_problem() -> None:
    before = image(a=TopicImage("a", A, (part(),), {}))
    for found, said in (
        ([trace("a-0", A), trace("a-0", A, TWO)], "a-0 is in both /one and /two"),
        ([trace("a-0", A), trace("b-0", B), trace("b-1", NEW)], "topic b has several topic ids"),
        ([trace("a-0", A), trace("b-0", A)], "/one/b-0 has the topic id of a"),
        ([trace("a-0", A), trace("b-1", B)], "b-0 has no folder"),
        ([], "a-0 has no folder"),
    ):
        [problem] = rebuilt(found, before).problems
        assert problem.startswith(said)


def test_only_what_was_accepted_begins_anew() -> None:
    before = image(a=TopicImage("a", A, (part(1), part(1), part(1, "away"), part(1, "away")), {}))
    lost = {TopicPartition("a", 0), TopicPartition("a", 2)}
    result = rebuilt([], before, stale=False, accepted=lost.__contains__)
    anew = part(2, made=False)
    assert result.image.topics["a"].partitions == (anew, part(1), anew, part(1, "away"))
    assert [problem.split()[0] for problem in result.problems] == ["a-1"]


def test_what_was_deleted_or_never_made_is_not_missed() -> None:
    before = replace(image(a=TopicImage("a", A, (part(made=False),), {})), deleted={B: "b"})
    result = rebuilt([trace("b-0", B)], before, stale=False)
    assert (result.image, result.problems) == (before, [])
    assert unknown_to(before, [trace("b-0", B), trace("b-1", None), trace("a-0", None)]) == []
    assert len(unknown_to(before, [trace("b-0", NEW), trace("c-0", None)])) == 2
