"""A topic that was deleted and made anew, before this broker heard of either."""

import uuid
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.coordinators.assembly import Coordinators
from moldau.coordinators.decision import TransactionEnd
from moldau.errors import ErrorCode
from moldau.handlers.groups.offset_fetch import OffsetFetch
from moldau.names import OFFSETS_TOPIC
from moldau.protocol.apis import OFFSET_FETCH
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.turns import turn
from tests.coordinators.fake_log import FakeLog, answered, in_virtual_time, leading
from tests.coordinators.groups.scene import Stage
from tests.coordinators.offsets.committing import TP, commit, commit_in_transaction, decide
from tests.coordinators.settings import group_settings
from tests.requests.calling import call

OLD, NEW = uuid.UUID(int=7), uuid.UUID(int=8)


def image_with(topic: uuid.UUID) -> Image:
    return Image("").with_topics({"t": TopicImage("t", topic, (PartitionImage(1, 0, (1,), (1,)),), {})})


def test_the_offsets_of_a_topic_that_was_deleted_and_made_anew_at_once_go() -> None:
    async def play() -> None:
        groups = await leading(FakeLog(), "g")
        metadata: Any = SimpleNamespace(image=image_with(OLD))
        nothing: Any = None
        coordinators = Coordinators(nothing, metadata, nothing, nothing, nothing)
        vars(coordinators)["groups"] = groups
        assert await answered(groups.commit(commit(500, topic=OLD))) == [ErrorCode.NONE]
        forgetting = coordinators.forget_topics(image_with(NEW), ["t"])
        if isawaitable(forgetting):
            await forgetting
            await answered(groups.commit(commit(0, topic=NEW)))  # behind the deletions in the log
        assert groups.offsets("g")[TP].offset == 0
        await groups.stop()

    in_virtual_time(play())


def test_an_offset_of_an_earlier_topic_of_that_name_is_not_fetched_by_the_id_of_the_new_one() -> None:
    async def play() -> None:
        groups = await leading(FakeLog(), "g")
        assert await answered(groups.commit(commit(500, topic=OLD))) == [ErrorCode.NONE]
        topics = [OffsetFetchRequestTopics(topic_id=NEW, partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
        response = turn(OffsetFetch(groups, lambda: image_with(NEW))(request, call(OFFSET_FETCH, 10)))
        (topic,) = response.groups[0].topics
        assert topic.partitions[0].committed_offset == -1
        await groups.stop()

    in_virtual_time(play())


def test_an_offsets_topic_that_was_made_anew_is_loaded_anew() -> None:
    async def play() -> None:
        log = FakeLog()
        groups = await leading(log, "g")
        partition = groups.partition_of("g")
        assert await answered(groups.commit(commit(500, topic=OLD))) == [ErrorCode.NONE]
        parts = tuple(PartitionImage(1 if n == partition else 2, 0, (1,), (1,)) for n in range(50))
        before, after = (
            Image("").with_topics({OFFSETS_TOPIC: TopicImage(OFFSETS_TOPIC, one, parts, {})}) for one in (OLD, NEW)
        )
        metadata: Any = SimpleNamespace(image=before)
        config: Any = SimpleNamespace(node_id=1)
        replicas: Any = SimpleNamespace(hosted={})
        nothing: Any = None
        coordinators = Coordinators(config, metadata, nothing, replicas, nothing)
        vars(coordinators)["groups"] = groups
        await coordinators.follow(before, [OFFSETS_TOPIC])
        log.batches.clear()  # the log of the new topic
        metadata.image = after
        await coordinators.follow(after, [OFFSETS_TOPIC])
        await groups.loaded("g")
        assert groups.offsets("g") == {}
        await groups.stop()

    in_virtual_time(play())


@pytest.mark.parametrize("commits", [False, True])
def test_offsets_of_the_earlier_topic_go_although_a_transaction_has_more_of_them(commits: bool) -> None:
    stage = Stage(group_settings())
    decide(stage, commit(500, topic=OLD))
    decide(stage, commit_in_transaction(600, OLD))
    make_anew(stage)
    stage.carry_out(stage.shard.end_transaction(TransactionEnd(1, 0, 0, commits, 2), stage.ticket(), stage.now))
    assert TP not in stage.shard.offsets.of("g")


def test_an_offset_of_the_new_topic_in_a_transaction_stays() -> None:
    stage = Stage(group_settings())
    decide(stage, commit(500, topic=OLD))
    decide(stage, commit_in_transaction(6, NEW))
    make_anew(stage)
    stage.carry_out(stage.shard.end_transaction(TransactionEnd(1, 0, 0, True, 2), stage.ticket(), stage.now))
    assert stage.shard.offsets.of("g")[TP].offset == 6


@pytest.mark.parametrize(("topic", "stays"), [(OLD, False), (NEW, True)])
def test_a_commit_on_its_way_stays_if_it_is_for_the_new_topic(topic: uuid.UUID, stays: bool) -> None:
    stage = Stage(group_settings())
    decide(stage, commit(500, topic=OLD))
    stage.holding = True
    decide(stage, commit(501, topic=topic))
    make_anew(stage)
    stage.holding = False
    stage.commit_held()
    assert (TP in stage.shard.offsets.of("g")) is stays


def make_anew(stage: Stage) -> None:
    stage.image = image_with(NEW)
    for out in stage.shard.forget_topics(frozenset({"t"}), stage.now):
        stage.carry_out(out)
