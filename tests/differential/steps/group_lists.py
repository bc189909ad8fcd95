"""Groups as administrators see them: every filter of ListGroups, FindCoordinator and DeleteGroups in every version, and
OffsetDelete where something is wrong. `STEPS` has a group in each state that can be held still.
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
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tests.differential.script import Step, V, collect, send, step
from tests.differential.steps.groups import beat, join, rebalancing, sync
from tests.differential.steps.offsets import ask, commit, delete

WORDS = b"\0\0\0\0\0\1\0\7offsets\xff\xff\xff\xff"
READING = {"protocols": [{"name": "range", "metadata": WORDS}]}
"""A subscription to the topic whose offsets are deleted."""
ALL = ["st-simple", "st-empty", "st-preparing", "st-completing", "st-stable", "st-connect"]

EACH_STATE: tuple[Step, ...] = (
    step("offsets without a group", OFFSET_COMMIT, 8, commit("st-simple", (0, 1, None))),
    step("a group that empties", JOIN_GROUP, 3, join("st-empty"), save={"st-e": "member_id"}),
    step("it has", LEAVE_GROUP, 2, {"group_id": "st-empty", "member_id": V("st-e")}),
    step("a group that prepares", JOIN_GROUP, 3, join("st-preparing"), save={"st-p": "member_id"}),
    step("it does not yet", SYNC_GROUP, 3, sync("st-preparing", 1, V("st-p"), (V("st-p"), b"all"))),
    send("another joins it", JOIN_GROUP, 3, join("st-preparing"), connection="st-p2"),
    step("now it does", HEARTBEAT, 3, beat("st-preparing", 1, V("st-p")), until=rebalancing),
    step("a group that completes", JOIN_GROUP, 3, join("st-completing"), save={"st-c": "member_id"}),
    step("a stable group", JOIN_GROUP, 3, join("st-stable", **READING), save={"st-s": "member_id"}),
    step("it is one", SYNC_GROUP, 3, sync("st-stable", 1, V("st-s"), (V("st-s"), b"all"))),
    step(
        "a stable group of connectors",
        JOIN_GROUP,
        3,
        join("st-connect", protocol_type="connect"),
        save={"st-k": "member_id"},
    ),
    step("so is that", SYNC_GROUP, 3, sync("st-connect", 1, V("st-k"), (V("st-k"), b"all"))),
)

STATES = (
    ["Empty"],
    ["PreparingRebalance"],
    ["preparingrebalance", "COMPLETINGREBALANCE"],
    ["CompletingRebalance"],
    ["Stable"],
    ["Dead"],
    ["Assigning", "Reconciling", "NotReady"],
    ["Unknown"],
    [""],
    ["Stable", "Stable", "no such"],
)
TYPES = (
    ["classic"],
    ["CLASSIC", "consumer"],
    ["consumer"],
    ["share"],
    ["streams"],
    ["Classic", "no such"],
    ["unknown"],
    [""],
)

LISTING: tuple[Step, ...] = (
    *(step(f"v{version}: list all", LIST_GROUPS, version, {}) for version in range(6)),
    *(
        step(f"v{version}: list {states}", LIST_GROUPS, version, {"states_filter": states})
        for version in (4, 5)
        for states in STATES
    ),
    *(step(f"list types {types}", LIST_GROUPS, 5, {"types_filter": types}) for types in TYPES),
    step("list by both", LIST_GROUPS, 5, {"states_filter": ["Empty", "Stable"], "types_filter": ["classic"]}),
    *(
        step(f"v{version}: describe each state", DESCRIBE_GROUPS, version, {"groups": [*ALL, "st-stable", "st-x", ""]})
        for version in range(7)
    ),
    *(
        step(
            f"v{version}: describe with what may be done",
            DESCRIBE_GROUPS,
            version,
            {"groups": ["st-stable", "st-x"], "include_authorized_operations": True},
        )
        for version in range(3, 7)
    ),
    step("describe no groups", DESCRIBE_GROUPS, 6, {"groups": []}),
)

FINDING: tuple[Step, ...] = (
    *(step(f"v{version}: find one", FIND_COORDINATOR, version, {"key": "st"}) for version in range(4)),
    *(step(f"v{version}: find one without a name", FIND_COORDINATOR, version, {"key": ""}) for version in range(4)),
    *(
        step(f"v{version}: find a kind nobody knows", FIND_COORDINATOR, version, {"key": "st", "key_type": kind})
        for version, kind in ((1, 3), (2, -1), (3, 127))
    ),
    *(
        step(f"v{version}: find a share group's, too early", FIND_COORDINATOR, version, {"key": "st", "key_type": 2})
        for version in (1, 3)
    ),
    *(
        step(
            f"v{version}: find {keys} of kind {kind}",
            FIND_COORDINATOR,
            version,
            {"coordinator_keys": keys, "key_type": kind},
        )
        for version in (4, 5, 6)
        for kind, keys in ((0, ["st", "", "st", "other"]), (0, []), (3, ["st"]), (3, []), (-1, ["a", "b"]))
    ),
)

DELETING: tuple[Step, ...] = (
    step("delete offsets of a simple group", OFFSET_DELETE, 0, delete("st-simple", 1, 0, 0)),
    step("delete offsets of an empty group", OFFSET_DELETE, 0, delete("st-empty", 0)),
    step("delete offsets of a group that prepares", OFFSET_DELETE, 0, delete("st-preparing", 0)),
    step("delete offsets of one that completes", OFFSET_DELETE, 0, delete("st-completing", 0)),
    step("delete offsets of what is read", OFFSET_DELETE, 0, delete("st-stable", 0, 1, 99)),
    step("delete offsets of what is not read", OFFSET_DELETE, 0, delete("st-stable", 0, topic="plain")),
    step("delete offsets of what is not there", OFFSET_DELETE, 0, delete("st-stable", 0, topic="absent")),
    step("delete offsets of connectors", OFFSET_DELETE, 0, delete("st-connect", 0)),
    step("delete no offsets of connectors", OFFSET_DELETE, 0, {"group_id": "st-connect", "topics": []}),
    step("delete no offsets of nobody", OFFSET_DELETE, 0, {"group_id": "st-x", "topics": []}),
    step("delete absent offsets of nobody", OFFSET_DELETE, 0, delete("st-x", 7, topic="absent")),
    step("delete offsets of no partition", OFFSET_DELETE, 0, delete("st-stable")),
    *(
        step(f"v{version}: delete what has members", DELETE_GROUPS, version, {"groups_names": [*ALL[2:], "st-x", ""]})
        for version in range(3)
    ),
    step("the other gets in", JOIN_GROUP, 3, join("st-preparing", V("st-p"))),
    collect("and is in", JOIN_GROUP, 3, connection="st-p2", save={"st-p2": "member_id"}),
    *(
        step(
            f"{group}: they leave",
            LEAVE_GROUP,
            4,
            {"group_id": group, "members": [{"member_id": V(m)} for m in members]},
        )
        for group, members in (
            ("st-preparing", ("st-p", "st-p2")),
            ("st-completing", ("st-c",)),
            ("st-stable", ("st-s",)),
            ("st-connect", ("st-k",)),
        )
    ),
    step("commit before the end", OFFSET_COMMIT, 8, commit("st-stable", (0, 3, None))),
    step("delete them all, some twice", DELETE_GROUPS, 1, {"groups_names": [*ALL, "st-stable", "st-x"]}),
    step("delete them again", DELETE_GROUPS, 2, {"groups_names": ALL}),
    step("their offsets went with them", OFFSET_FETCH, 7, ask("st-stable", 0, 1)),
    step("nothing of them is described", DESCRIBE_GROUPS, 5, {"groups": ALL}),
)

STEPS: tuple[Step, ...] = (*EACH_STATE, *LISTING, *FINDING, *DELETING)
