"""OffsetCommit, OffsetFetch and OffsetDelete for clients that may not read or describe every topic: as Kafka 4.3.1."""

import uuid
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.names import TopicPartition
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
from moldau.requests.access import DESCRIBE_GROUP, DESCRIBE_TOPIC, READ_TOPIC
from tests.handlers.group_asking import T_ID, Group, play, topic
from tests.handlers.groups.test_groups import versions
from tests.handlers.judged import asked_rights, blanked, parts_of
from tests.requests.calling import Denying

IDS = {"t": T_ID, "u": uuid.UUID(int=79), "gone": uuid.UUID(int=5)}
"""Topic `gone` does not exist."""
NAMES = {topic_id: name for name, topic_id in IDS.items()}
NONE, DENIED, UNKNOWN = 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED


def where(version: int, name: str) -> dict[str, Any]:
    return {"topic_id": IDS[name]} if version >= 10 else {"name": name}


def named(version: int, answer: Any) -> str:
    return NAMES[answer.topic_id] if version >= 10 else str(answer.name)


def commit(version: int, *wanted: tuple[str, list[int]], group: str = "g") -> OffsetCommitRequest:
    topics = [
        OffsetCommitRequestTopic(
            **where(version, name),
            partitions=[OffsetCommitRequestPartition(partition_index=p, committed_offset=5) for p in partitions],
        )
        for name, partitions in wanted
    ]
    return OffsetCommitRequest(group_id=group, topics=topics)


async def ready(group: Group) -> None:
    """Group g, which has offsets in topics t and u."""
    group.image = group.image.with_topics({"u": topic("u", IDS["u"], 1)})
    await group.load("g")
    await group.ask(apis.OFFSET_COMMIT, 9, commit(9, ("t", [0, 1]), ("u", [0])))


def errors(version: int, response: Any) -> list[tuple[str, int, int]]:
    return [
        (named(version, one), part.partition_index, part.error_code)
        for one in response.topics
        for part in one.partitions
    ]


@pytest.mark.parametrize("version", versions(apis.OFFSET_COMMIT))
def test_a_commit_is_refused_for_topics_that_the_client_may_not_read(version: int) -> None:
    async def scene(group: Group) -> None:
        await ready(group)
        denying = Denying((READ_TOPIC, "t"), (READ_TOPIC, "gone"))
        request = commit(version, ("u", [0, 9]), ("t", [2, 7]), ("gone", [0]))
        response = await group.ask(apis.OFFSET_COMMIT, version, request, authorizer=denying)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else DENIED
        assert errors(version, response) == [
            *[("u", 9, UNKNOWN), ("u", 0, NONE)],
            *[("t", 2, DENIED), ("t", 7, DENIED)],
            ("gone", 0, unknown),
        ]
        assert group.coordinator.offsets("g").get(TopicPartition("t", 2)) is None
        known = [(READ_TOPIC, "u"), (READ_TOPIC, "t"), (READ_TOPIC, "gone")][: 2 if version >= 10 else 3]
        assert denying.asked == known, "once for each topic"
        assert denying.logged == known[1:]
        assert asked_rights(denying) == parts_of(apis.OFFSET_COMMIT)

    play(scene)


@pytest.mark.parametrize("version", versions(apis.OFFSET_COMMIT))
def test_a_commit_that_is_refused_as_a_whole_says_nothing_of_its_group_or_topics(version: int) -> None:
    async def scene(group: Group) -> None:
        denying, places = Denying((READ_TOPIC, "*")), ("t",) if version >= 10 else ("t", "gone")
        answers = [
            blanked(
                await group.ask(apis.OFFSET_COMMIT, version, commit(version, (name, [0, 9])), authorizer=denying), name
            )
            for name in places
        ]
        assert all(one == answers[0] for one in answers)
        assert errors(version, await group.ask(apis.OFFSET_COMMIT, version, commit(version, ("t", [0])))) == [
            ("t", 0, ErrorCode.NOT_COORDINATOR)
        ]
        refused = await group.ask(apis.OFFSET_COMMIT, version, commit(version, ("t", [0])), authorizer=denying)
        assert errors(version, refused) == [("t", 0, DENIED)]

    play(scene)


def fetch(version: int, group: str, *names: str) -> OffsetFetchRequest:
    """All offsets if no topic is named."""
    if version < 8:
        older = [OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1]) for name in names]
        return OffsetFetchRequest(group_id=group, topics=older or None)
    newer = [OffsetFetchRequestTopics(**where(version, name), partition_indexes=[0, 1]) for name in names]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=newer or None)])


def fetched(version: int, response: Any) -> dict[str, list[tuple[int, int, int, str, int]]]:
    """By topic, in their order: partition, offset, epoch, metadata, error."""
    whole = response if version < 8 else response.groups[0]
    return {
        named(version, one): [
            (p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
            for p in one.partitions
        ]
        for one in whole.topics
    }


def nothing(error: int) -> list[tuple[int, int, int, str, int]]:
    return [(0, -1, -1, "", error), (1, -1, -1, "", error)]


@pytest.mark.parametrize("version", versions(apis.OFFSET_FETCH))
@pytest.mark.parametrize("group_id", ["g", "never", "not-ours"])
def test_no_offset_of_a_group_is_shown_that_the_client_may_not_describe(version: int, group_id: str) -> None:
    async def scene(group: Group) -> None:
        await ready(group)
        await group.load("never")
        denying = Denying((DESCRIBE_GROUP, group_id))
        response = await group.ask(apis.OFFSET_FETCH, version, fetch(version, group_id, "t"), authorizer=denying)
        if version < 2:  # has no other place
            assert fetched(version, response) == {"t": nothing(GROUP_DENIED)}
        else:
            whole = response if version < 8 else response.groups[0]
            assert (whole.error_code, whole.topics) == (GROUP_DENIED, [])
        if version >= 8:
            assert response.groups[0].group_id == group_id
        assert denying.asked == denying.logged == [(DESCRIBE_GROUP, group_id)]

    play(scene)


def test_groups_answer_each_for_itself() -> None:
    async def scene(group: Group) -> None:
        await ready(group)
        request = OffsetFetchRequest(groups=[*fetch(9, "g", "t").groups, *fetch(9, "h", "t").groups])
        response = await group.ask(apis.OFFSET_FETCH, 9, request, authorizer=Denying((DESCRIBE_GROUP, "h")))
        assert [(one.group_id, one.error_code) for one in response.groups] == [("g", 0), ("h", GROUP_DENIED)]

    play(scene)


@pytest.mark.parametrize("version", versions(apis.OFFSET_FETCH))
def test_named_topics_that_the_client_may_not_describe_come_last_without_offsets(version: int) -> None:
    async def scene(group: Group) -> None:
        await ready(group)
        denying = Denying((DESCRIBE_TOPIC, "t"), (DESCRIBE_TOPIC, "gone"))
        request = fetch(version, "g", "gone", "t", "u")
        answers = fetched(version, await group.ask(apis.OFFSET_FETCH, version, request, authorizer=denying))
        gone = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else DENIED
        assert list(answers) == ["u", "gone", "t"]
        assert (answers["gone"], answers["t"]) == (nothing(gone), nothing(DENIED))
        assert [offset for _, offset, *_ in answers["u"]] == [5, -1]
        topics = [(DESCRIBE_TOPIC, "gone"), (DESCRIBE_TOPIC, "t")][version >= 10 :]
        assert denying.asked == [(DESCRIBE_GROUP, "g"), *topics, (DESCRIBE_TOPIC, "u")], "once for each topic"
        assert denying.logged == topics
        assert asked_rights(denying) == parts_of(apis.OFFSET_FETCH)

    play(scene)


@pytest.mark.parametrize("version", range(2, apis.OFFSET_FETCH.high + 1))
def test_topics_that_the_client_may_not_describe_are_left_out_of_all(version: int) -> None:
    async def scene(group: Group) -> None:
        await ready(group)
        denying = Denying((DESCRIBE_TOPIC, "t"))
        answers = fetched(version, await group.ask(apis.OFFSET_FETCH, version, fetch(version, "g"), authorizer=denying))
        assert [(name, [offset for _, offset, *_ in parts]) for name, parts in answers.items()] == [("u", [5])]
        assert denying.asked == [(DESCRIBE_GROUP, "g"), (DESCRIBE_TOPIC, "t"), (DESCRIBE_TOPIC, "u")]
        assert denying.logged == []

    play(scene)


def delete(*wanted: tuple[str, list[int]], group: str = "g") -> OffsetDeleteRequest:
    topics = [
        OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in parts])
        for name, parts in wanted
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)


def test_no_offset_is_deleted_in_topics_that_the_client_may_not_read() -> None:
    async def scene(group: Group) -> None:
        await ready(group)
        denying = Denying((READ_TOPIC, "t"), (READ_TOPIC, "gone"))
        request = delete(("u", [0]), ("t", [0, 7]), ("gone", [0]))
        response = await group.ask(apis.OFFSET_DELETE, 0, request, authorizer=denying)
        assert response.error_code == NONE
        assert errors(0, response) == [("t", 0, DENIED), ("t", 7, DENIED), ("gone", 0, DENIED), ("u", 0, NONE)]
        left = group.coordinator.offsets("g")
        assert left.get(TopicPartition("t", 0)) is not None and left.get(TopicPartition("u", 0)) is None
        assert denying.asked == [(READ_TOPIC, "u"), (READ_TOPIC, "t"), (READ_TOPIC, "gone")], "once for each topic"
        assert denying.logged == denying.asked[1:]
        assert asked_rights(denying) == parts_of(apis.OFFSET_DELETE)

    play(scene)


def test_a_group_that_does_not_exist_is_said_before_topics_are_judged() -> None:
    async def scene(group: Group) -> None:
        await group.load("never")
        request = delete(("t", [0]), group="never")
        response = await group.ask(apis.OFFSET_DELETE, 0, request, authorizer=Denying((READ_TOPIC, "*")))
        assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])

    play(scene)
