"""The life of a member and of its offsets in every version of every group and offset API, with what may go wrong.

A version that is newer than an API's newest is played in that. What is asked wrongly is asked of a group that lives, so
that each error comes from the check it is meant for and from no earlier one.
"""

from moldau.protocol.apis import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
    Api,
)
from tests.differential.script import Step, V, step
from tests.differential.steps.groups import beat, join, sync
from tests.differential.steps.topics import NOBODY

WITH_ID_FIRST, BATCHED, SEVERAL_GROUPS, BY_ID = 4, 3, 8, 10
GONE = "nobody-there"
HIGH_IN_4_3 = {DELETE_GROUPS.key: 2}
"""Where Kafka 4.4 has a newer version, the one that both are asked."""


def leave(group: str, version: int, *members: object) -> dict[str, object]:
    """The newer versions name several, the older ones one."""
    if version < BATCHED:
        return {"group_id": group, "member_id": members[0]}
    return {"group_id": group, "members": [{"member_id": member} for member in members]}


def commit(group: str, version: int, topic: str = "offsets", partition: int = 0, **more: object) -> dict[str, object]:
    note = more.pop("note", "a note")
    where = {"topic_id": V(topic) if topic == "offsets" else NOBODY} if version >= BY_ID else {"name": topic}
    part = {"partition_index": partition, "committed_offset": 40 + version, "committed_metadata": note}
    return {"group_id": group, "topics": [{**where, "partitions": [part]}], **more}


def fetch(group: str, version: int, topic: str = "offsets", *partitions: int) -> dict[str, object]:
    where = {"topic_id": V(topic) if topic == "offsets" else NOBODY} if version >= BY_ID else {"name": topic}
    topics = [{**where, "partition_indexes": list(partitions)}]
    if version < SEVERAL_GROUPS:
        return {"group_id": group, "topics": topics}
    return {"groups": [{"group_id": group, "topics": topics}]}


def fetch_all(group: str, version: int) -> dict[str, object]:
    if version < SEVERAL_GROUPS:
        return {"group_id": group, "topics": None}
    return {"groups": [{"group_id": group, "topics": None}]}


def _life(version: int) -> tuple[Step, ...]:
    """From joining to deleting in one version."""
    group, me = f"life-{version}", V(f"life-{version}")

    def of(api: Api) -> int:
        return max(api.low, min(version, HIGH_IN_4_3.get(api.key, api.high)))

    named = {"protocol_type": "consumer", "protocol_name": "range"} if of(SYNC_GROUP) >= 5 else {}
    joining = (
        step(f"v{version}: come without an id", JOIN_GROUP, version, join(group), save={group: "member_id"}),
        *(
            [step(f"v{version}: come with it", JOIN_GROUP, version, join(group, me))]
            if version >= WITH_ID_FIRST
            else []
        ),
    )
    lowest = of(OFFSET_COMMIT)
    return (
        step(f"v{version}: look for the coordinator", FIND_COORDINATOR, of(FIND_COORDINATOR), _finding(version, group)),
        *joining,
        step(f"v{version}: heartbeat before the sync", HEARTBEAT, of(HEARTBEAT), beat(group, 1, me)),
        step(f"v{version}: described while it completes", DESCRIBE_GROUPS, of(DESCRIBE_GROUPS), {"groups": [group]}),
        step(f"v{version}: commit before the sync", OFFSET_COMMIT, lowest, commit(group, lowest, **_by(me, 1))),
        step(f"v{version}: sync", SYNC_GROUP, of(SYNC_GROUP), sync(group, 1, me, (me, b"mine"), **named)),
        step(f"v{version}: heartbeat", HEARTBEAT, of(HEARTBEAT), beat(group, 1, me)),
        step(f"v{version}: the leader joins again", JOIN_GROUP, version, join(group, me)),
        step(f"v{version}: what it had is no longer shown", DESCRIBE_GROUPS, of(DESCRIBE_GROUPS), {"groups": [group]}),
        step(f"v{version}: sync again", SYNC_GROUP, of(SYNC_GROUP), sync(group, 2, me, (me, b"mine"), **named)),
        step(f"v{version}: described", DESCRIBE_GROUPS, of(DESCRIBE_GROUPS), {"groups": [group, GONE]}),
        step(f"v{version}: listed", LIST_GROUPS, of(LIST_GROUPS), {}),
        step(f"v{version}: delete it too early", DELETE_GROUPS, of(DELETE_GROUPS), {"groups_names": [group]}),
        step(f"v{version}: leave", LEAVE_GROUP, of(LEAVE_GROUP), leave(group, of(LEAVE_GROUP), me)),
        step(f"v{version}: described when empty", DESCRIBE_GROUPS, of(DESCRIBE_GROUPS), {"groups": [group]}),
        step(f"v{version}: come back too late", JOIN_GROUP, version, join(group, me)),
        step(f"v{version}: heartbeat too late", HEARTBEAT, of(HEARTBEAT), beat(group, 2, me)),
        step(f"v{version}: sync too late", SYNC_GROUP, of(SYNC_GROUP), sync(group, 2, me, **named)),
        step(f"v{version}: delete it", DELETE_GROUPS, of(DELETE_GROUPS), {"groups_names": [group]}),
        step(f"v{version}: leave what is gone", LEAVE_GROUP, of(LEAVE_GROUP), leave(group, of(LEAVE_GROUP), me)),
    )


def _finding(version: int, group: str) -> dict[str, object]:
    return {"coordinator_keys": [group, group]} if version >= 4 else {"key": group}


def _by(member: object, generation: int, **more: object) -> dict[str, object]:
    return {"member_id": member, "generation_id_or_member_epoch": generation, **more}


LIVES: tuple[Step, ...] = tuple(one for version in range(10) for one in _life(version))

OPENING: tuple[Step, ...] = (
    step("a group to be asked wrongly", JOIN_GROUP, 3, join("asked"), save={"asked": "member_id"}),
    step("it is stable", SYNC_GROUP, 2, sync("asked", 1, V("asked"), (V("asked"), b"all"))),
    step(
        "a group with a member of that name",
        JOIN_GROUP,
        5,
        join("asked-s", group_instance_id="s"),
        save={"as": "member_id"},
    ),
    step("it is stable too", SYNC_GROUP, 3, sync("asked-s", 1, V("as"), (V("as"), b"all"), group_instance_id="s")),
)
CLOSING: tuple[Step, ...] = (
    step("those asked wrongly are as they were", DESCRIBE_GROUPS, 5, {"groups": ["asked", "asked-s"]}),
    step("the one asked wrongly leaves", LEAVE_GROUP, 5, leave("asked", 5, V("asked"))),
    step("the one with a name leaves", LEAVE_GROUP, 5, leave("asked-s", 5, V("as"))),
    step("those asked wrongly are deleted", DELETE_GROUPS, 2, {"groups_names": ["asked", "asked-s"]}),
)


def _join_wrongly(version: int) -> tuple[Step, ...]:
    return tuple(
        step(f"v{version}: join {what}", JOIN_GROUP, version, fields)
        for what, fields in (
            ("no group", join("")),
            ("for too short", join("asked", session_ms=5999)),
            ("for too long", join("asked", session_ms=1_800_001)),
            ("as a stranger", join("asked", "stranger")),
            ("where nobody is, as a stranger", join(GONE, "stranger")),
            ("as a connector", join("asked", protocol_type="connect")),
            ("as nothing", join("asked", protocol_type="")),
            ("speaking nothing", join("asked", protocols=[])),
            ("speaking otherwise", join("asked", V("asked"), protocols=[{"name": "own", "metadata": b""}])),
            ("as nothing where nobody is", join(GONE, protocol_type="")),
            ("speaking nothing where nobody is", join(GONE, protocols=[])),
        )
    )


def _stay_wrongly(version: int) -> tuple[Step, ...]:
    """SyncGroup and Heartbeat."""
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    syncs = [
        ("no group", sync("", 1, V("asked"), **named)),
        ("where nobody is", sync(GONE, 1, "stranger", **named)),
        ("as a stranger", sync("asked", 1, "stranger", **named)),
        ("without an id", sync("asked", 1, "", **named)),
        ("in a generation to come", sync("asked", 2, V("asked"), **named)),
        ("in one that is gone", sync("asked", 0, V("asked"), **named)),
        ("in none", sync("asked", -1, V("asked"), **named)),
        ("a second time", sync("asked", 1, V("asked"), (V("asked"), b"other"), **named)),
    ]
    if version >= 3:
        syncs += [
            ("under a name nobody has", sync("asked-s", 1, V("as"), group_instance_id="t", **named)),
            ("as another under its name", sync("asked-s", 1, "stranger", group_instance_id="s", **named)),
            ("without its name", sync("asked-s", 1, V("as"), **named)),
        ]
    if version >= 5:
        syncs += [
            ("another kind", sync("asked", 1, V("asked"), protocol_type="connect", protocol_name="range")),
            ("another protocol", sync("asked", 1, V("asked"), protocol_type="consumer", protocol_name="sticky")),
            ("no protocol", sync("asked", 1, V("asked"), protocol_type="consumer")),
            ("no kind, as a stranger", sync("asked", 1, "stranger", protocol_name="range")),
            ("another kind in another generation", sync("asked", 9, V("asked"), protocol_type="x", protocol_name="y")),
        ]
    beats = [
        ("to no group", beat("", 1, V("asked"))),
        ("where nobody is", beat(GONE, 1, "stranger")),
        ("as a stranger", beat("asked", 1, "stranger")),
        ("without an id", beat("asked", 1, "")),
        ("in a generation to come", beat("asked", 2, V("asked"))),
        ("in none", beat("asked", -1, V("asked"))),
        ("as a stranger in another generation", beat("asked", 5, "stranger")),
    ]
    if version >= 3:
        beats += [
            ("under a name nobody has", beat("asked-s", 1, V("as"), group_instance_id="t")),
            ("as another under its name", beat("asked-s", 1, "stranger", group_instance_id="s")),
            ("as another, in another generation", beat("asked-s", 7, "stranger", group_instance_id="s")),
            ("without its name", beat("asked-s", 1, V("as"))),
        ]
    return (
        *(step(f"v{version}: sync {what}", SYNC_GROUP, version, fields) for what, fields in syncs),
        *(
            step(f"v{version}: heartbeat {what}", HEARTBEAT, version, fields)
            for what, fields in (beats if version <= HEARTBEAT.high else ())
        ),
    )


def _leave_wrongly(version: int) -> tuple[Step, ...]:
    asked = [
        ("no group", leave("", version, "stranger")),
        ("where nobody is", leave(GONE, version, "stranger")),
        ("as a stranger", leave("asked", version, "stranger")),
        ("without an id", leave("asked", version, "")),
    ]
    if version >= BATCHED:
        asked += [
            ("as several strangers", leave("asked", version, "stranger", "stranger", "")),
            ("as nobody", leave("asked", version)),
            ("by names", _leave_by("asked-s", ("", "t"), ("stranger", "s"), ("stranger", "t"), (V("as"), "t"))),
            ("by a name where there are none", _leave_by("asked", ("", "s"), (V("asked"), "s"))),
        ]
    return tuple(step(f"v{version}: leave {what}", LEAVE_GROUP, version, fields) for what, fields in asked)


def _leave_by(group: str, *pairs: tuple[object, str]) -> dict[str, object]:
    return {
        "group_id": group,
        "members": [{"member_id": member, "group_instance_id": instance} for member, instance in pairs],
    }


def _commit_wrongly(version: int) -> tuple[Step, ...]:
    asked = [
        ("as nobody, where nobody is", commit(f"simple-{version}", version)),
        ("as nobody, and again", commit(f"simple-{version}", version, partition=1, note=None)),
        ("for no group", commit("", version)),
        ("for what is not there", commit("asked", version, "absent", **_by(V("asked"), 1))),
        ("for a partition that is not there", commit("asked", version, partition=99, **_by(V("asked"), 1))),
        ("for a negative partition", commit("asked", version, partition=-1, **_by(V("asked"), 1))),
        ("with too long a note", commit("asked", version, note="x" * 4097, **_by(V("asked"), 1))),
        ("with too long a note by far", commit("asked", version, note="\u00e9" * 4096, **_by(V("asked"), 1))),
        ("as a member", commit("asked", version, **_by(V("asked"), 1))),
        ("as a stranger", commit("asked", version, **_by("stranger", 1))),
        ("as a stranger in no generation", commit("asked", version, **_by("stranger", -1))),
        ("as a member in no generation", commit("asked", version, **_by(V("asked"), -1))),
        ("as nobody in a generation", commit("asked", version, **_by("", 1))),
        ("in a generation to come", commit("asked", version, **_by(V("asked"), 2))),
        ("in one that is gone", commit("asked", version, **_by(V("asked"), 0))),
        ("from outside", commit("asked", version)),
        ("in a generation, where nobody is", commit(GONE, version, **_by("stranger", 1))),
        ("in generation zero, where nobody is", commit(GONE, version, **_by("", 0))),
        ("in a generation, where nobody ever was", commit(f"simple-{version}", version, **_by("stranger", 0))),
        ("with an id, where nobody ever was", commit(f"simple-{version}", version, **_by("stranger", -1))),
    ]
    if version >= 7:
        asked += [
            ("under a name nobody has", commit("asked-s", version, **_by(V("as"), 1, group_instance_id="t"))),
            ("as another under its name", commit("asked-s", version, **_by("stranger", 1, group_instance_id="s"))),
            ("under its name", commit("asked-s", version, **_by(V("as"), 1, group_instance_id="s"))),
            ("under a name, where nobody ever was", commit("asked-n", version, **_by("", -1, group_instance_id="s"))),
        ]
    return tuple(step(f"v{version}: commit {what}", OFFSET_COMMIT, version, fields) for what, fields in asked)


def _fetch_offsets(version: int) -> tuple[Step, ...]:
    asked = [
        ("of a member", fetch("asked", version, "offsets", 0, 1)),
        ("of a simple group", fetch("simple-8", version, "offsets", 1, 0, 0)),
        ("of what is not there", fetch("asked", version, "absent", 0)),
        ("of partitions that are not there", fetch("asked", version, "offsets", 99, -1)),
        ("of no partition", fetch("asked", version, "offsets")),
        ("where nobody is", fetch(GONE, version, "offsets", 0)),
        ("of no group", fetch("", version, "offsets", 0)),
    ]
    if version >= 2:
        asked += [("of all", fetch_all("simple-3", version)), ("of all where nobody is", fetch_all(GONE, version))]
    if version >= 7:
        asked += [("that are stable", {**fetch("asked", version, "offsets", 0), "require_stable": True})]
    if version >= SEVERAL_GROUPS:
        several = [*fetch("asked", version, "offsets", 0)["groups"], *fetch_all(GONE, version)["groups"]]  # type: ignore[misc]
        asked += [
            ("of several", {"groups": several, "require_stable": True}),
            ("of one twice", {"groups": [several[0], several[0]]}),
            ("of groups without topics", {"groups": [{"group_id": "asked", "topics": []}]}),
        ]
    if version >= 9:
        asked += [
            (f"of a classic group, as {member!r} at {epoch}", _fetch_as("asked", member, epoch))
            for member, epoch in ((V("asked"), 1), ("stranger", 1), ("stranger", -1), (None, 5), ("", 0))
        ]
    return tuple(step(f"v{version}: fetch offsets {what}", OFFSET_FETCH, version, fields) for what, fields in asked)


def _fetch_as(group: str, member: object, epoch: int) -> dict[str, object]:
    return {"groups": [{"group_id": group, "member_id": member, "member_epoch": epoch, "topics": None}]}


WRONGLY: tuple[Step, ...] = (
    *(one for version in range(10) for one in _join_wrongly(version)),
    *(one for version in range(6) for one in _stay_wrongly(version)),
    *(one for version in range(6) for one in _leave_wrongly(version)),
)
COMMITS: tuple[Step, ...] = tuple(one for version in range(2, 11) for one in _commit_wrongly(version))
FETCHES: tuple[Step, ...] = tuple(one for version in range(1, 11) for one in _fetch_offsets(version))

STEPS: tuple[Step, ...] = (*LIVES, *OPENING, *WRONGLY, *COMMITS, *FETCHES, *CLOSING)
