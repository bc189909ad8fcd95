"""Changes that are larger than ZooKeeper takes at once: how they are cut, and that a controller completes what the one
before it has left half done."""

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from moldau.cluster.controlling.controller import NewTopic
from moldau.cluster.state import layout
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.metadata_store.steps import STEP_BYTES, STEP_OPERATIONS, in_steps
from moldau.metadata_store.store import Create, NodeOperation, Set, Written, size_of
from tests.cluster.opening import open_cluster
from tests.cluster.several import Member, Members, play

COUNT = 300
"""Partitions enough for two steps."""


def topic(count: int, setting: str = "1") -> TopicImage:
    parts = (PartitionImage(1, 0, (1,), (1,)),) * count
    return TopicImage("t", uuid.UUID(int=5), parts, {"retention.ms": setting})


def sizes(operations: Sequence[NodeOperation]) -> list[int]:
    steps = in_steps(operations)
    assert [operation for step in steps for operation in step] == list(operations)
    assert all(sum(map(size_of, step)) <= STEP_BYTES for step in steps)
    return [len(step) for step in steps]


def test_the_order_stays_and_no_step_is_larger_than_the_limits() -> None:
    assert sizes([]) == []
    assert sizes(layout.topic_created(topic(248), 1)) == [499]
    assert sizes(layout.topic_created(topic(COUNT), 1)) == [STEP_OPERATIONS, 103]
    assert sizes(layout.topic_deleted(topic(COUNT))) == [STEP_OPERATIONS, 104]
    half = STEP_BYTES // 2
    assert sizes([Set("/a", bytes(half)), Set("/b", bytes(half)), Set("/c", b"")]) == [1, 2]


def test_the_settings_of_a_topic_and_its_node_are_written_together() -> None:
    wide = topic(9000, "1" * 450_000)
    assert [each.path for each in in_steps(layout.topic_created(wide, 1))[0]] == [
        "/config/topics/t", "/brokers/topics/t", "/brokers/topics/t/partitions"
    ]  # fmt: skip
    fillers: list[NodeOperation] = [Create(f"/{number}") for number in range(STEP_OPERATIONS - 1)]
    assert sizes([*fillers, *layout.topic_created(topic(1), 1)]) == [STEP_OPERATIONS - 1, 5]


def test_what_zookeeper_would_not_take_is_refused_before_anything_is_written() -> None:
    with pytest.raises(StorageError, match="larger than ZooKeeper takes in one step"):
        in_steps([Create("/a"), *layout.topic_created(topic(9000, "1" * 990_000), 1)])


def test_a_file_takes_a_large_change_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    multi = EmbeddedSession.multi

    async def counting(session: EmbeddedSession, operations: Sequence[NodeOperation]) -> list[Written | None]:
        written.append(len(operations))
        return await multi(session, operations)

    async def scenario() -> None:
        cluster = await open_cluster(tmp_path)
        written.clear()
        await cluster.topics.create([NewTopic("t", COUNT)])
        await cluster.topics.delete([("t", None)])
        await cluster.close()

    monkeypatch.setattr(EmbeddedSession, "multi", counting)
    asyncio.run(scenario())
    assert [count > 2 * COUNT for count in written] == [True, True]


def stops_after_a_step(member: Member, is_killed: bool) -> None:
    """From now on the controller is killed after the first large step that it has written, or hears nothing of the
    second one."""
    session, multi = member.session, member.session.multi

    async def stopping(operations: Sequence[NodeOperation]) -> list[Written | None]:
        results = await multi(operations)
        if len(operations) > STEP_OPERATIONS:
            session.multi = multi  # type: ignore[method-assign]
            if is_killed:
                member.die()
            else:
                session.link.loses_next_answer = True
        return results

    session.multi = stopping  # type: ignore[method-assign]


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_large_change_that_was_left_half_done_is_completed(is_killed: bool) -> None:
    async def scenario(members: Members) -> None:
        def there(image: Image) -> bool:
            return "t" in image.topics and len(image.topics["t"].partitions) == COUNT

        async def broken_off() -> Member:
            controller = await members.controller()
            stops_after_a_step(controller, is_killed)
            return controller

        def left(controller: Member) -> None:
            if is_killed:
                del members[controller.broker_id]

        for number in (1, 2, 3):
            await members.join(number)
        controller = await broken_off()
        with pytest.raises(KafkaError) as refused:
            await controller.acting.topics.create([NewTopic("t", COUNT, configs=[("retention.ms", "5")])])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        left(controller)
        image = await members.shown(there)
        assert image.topics["t"].overrides == {"retention.ms": "5"}
        assert layout.state_path("t", COUNT - 1) in members.store.nodes

        topic_id = image.topics["t"].id
        controller = await broken_off()
        with pytest.raises(KafkaError):
            await controller.acting.topics.delete([("t", None)])
        left(controller)
        while any("/topics/t" in path for path in members.store.nodes):
            await asyncio.sleep(0.1)
        controller = await members.controller()
        assert "t" not in controller.image.topics
        [(_, again)] = await controller.acting.topics.create([NewTopic("t", 2)])
        assert isinstance(again, TopicImage)
        assert again.id != topic_id

    play(scenario)
