"""Consumer groups: found, joined, kept, left, described and deleted, by one member, by two, by those who are none."""

from moldau.protocol.apis import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    SYNC_GROUP,
)
from tests.differential.script import Step, Tree, V, collect, send, step

WORDS = b"\0\0\0\0\0\1\0\6events\xff\xff\xff\xff"


def join(group: str, member: object = "", session_ms: int = 10_000, **more: object) -> dict[str, object]:
    return {
        "group_id": group,
        "session_timeout_ms": session_ms,
        "rebalance_timeout_ms": 10_000,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": WORDS}],
        **more,
    }


def sync(
    group: str, generation: int, member: object, *parts: tuple[object, bytes], **more: object
) -> dict[str, object]:
    assignments = [{"member_id": who, "assignment": part} for who, part in parts]
    return {"group_id": group, "generation_id": generation, "member_id": member, "assignments": assignments, **more}


def beat(group: str, generation: int, member: object, **more: object) -> dict[str, object]:
    return {"group_id": group, "generation_id": generation, "member_id": member, **more}


def in_state(*states: str) -> object:
    return lambda reply: all(group["group_state"] in states for group in reply["groups"])


def rebalancing(reply: Tree) -> bool:
    return bool(reply["error_code"] == 27)


FINDING: tuple[Step, ...] = (
    step("find a coordinator in the oldest way", FIND_COORDINATOR, 0, {"key": "g"}),
    step("find a coordinator", FIND_COORDINATOR, 3, {"key": "g", "key_type": 0}),
    step("find coordinators", FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["g", "h"]}),
    step("find coordinators, newest", FIND_COORDINATOR, 6, {"key_type": 0, "coordinator_keys": ["g"]}),
    step("find a coordinator of nothing", FIND_COORDINATOR, 6, {"key_type": 0, "coordinator_keys": []}),
    step("find a coordinator for an empty name", FIND_COORDINATOR, 2, {"key": "", "key_type": 0}),
    step("find a coordinator of a share group", FIND_COORDINATOR, 6, {"key_type": 2, "coordinator_keys": ["s:x:0"]}),
    step("find a coordinator of a kind nobody knows", FIND_COORDINATOR, 3, {"key": "g", "key_type": 9}),
    step("find coordinators of a kind nobody knows", FIND_COORDINATOR, 5, {"key_type": 9, "coordinator_keys": ["g"]}),
)

ALONE: tuple[Step, ...] = (
    step("join in the oldest way", JOIN_GROUP, 0, join("g0"), save={"m0": "member_id"}),
    step("sync in the oldest way", SYNC_GROUP, 0, sync("g0", 1, V("m0"), (V("m0"), b"all"))),
    step("heartbeat in the oldest way", HEARTBEAT, 0, beat("g0", 1, V("m0"))),
    step("describe in the oldest way", DESCRIBE_GROUPS, 0, {"groups": ["g0"]}),
    step("list in the oldest way", LIST_GROUPS, 0),
    step("leave in the oldest way", LEAVE_GROUP, 0, {"group_id": "g0", "member_id": V("m0")}),
    step("leave again", LEAVE_GROUP, 1, {"group_id": "g0", "member_id": V("m0")}),
    step("join without an id, which one is given", JOIN_GROUP, 5, join("g5"), save={"m5": "member_id"}),
    step("join with it", JOIN_GROUP, 5, join("g5", V("m5"))),
    step("join once more", JOIN_GROUP, 5, join("g5", V("m5"))),
    step("sync in a middle version", SYNC_GROUP, 3, sync("g5", 2, V("m5"), (V("m5"), b"all"))),
    step("sync once more", SYNC_GROUP, 3, sync("g5", 2, V("m5"))),
    step("heartbeat in a middle version", HEARTBEAT, 2, beat("g5", 2, V("m5"))),
    step(
        "describe in a middle version",
        DESCRIBE_GROUPS,
        4,
        {"groups": ["g5", "g0"], "include_authorized_operations": True},
    ),
    step("list in a middle version", LIST_GROUPS, 3),
    step("leave in a middle version", LEAVE_GROUP, 3, {"group_id": "g5", "members": [{"member_id": V("m5")}]}),
    step("join without an id, newest", JOIN_GROUP, 9, join("g9", reason="new here"), save={"m9": "member_id"}),
    step("join with it, newest", JOIN_GROUP, 9, join("g9", V("m9"), reason="with an id")),
    step(
        "sync, newest",
        SYNC_GROUP,
        5,
        sync("g9", 1, V("m9"), (V("m9"), b"all"), protocol_type="consumer", protocol_name="range"),
    ),
    step("heartbeat, newest", HEARTBEAT, 4, beat("g9", 1, V("m9"))),
    step(
        "describe, newest", DESCRIBE_GROUPS, 6, {"groups": ["g9", "nobody", ""], "include_authorized_operations": True}
    ),
    step("list, newest", LIST_GROUPS, 5),
    step("list those that are stable", LIST_GROUPS, 4, {"states_filter": ["Stable"]}),
    step("list by state, in small letters", LIST_GROUPS, 4, {"states_filter": ["empty", "STABLE"]}),
    step("list those in a state nobody knows", LIST_GROUPS, 4, {"states_filter": ["Happy"]}),
    step("list those of one type", LIST_GROUPS, 5, {"types_filter": ["classic"]}),
    step("list those of a type nobody knows", LIST_GROUPS, 5, {"types_filter": ["odd"], "states_filter": ["Stable"]}),
)

WRONG: tuple[Step, ...] = (
    step("join a group without a name", JOIN_GROUP, 5, join("")),
    step("join with a session too short", JOIN_GROUP, 5, join("bad", session_ms=5)),
    step("join with a session too long", JOIN_GROUP, 2, join("bad", session_ms=10**8)),
    step("join as somebody else", JOIN_GROUP, 5, join("g9", "stranger")),
    step("join a group that is not there as somebody", JOIN_GROUP, 5, join("bad", "stranger")),
    step("join with another kind of protocol", JOIN_GROUP, 1, join("g9", protocol_type="connect")),
    step("join with no protocol", JOIN_GROUP, 1, join("bad", protocols=[])),
    step("join with no kind of protocol", JOIN_GROUP, 1, join("bad", protocol_type="")),
    step(
        "join with protocols of one's own",
        JOIN_GROUP,
        1,
        join("g9", protocols=[{"name": "mine", "metadata": b""}]),
    ),
    step("heartbeat of another generation", HEARTBEAT, 3, beat("g9", 7, V("m9"))),
    step("heartbeat of nobody", HEARTBEAT, 3, beat("g9", 1, "stranger")),
    step("heartbeat to a group that is not there", HEARTBEAT, 3, beat("bad", 1, "stranger")),
    step("heartbeat to no group", HEARTBEAT, 4, beat("", 1, "stranger")),
    step("sync of another generation", SYNC_GROUP, 4, sync("g9", 7, V("m9"))),
    step("sync of nobody", SYNC_GROUP, 4, sync("g9", 1, "stranger")),
    step("sync with a group that is not there", SYNC_GROUP, 4, sync("bad", 1, "stranger")),
    step("sync with no group", SYNC_GROUP, 1, sync("", 1, "stranger")),
    step("sync with another protocol", SYNC_GROUP, 5, sync("g9", 1, V("m9"), protocol_type="x", protocol_name="range")),
    step("sync without naming the protocol", SYNC_GROUP, 5, sync("g9", 1, V("m9"))),
    step("leave as nobody", LEAVE_GROUP, 2, {"group_id": "g9", "member_id": "stranger"}),
    step("leave a group that is not there", LEAVE_GROUP, 4, {"group_id": "bad", "members": [{"member_id": "x"}]}),
    step("leave no group", LEAVE_GROUP, 1, {"group_id": "", "member_id": "x"}),
    step("leave by nobody", LEAVE_GROUP, 5, {"group_id": "g9", "members": []}),
    step("delete a group with members", DELETE_GROUPS, 1, {"groups_names": ["g9", "bad", ""]}),
    step(
        "leave, one right and one wrong",
        LEAVE_GROUP,
        5,
        {"group_id": "g9", "members": [{"member_id": "stranger"}, {"member_id": V("m9"), "reason": "done"}]},
    ),
    step("describe the group that is left", DESCRIBE_GROUPS, 5, {"groups": ["g9"]}),
)

TOGETHER: tuple[Step, ...] = (
    step("the first of two asks for an id", JOIN_GROUP, 4, join("duo"), client_id="first", save={"one": "member_id"}),
    step("the first joins", JOIN_GROUP, 7, join("duo", V("one")), client_id="first"),
    step(
        "the first assigns itself everything",
        SYNC_GROUP,
        5,
        sync("duo", 1, V("one"), (V("one"), b"all"), protocol_type="consumer", protocol_name="range"),
    ),
    step("the second asks for an id", JOIN_GROUP, 7, join("duo"), client_id="second", save={"two": "member_id"}),
    send("the second joins, and waits", JOIN_GROUP, 7, join("duo", V("two")), client_id="second", connection="second"),
    step("the first hears of it", HEARTBEAT, 4, beat("duo", 1, V("one")), until=rebalancing),
    step("the group prepares", DESCRIBE_GROUPS, 5, {"groups": ["duo"]}),
    step("nobody may sync meanwhile", SYNC_GROUP, 3, sync("duo", 1, V("one"))),
    step("the first joins again", JOIN_GROUP, 7, join("duo", V("one")), client_id="first"),
    collect("the second has joined", JOIN_GROUP, 7, connection="second"),
    step("the group completes", DESCRIBE_GROUPS, 5, {"groups": ["duo"]}),
    send("the second waits for its part", SYNC_GROUP, 3, sync("duo", 2, V("two")), connection="second"),
    step(
        "the first gives both their parts", SYNC_GROUP, 3, sync("duo", 2, V("one"), (V("one"), b"a"), (V("two"), b"b"))
    ),
    collect("the second gets its part", SYNC_GROUP, 3, connection="second"),
    step("the group is stable", DESCRIBE_GROUPS, 5, {"groups": ["duo"]}),
    step("both are alive", HEARTBEAT, 4, beat("duo", 2, V("two"))),
    step("the second leaves", LEAVE_GROUP, 4, {"group_id": "duo", "members": [{"member_id": V("two")}]}),
    step("the first hears that the second left", HEARTBEAT, 4, beat("duo", 2, V("one")), until=rebalancing),
    step("the first is alone again", JOIN_GROUP, 7, join("duo", V("one"))),
    step("the first leaves", LEAVE_GROUP, 4, {"group_id": "duo", "members": [{"member_id": V("one")}]}),
    step("a group of three may not have four: the first", JOIN_GROUP, 1, join("full"), save={"f1": "member_id"}),
    send("the second of three", JOIN_GROUP, 1, join("full"), connection="f2"),
    send("the third of three", JOIN_GROUP, 1, join("full"), connection="f3"),
    step(
        "all three are there",
        DESCRIBE_GROUPS,
        5,
        {"groups": ["full"]},
        until=lambda reply: len(reply["groups"][0]["members"]) == 3,
    ),
    step("the first joins again, and all are", JOIN_GROUP, 1, join("full", V("f1"))),
    collect("the second too", JOIN_GROUP, 1, connection="f2", save={"f2": "member_id"}),
    collect("the third too", JOIN_GROUP, 1, connection="f3", save={"f3": "member_id"}),
    step("the fourth is refused", JOIN_GROUP, 1, join("full")),
    step("the fourth is refused an id, too", JOIN_GROUP, 4, join("full")),
    step(
        "the three leave",
        LEAVE_GROUP,
        4,
        {"group_id": "full", "members": [{"member_id": V(member)} for member in ("f1", "f2", "f3")]},
    ),
)


def static(group: str, member: object, instance: str, **more: object) -> dict[str, object]:
    return join(group, member, group_instance_id=instance, **more)


STATIC: tuple[Step, ...] = (
    step("join with a name of one's own", JOIN_GROUP, 5, static("fixed", "", "i1"), save={"s1": "member_id"}),
    step(
        "sync with a name of one's own",
        SYNC_GROUP,
        3,
        sync("fixed", 1, V("s1"), (V("s1"), b"all"), group_instance_id="i1"),
    ),
    step("heartbeat with a name of one's own", HEARTBEAT, 3, beat("fixed", 1, V("s1"), group_instance_id="i1")),
    step("heartbeat with another's name", HEARTBEAT, 3, beat("fixed", 1, V("s1"), group_instance_id="i2")),
    step("come back under that name", JOIN_GROUP, 5, static("fixed", "", "i1"), save={"s2": "member_id"}),
    step("the one before is fenced", HEARTBEAT, 3, beat("fixed", 1, V("s1"), group_instance_id="i1")),
    step("the new one lives", HEARTBEAT, 3, beat("fixed", 1, V("s2"), group_instance_id="i1")),
    step("come back under that name, newest", JOIN_GROUP, 9, static("fixed", "", "i1"), save={"s3": "member_id"}),
    step("describe a member with a name", DESCRIBE_GROUPS, 4, {"groups": ["fixed"]}),
    step(
        "send away those with names, one of whom nobody knows",
        LEAVE_GROUP,
        3,
        {"group_id": "fixed", "members": [{"group_instance_id": "i1"}, {"group_instance_id": "i9"}]},
    ),
    step("nobody is left", DESCRIBE_GROUPS, 5, {"groups": ["fixed"]}),
)

ENDING: tuple[Step, ...] = (
    step("join and never be heard of again", JOIN_GROUP, 2, join("ghost", session_ms=6000)),
    step("the silent one is put out", DESCRIBE_GROUPS, 5, {"groups": ["ghost"]}, until=in_state("Empty", "Dead")),
    step("delete groups in the oldest way", DELETE_GROUPS, 0, {"groups_names": ["g0", "nobody"]}),
    step("delete groups", DELETE_GROUPS, 2, {"groups_names": ["g5", "g5", ""]}),
    step("delete no group", DELETE_GROUPS, 2, {"groups_names": []}),
    step("they are gone", DESCRIBE_GROUPS, 6, {"groups": ["g0", "g5"]}),
)

STEPS: tuple[Step, ...] = (*FINDING, *ALONE, *WRONG, *TOGETHER, *STATIC)
LAST_STEPS: tuple[Step, ...] = ENDING
