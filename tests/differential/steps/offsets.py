"""Offsets of groups: committed by members and by those who are none, fetched in each generation, deleted."""

from moldau.protocol.apis import (
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tests.differential.script import Step, V, step
from tests.differential.steps.groups import beat, join, sync
from tests.differential.steps.topics import NOBODY


def commit(
    group: str, *offsets: tuple[int, int, str | None], topic: str = "offsets", **more: object
) -> dict[str, object]:
    """(partition, offset, metadata) of one topic."""
    parts = [
        {"partition_index": index, "committed_offset": at, "committed_metadata": note} for index, at, note in offsets
    ]
    return {"group_id": group, "topics": [{"name": topic, "partitions": parts}], **more}


def commit_by_id(group: str, topic_id: object, *offsets: tuple[int, int]) -> dict[str, object]:
    parts = [{"partition_index": index, "committed_offset": at, "committed_leader_epoch": 0} for index, at in offsets]
    return {"group_id": group, "topics": [{"topic_id": topic_id, "partitions": parts}]}


def ask(group: str, *partitions: int, topic: str = "offsets", **more: object) -> dict[str, object]:
    return {"group_id": group, "topics": [{"name": topic, "partition_indexes": list(partitions)}], **more}


def ask_groups(*groups: str, **more: object) -> dict[str, object]:
    listed = [{"group_id": g, "topics": [{"name": "offsets", "partition_indexes": [0, 1]}]} for g in groups]
    return {"groups": listed, **more}


def delete(group: str, *partitions: int, topic: str = "offsets") -> dict[str, object]:
    parts = [{"partition_index": index} for index in partitions]
    return {"group_id": group, "topics": [{"name": topic, "partitions": parts}]}


COMMITTING: tuple[Step, ...] = (
    step("commit in the oldest way", OFFSET_COMMIT, 2, commit("o", (0, 5, "five"))),
    step("commit with a retention", OFFSET_COMMIT, 4, commit("o", (1, 6, None), retention_time_ms=60_000)),
    step(
        "commit with leader epochs",
        OFFSET_COMMIT,
        6,
        {
            "group_id": "o",
            "topics": [
                {
                    "name": "offsets",
                    "partitions": [{"partition_index": 0, "committed_offset": 7, "committed_leader_epoch": 3}],
                }
            ],
        },
    ),
    step("commit, newest by name", OFFSET_COMMIT, 9, commit("o", (1, 8, ""))),
    step("commit, newest by id", OFFSET_COMMIT, 10, commit_by_id("byid", V("offsets"), (0, 9), (1, 0))),
    step("commit by an id nobody has", OFFSET_COMMIT, 10, commit_by_id("byid", NOBODY, (0, 9))),
    step("commit for what is not there", OFFSET_COMMIT, 8, commit("o", (0, 1, None), topic="absent")),
    step("commit for a partition that is not there", OFFSET_COMMIT, 8, commit("o", (7, 1, None), (0, 11, "x"))),
    step("commit a negative offset", OFFSET_COMMIT, 8, commit("neg", (0, -1, None), (1, -5, None))),
    step("commit beyond the end", OFFSET_COMMIT, 8, commit("far", (0, 10**15, None))),
    step("commit a note too long", OFFSET_COMMIT, 8, commit("o", (0, 12, "n" * 4097), (1, 13, "n" * 4096))),
    step("commit for no group", OFFSET_COMMIT, 8, commit("", (0, 1, None))),
    step("commit nothing", OFFSET_COMMIT, 8, {"group_id": "o", "topics": []}),
    step("commit as a member of nothing", OFFSET_COMMIT, 8, commit("o", (0, 1, None), member_id="stranger")),
    step(
        "commit with a generation of nothing",
        OFFSET_COMMIT,
        8,
        commit("never", (0, 1, None), member_id="stranger", generation_id_or_member_epoch=3),
    ),
    step(
        "commit with a generation and no member",
        OFFSET_COMMIT,
        8,
        commit("o", (0, 1, None), generation_id_or_member_epoch=3),
    ),
)

FETCHING: tuple[Step, ...] = (
    step("fetch offsets in the oldest way", OFFSET_FETCH, 1, ask("o", 0, 1)),
    step("fetch all offsets", OFFSET_FETCH, 2, {"group_id": "o", "topics": None}),
    step("fetch offsets with throttling", OFFSET_FETCH, 3, ask("o", 0, 9)),
    step("fetch offsets with epochs", OFFSET_FETCH, 5, ask("o", 0, 1)),
    step("fetch offsets, flexible", OFFSET_FETCH, 6, ask("o", 1)),
    step("fetch stable offsets", OFFSET_FETCH, 7, ask("o", 0, 1, require_stable=True)),
    step("fetch offsets of several groups", OFFSET_FETCH, 8, ask_groups("o", "far", "nobody")),
    step(
        "fetch all offsets of several groups",
        OFFSET_FETCH,
        8,
        {"groups": [{"group_id": g, "topics": None} for g in ("o", "nobody")]},
    ),
    step(
        "fetch offsets as a member of nothing",
        OFFSET_FETCH,
        9,
        {"groups": [{"group_id": "o", "member_id": "x", "member_epoch": 1, "topics": None}]},
    ),
    step(
        "fetch offsets by id",
        OFFSET_FETCH,
        10,
        {"groups": [{"group_id": "byid", "topics": [{"topic_id": V("offsets"), "partition_indexes": [0, 1, 5]}]}]},
    ),
    step("fetch all offsets by id", OFFSET_FETCH, 10, {"groups": [{"group_id": "byid", "topics": None}]}),
    step(
        "fetch offsets by an id nobody has",
        OFFSET_FETCH,
        10,
        {"groups": [{"group_id": "byid", "topics": [{"topic_id": NOBODY, "partition_indexes": [0]}]}]},
    ),
    step("fetch offsets of a group that is not there", OFFSET_FETCH, 5, ask("nobody", 0)),
    step("fetch all offsets of a group that is not there", OFFSET_FETCH, 5, {"group_id": "nobody", "topics": None}),
    step("fetch offsets of a topic that is not there", OFFSET_FETCH, 5, ask("o", 0, topic="absent")),
    step("fetch offsets of no group", OFFSET_FETCH, 5, ask("", 0)),
    step("fetch offsets of no topic", OFFSET_FETCH, 5, {"group_id": "o", "topics": []}),
    step("fetch negative offsets", OFFSET_FETCH, 5, ask("neg", 0, 1)),
    step("fetch offsets of no groups", OFFSET_FETCH, 8, {"groups": []}),
)

MEMBERS: tuple[Step, ...] = (
    step("join to commit", JOIN_GROUP, 3, join("team"), save={"mate": "member_id"}),
    step(
        "commit before the group is stable",
        OFFSET_COMMIT,
        7,
        commit("team", (0, 1, None), member_id=V("mate"), generation_id_or_member_epoch=1),
    ),
    step("sync to commit", SYNC_GROUP, 2, sync("team", 1, V("mate"), (V("mate"), b"all"))),
    step(
        "commit as a member",
        OFFSET_COMMIT,
        7,
        commit("team", (0, 2, None), member_id=V("mate"), generation_id_or_member_epoch=1),
    ),
    step(
        "commit as a member of another generation",
        OFFSET_COMMIT,
        7,
        commit("team", (0, 3, None), member_id=V("mate"), generation_id_or_member_epoch=2),
    ),
    step(
        "commit as nobody",
        OFFSET_COMMIT,
        7,
        commit("team", (0, 4, None), member_id="stranger", generation_id_or_member_epoch=1),
    ),
    step("commit from outside while there are members", OFFSET_COMMIT, 7, commit("team", (0, 5, None))),
    step(
        "commit under another's name",
        OFFSET_COMMIT,
        7,
        commit("team", (0, 6, None), member_id=V("mate"), generation_id_or_member_epoch=1, group_instance_id="i"),
    ),
    step("what was committed", OFFSET_FETCH, 7, ask("team", 0)),
    step("delete offsets that are in use", OFFSET_DELETE, 0, delete("team", 0)),
    step("delete offsets of a topic nobody reads", OFFSET_DELETE, 0, delete("team", 0, topic="plain")),
    step("still alive", HEARTBEAT, 1, beat("team", 1, V("mate"))),
    step("it leaves what it committed", LEAVE_GROUP, 2, {"group_id": "team", "member_id": V("mate")}),
)

DELETING: tuple[Step, ...] = (
    step("delete offsets", OFFSET_DELETE, 0, delete("o", 0)),
    step("the offsets are gone", OFFSET_FETCH, 5, ask("o", 0, 1)),
    step("delete offsets again", OFFSET_DELETE, 0, delete("o", 0, 9)),
    step("delete offsets of a topic that is not there", OFFSET_DELETE, 0, delete("o", 0, topic="absent")),
    step("delete offsets of a group that is not there", OFFSET_DELETE, 0, delete("nobody", 0)),
    step("delete offsets of no group", OFFSET_DELETE, 0, delete("", 0)),
    step("delete no offsets", OFFSET_DELETE, 0, {"group_id": "o", "topics": []}),
)

STEPS: tuple[Step, ...] = (*COMMITTING, *FETCHING, *MEMBERS, *DELETING)
