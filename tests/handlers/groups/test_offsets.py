"""OffsetCommit, OffsetFetch and OffsetDelete say in every version what Apache Kafka 4.3.1 said when it was asked."""

import uuid
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.repetitions import NAMED_MAX
from moldau.protocol import apis
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.handlers.group_asking import T_ID, Group, play
from tests.handlers.groups.test_groups import versions

NOBODY_ID = uuid.UUID(int=5)
Place = str | uuid.UUID


async def commit(
    group: Group, version: int, *parts: tuple[int, int, str | None], place: Place = "", **fields: Any
) -> list[tuple[int, str]]:
    where: Place = place or (T_ID if version >= 10 else "t")
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=p, committed_offset=o, committed_leader_epoch=3, committed_metadata=m
        )
        for p, o, m in parts
    ]
    topic = OffsetCommitRequestTopic(
        **{"topic_id" if isinstance(where, uuid.UUID) else "name": where}, partitions=partitions
    )
    response = await group.ask(
        apis.OFFSET_COMMIT, version, OffsetCommitRequest(**{"group_id": "g", "topics": [topic], **fields})
    )
    [answered] = response.topics
    assert (answered.topic_id if version >= 10 else answered.name) == where
    return [(p.partition_index, ErrorCode(p.error_code).name) for p in answered.partitions]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_offset_that_is_kept_for_ever_is_committed(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        assert await commit(group, version, (0, 5, ""), retention_time_ms=2**63 - 1) == [(0, "NONE")]
        assert (await fetch(group, version, "g", [0]))[1][0][1] == 5

    play(scene)


def one_group(version: int, group_id: str, partitions: list[int] | None, place: Place = "") -> OffsetFetchRequest:
    where: Place = place or (T_ID if version >= 10 else "t")
    if version < 8:
        older = None if partitions is None else [OffsetFetchRequestTopic(name=str(where), partition_indexes=partitions)]
        return OffsetFetchRequest(group_id=group_id, topics=older)
    name = {"topic_id" if isinstance(where, uuid.UUID) else "name": where}
    newer = None if partitions is None else [OffsetFetchRequestTopics(**name, partition_indexes=partitions)]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=newer)])


async def fetch(group: Group, version: int, group_id: str, partitions: list[int] | None, place: Place = "") -> Any:
    """The error of the whole, and (partition, offset, epoch, metadata, error) of each."""
    response = await group.ask(apis.OFFSET_FETCH, version, one_group(version, group_id, partitions, place))
    whole = response if version < 8 else response.groups[0]
    epochs = version >= 5
    return whole.error_code, [
        (p.partition_index, p.committed_offset, p.committed_leader_epoch if epochs else 3, p.metadata, p.error_code)
        for topic in whole.topics
        for p in topic.partitions
    ]


@pytest.mark.parametrize("version", versions(apis.OFFSET_COMMIT))
def test_offsets_are_taken_for_partitions_that_exist(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        answered = await commit(
            group, version, (0, 5, "note"), (7, 1, ""), (1, -5, None), (2, 3, "x" * 4097), (-1, 1, "")
        )
        unknown = "UNKNOWN_TOPIC_OR_PARTITION"
        assert answered == [(7, unknown), (-1, unknown), (0, "NONE"), (1, "NONE"), (2, "OFFSET_METADATA_TOO_LARGE")]
        if version >= 10:
            assert await commit(group, version, (0, 1, ""), place=NOBODY_ID) == [(0, "UNKNOWN_TOPIC_ID")]
        else:
            assert await commit(group, version, (0, 1, ""), place="nope") == [(0, unknown)]
        kept = [(tp.partition, value.offset, value.metadata) for tp, value in group.coordinator.offsets("g").items()]
        assert kept == [(0, 5, "note"), (1, -5, "")]

    play(scene)


@pytest.mark.parametrize("version", [8, 10])
def test_topics_that_are_named_twice_are_answered_as_kafka_does(version: int) -> None:
    def topic(place: Place, *partitions: int) -> OffsetCommitRequestTopic:
        where = {"topic_id" if isinstance(place, uuid.UUID) else "name": place}
        parts = [OffsetCommitRequestPartition(partition_index=p, committed_offset=1) for p in partitions]
        return OffsetCommitRequestTopic(**where, partitions=parts)

    async def script(group: Group) -> None:
        async def committed(*topics: OffsetCommitRequestTopic) -> list[tuple[Place, list[int]]]:
            request = OffsetCommitRequest(group_id="g", topics=list(topics))
            answered = (await group.ask(apis.OFFSET_COMMIT, version, request)).topics
            return [
                (one.topic_id if version >= 10 else one.name, [p.partition_index for p in one.partitions])
                for one in answered
            ]

        known: Place = T_ID if version >= 10 else "t"
        absent: Place = NOBODY_ID if version >= 10 else "absent"
        assert await committed(topic(known, 0), topic(known, 1, 0)) == [(known, [0]), (known, [1, 0])]
        assert await committed(topic(known, 0), topic(absent), topic(known, 1)) == [(absent, []), (known, [0, 1])]
        assert await committed(topic(known, 0, 9), topic(known, 1)) == [(known, [9, 0, 1])]
        assert await committed(topic(known)) == []

    play(script)


@pytest.mark.parametrize("version", versions(apis.OFFSET_COMMIT))
def test_commits_come_from_members_of_the_generation(version: int) -> None:
    async def scene(group: Group) -> None:
        member = await group.stable()
        await group.load("never")

        async def error(generation: int, member_id: str, group_id: str = "g") -> str:
            fields = {"group_id": group_id, "generation_id_or_member_epoch": generation, "member_id": member_id}
            [(_, name)] = await commit(group, version, (0, 1, ""), **fields)
            return name

        assert await error(1, member) == "NONE"
        assert await error(2, member) == "ILLEGAL_GENERATION"
        assert await error(1, "ghost") == "UNKNOWN_MEMBER_ID"
        assert await error(-1, "") == "UNKNOWN_MEMBER_ID"
        assert await error(1, member, "never") == ("GROUP_ID_NOT_FOUND" if version >= 9 else "ILLEGAL_GENERATION")
        assert await error(-1, "", "not-ours") == "NOT_COORDINATOR"
        assert await error(-1, "whoever", "never") == "NONE"

    play(scene)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_older_clients_may_ask_for_a_retention_of_their_own(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        assert await commit(group, version, (0, 5, ""), retention_time_ms=1000) == [(0, "NONE")]
        [value] = group.coordinator.offsets("g").values()
        assert value.expire_timestamp == value.commit_timestamp + 1000

    play(scene)


@pytest.mark.parametrize("version", versions(apis.OFFSET_FETCH))
def test_what_was_committed_is_fetched_and_nothing_is_no_error(version: int) -> None:
    async def scene(group: Group) -> None:
        await group.load("g", "never")
        await commit(group, 6, (0, 5, "note"), (1, 6, None))
        assert await fetch(group, version, "g", [0, 1, 2]) == (
            0,
            [(0, 5, 3, "note", 0), (1, 6, 3, "", 0), (2, -1, -1 if version >= 5 else 3, "", 0)],
        )
        error, nothing = await fetch(group, version, "never", [0])
        assert (error, [p[:2] for p in nothing]) == (0, [(0, -1)])
        if version >= 2:
            assert await fetch(group, version, "g", None) == (0, [(0, 5, 3, "note", 0), (1, 6, 3, "", 0)])
            assert await fetch(group, version, "never", None) == (0, [])
        if version >= 10:
            assert await fetch(group, version, "g", [0], NOBODY_ID) == (
                0,
                [(0, -1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)],
            )

    play(scene)


@pytest.mark.parametrize("version", versions(apis.OFFSET_FETCH))
def test_a_group_that_is_not_ours_is_an_error(version: int) -> None:
    async def scene(group: Group) -> None:
        error, partitions = await fetch(group, version, "g", [0])
        if version >= 2:
            assert (error, partitions) == (ErrorCode.NOT_COORDINATOR, [])
        else:
            assert [(p[1], p[4]) for p in partitions] == [(-1, ErrorCode.NOT_COORDINATOR)]

    play(scene)


def test_many_groups_are_fetched_at_once_and_each_has_its_own_error() -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        await commit(group, 6, (0, 5, ""))
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "not-ours")]
        response = await group.ask(apis.OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups))
        assert [(g.group_id, g.error_code, len(g.topics)) for g in response.groups] == [
            ("g", 0, 1),
            ("not-ours", 16, 0),
        ]

    play(scene)


def test_groups_and_partitions_are_fetched_as_often_as_by_kafka_up_to_a_bound() -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        await commit(group, 6, (0, 5, "a long note"))
        groups = [OffsetFetchRequestGroup(group_id="g", topics=None)] * (NAMED_MAX + 1)
        *fetched, refused = (await group.ask(apis.OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups))).groups
        assert all(len(one.topics) == 1 for one in fetched)
        assert (refused.group_id, refused.error_code, refused.topics) == ("g", ErrorCode.INVALID_REQUEST, [])

        _, partitions = await fetch(group, 9, "g", [0] * (NAMED_MAX + 1))
        known, repeated = (0, 5, 3, "a long note", 0), (0, -1, -1, "", ErrorCode.INVALID_REQUEST)
        assert partitions == [known] * NAMED_MAX + [repeated]
        unknown = (0, -1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)
        assert await fetch(group, 10, "g", [0] * (NAMED_MAX + 1), NOBODY_ID) == (0, [unknown] * (NAMED_MAX + 1))

    play(scene)


def test_offsets_of_a_topic_that_is_gone_are_left_out_where_topics_have_ids() -> None:
    async def scene(group: Group) -> None:
        await group.load("g")
        await commit(group, 6, (0, 5, ""))
        group.image = group.image.with_topics({"t": None})
        assert (await fetch(group, 9, "g", None))[1] == [(0, 5, 3, "", 0)]
        assert (await fetch(group, 10, "g", None))[1] == []

    play(scene)


def test_offsets_are_deleted_but_not_under_those_who_read_them() -> None:
    async def scene(group: Group) -> None:
        await group.load("lone", "never")
        member = await group.stable()
        await commit(group, 6, (0, 5, ""), generation_id_or_member_epoch=1, member_id=member)
        await commit(group, 6, (0, 5, ""), group_id="lone")

        async def delete(group_id: str, *partitions: int, name: str = "t") -> tuple[str, list[tuple[int, str]]]:
            parts = [OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
            request = OffsetDeleteRequest(
                group_id=group_id, topics=[OffsetDeleteRequestTopic(name=name, partitions=parts)]
            )
            response = await group.ask(apis.OFFSET_DELETE, 0, request)
            each = [(p.partition_index, ErrorCode(p.error_code).name) for t in response.topics for p in t.partitions]
            return ErrorCode(response.error_code).name, each

        assert await delete("g", 0) == ("NONE", [(0, "GROUP_SUBSCRIBED_TO_TOPIC")])
        unknown = "UNKNOWN_TOPIC_OR_PARTITION"
        assert await delete("lone", 0, 2, 9) == ("NONE", [(9, unknown), (0, "NONE"), (2, "NONE")])
        assert await delete("lone", 0, name="nope") == ("NONE", [(0, unknown)])
        assert await delete("never", 0) == ("GROUP_ID_NOT_FOUND", [])
        assert await delete("", 0) == ("INVALID_GROUP_ID", [])
        assert (await fetch(group, 9, "lone", None)) == (0, [])

    play(scene)
