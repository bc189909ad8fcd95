"""Several members of a classic group at once: votes, rebalances and what is asked while one runs, leaders that go,
members that fall silent. Members wait on connections of their own; `pair` makes the stable group of two that most begin
with, in generation 2, led by the first.
"""

from moldau.protocol.apis import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tests.differential.script import Step, Tree, V, collect, send, step
from tests.differential.steps.groups import beat, in_state, join, rebalancing, sync
from tests.differential.steps.offsets import ask, commit, delete

ALMOST = b"\0\0\0\0\0\1\0\5other\xff\xff\xff\xff"
"""A subscription to another topic."""


def offers(*names: str, words: bytes = ALMOST) -> dict[str, object]:
    return {"protocols": [{"name": name, "metadata": words} for name in names]}


def count(members: int) -> object:
    return lambda reply: len(reply["groups"][0]["members"]) == members


def stable(reply: Tree) -> bool:
    return bool(reply["groups"][0]["group_state"] == "Stable")


def a(group: str) -> V:
    return V(f"{group}-a")


def b(group: str) -> V:
    return V(f"{group}-b")


def two(group: str, first: dict[str, object], second: dict[str, object], version: int = 3) -> tuple[Step, ...]:
    """Two join: generation 2 waits for its assignment."""
    return (
        step(f"{group}: a joins", JOIN_GROUP, version, first, client_id="a", save={f"{group}-a": "member_id"}),
        step(f"{group}: a is alone", SYNC_GROUP, 3, sync(group, 1, a(group), (a(group), b"all"))),
        send(f"{group}: b joins", JOIN_GROUP, version, second, client_id="b", connection=f"{group}-b"),
        step(f"{group}: a hears of b", HEARTBEAT, 3, beat(group, 1, a(group)), until=rebalancing),
        step(f"{group}: a joins again", JOIN_GROUP, version, {**first, "member_id": a(group)}, client_id="a"),
        collect(
            f"{group}: b has joined", JOIN_GROUP, version, connection=f"{group}-b", save={f"{group}-b": "member_id"}
        ),
    )


def settle(group: str, generation: int, *members: V) -> tuple[Step, ...]:
    """All sync, the first as the leader."""
    parts = [(member, member.name.encode()) for member in members]
    return tuple(
        step(
            f"{group}: {member.name} gets its part of {generation}",
            SYNC_GROUP,
            3,
            sync(group, generation, member, *(parts if member is members[0] else [])),
        )
        for member in members
    )


def pair(group: str, **more: object) -> tuple[Step, ...]:
    members = two(group, join(group, **more), join(group, **more))
    return (*members, *settle(group, 2, a(group), b(group)))


def leave(group: str, *members: object) -> dict[str, object]:
    return {"group_id": group, "members": [{"member_id": member} for member in members]}


def everybody_leaves(group: str, *members: object) -> tuple[Step, ...]:
    return (step(f"{group}: all leave", LEAVE_GROUP, 4, leave(group, *members)),)


def _by(member: object, generation: int) -> dict[str, object]:
    return {"member_id": member, "generation_id_or_member_epoch": generation}


VOTES: tuple[Step, ...] = (
    *two("vote", join("vote", **offers("x", "y", "range")), join("vote", **offers("y", "z", "range"))),
    *everybody_leaves("vote", a("vote"), b("vote")),
    *two("vote1", join("vote1", **offers("x", "range")), join("vote1", **offers("range", "q"))),
    step("only one protocol is spoken by both", JOIN_GROUP, 3, join("vote1", **offers("x", "q"))),
    step("b would leave the common one", JOIN_GROUP, 3, join("vote1", b("vote1"), **offers("q"))),
    step("what was elected is described", DESCRIBE_GROUPS, 5, {"groups": ["vote1"]}),
    *settle("vote1", 2, a("vote1"), b("vote1")),
    step("what was elected is described when stable", DESCRIBE_GROUPS, 5, {"groups": ["vote1"]}),
    *everybody_leaves("vote1", a("vote1"), b("vote1")),
    step(
        "a connector",
        JOIN_GROUP,
        6,
        join("plugs", protocol_type="connect", **offers("sessioned", "compatible")),
        save={"plug": "member_id"},
    ),
    step(
        "a connector with its id",
        JOIN_GROUP,
        7,
        join("plugs", V("plug"), protocol_type="connect", **offers("sessioned", "compatible")),
    ),
    step("a consumer among connectors", JOIN_GROUP, 7, join("plugs", **offers("sessioned"))),
    step(
        "a connector syncs as a consumer",
        SYNC_GROUP,
        5,
        sync("plugs", 1, V("plug"), protocol_type="consumer", protocol_name="sessioned"),
    ),
    step(
        "a connector syncs",
        SYNC_GROUP,
        5,
        sync("plugs", 1, V("plug"), (V("plug"), b"tasks"), protocol_type="connect", protocol_name="sessioned"),
    ),
    step("connectors are described", DESCRIBE_GROUPS, 6, {"groups": ["plugs"]}),
    step("connectors are listed", LIST_GROUPS, 5, {"types_filter": ["classic"], "states_filter": ["stable"]}),
    step("a connector commits", OFFSET_COMMIT, 8, commit("plugs", (0, 3, None), **_by(V("plug"), 1))),
    step("offsets of connectors are not deleted", OFFSET_DELETE, 0, delete("plugs", 0)),
    step("the connector leaves", LEAVE_GROUP, 4, leave("plugs", V("plug"))),
    step("now its offsets may be deleted", OFFSET_DELETE, 0, delete("plugs", 0)),
    step("consumers may come where connectors were", JOIN_GROUP, 3, join("plugs"), save={"plug2": "member_id"}),
    step("the group's kind has changed", DESCRIBE_GROUPS, 5, {"groups": ["plugs"]}),
    step("plugs: all leave", LEAVE_GROUP, 4, leave("plugs", V("plug2"))),
)

REJOINING: tuple[Step, ...] = (
    *two("again", join("again"), join("again")),
    step("b joins again before the sync", JOIN_GROUP, 3, join("again", b("again"))),
    step("a joins again before the sync", JOIN_GROUP, 3, join("again", a("again"))),
    step("both are in one generation", DESCRIBE_GROUPS, 5, {"groups": ["again"]}),
    *settle("again", 2, a("again"), b("again")),
    step("b joins again, nothing new", JOIN_GROUP, 5, join("again", b("again"))),
    step("nobody hears of it", HEARTBEAT, 3, beat("again", 2, a("again"))),
    step("b gets its part again", SYNC_GROUP, 3, sync("again", 2, b("again"))),
    step("b assigns, which it may not", SYNC_GROUP, 3, sync("again", 2, b("again"), (b("again"), b"everything"))),
    step("a gets its own part again", SYNC_GROUP, 3, sync("again", 2, a("again"), (a("again"), b"everything"))),
    send(
        "b joins with another subscription",
        JOIN_GROUP,
        3,
        join("again", b("again"), **offers("range")),
        connection="again-b",
    ),
    step("a hears that b has changed", HEARTBEAT, 3, beat("again", 2, a("again")), until=rebalancing),
    step("a may still commit", OFFSET_COMMIT, 8, commit("again", (0, 7, None), **_by(a("again"), 2))),
    step("in its generation only", OFFSET_COMMIT, 8, commit("again", (0, 7, None), **_by(a("again"), 3))),
    step("b may commit, too", OFFSET_COMMIT, 9, commit("again", (1, 7, None), **_by(b("again"), 2))),
    step("nobody may from outside", OFFSET_COMMIT, 9, commit("again", (1, 8, None))),
    step("offsets may be fetched meanwhile", OFFSET_FETCH, 7, ask("again", 0, 1)),
    step("offsets in use are not deleted meanwhile", OFFSET_DELETE, 0, delete("again", 0)),
    step("b may send heartbeats", HEARTBEAT, 3, beat("again", 2, b("again"))),
    step("described while it prepares, old", DESCRIBE_GROUPS, 0, {"groups": ["again"]}),
    step("described while it prepares", DESCRIBE_GROUPS, 6, {"groups": ["again"]}),
    step("listed while it prepares", LIST_GROUPS, 4, {"states_filter": ["PreparingRebalance"]}),
    step("not deleted while it prepares", DELETE_GROUPS, 2, {"groups_names": ["again"]}),
    step("sync in another generation while it prepares", SYNC_GROUP, 3, sync("again", 3, a("again"))),
    step("sync of a stranger while it prepares", SYNC_GROUP, 3, sync("again", 2, "stranger")),
    send("b joins twice", JOIN_GROUP, 3, join("again", b("again"), **offers("range")), connection="again-c"),
    collect("b is told that it joined twice", JOIN_GROUP, 3, connection="again-b", wait_s=0.5),
    step("a joins again, too", JOIN_GROUP, 3, join("again", a("again"))),
    collect("b has joined the second time", JOIN_GROUP, 3, connection="again-c"),
    step("listed while it completes", LIST_GROUPS, 4, {"states_filter": ["CompletingRebalance", "Dead"]}),
    step("heartbeat while it completes", HEARTBEAT, 3, beat("again", 3, b("again"))),
    step("no commit while it completes", OFFSET_COMMIT, 8, commit("again", (0, 9, None), **_by(b("again"), 3))),
    step("none by a stranger, either", OFFSET_COMMIT, 8, commit("again", (0, 9, None), **_by("stranger", 3))),
    step("not deleted while it completes", DELETE_GROUPS, 2, {"groups_names": ["again"]}),
    step("offsets of another topic are deleted meanwhile", OFFSET_DELETE, 0, delete("again", 0)),
    send("b waits for its part", SYNC_GROUP, 3, sync("again", 3, b("again")), connection="again-d"),
    send(
        "a joins with another subscription",
        JOIN_GROUP,
        3,
        join("again", a("again"), **offers("range")),
        connection="again-a",
    ),
    collect("b need not wait any longer", SYNC_GROUP, 3, connection="again-d"),
    step("b joins as it was", JOIN_GROUP, 3, join("again", b("again"), **offers("range"))),
    collect("a leads again", JOIN_GROUP, 3, connection="again-a"),
    send("b waits again", SYNC_GROUP, 3, sync("again", 4, b("again")), connection="again-d"),
    send("b waits twice", SYNC_GROUP, 3, sync("again", 4, b("again")), connection="again-c"),
    collect("b is told that it waits twice", SYNC_GROUP, 3, connection="again-d", wait_s=0.5),
    step(
        "a forgets b, and names a stranger",
        SYNC_GROUP,
        3,
        sync("again", 4, a("again"), (a("again"), b"A"), ("x", b"X")),
    ),
    collect("b gets nothing", SYNC_GROUP, 3, connection="again-c"),
    step("that is described", DESCRIBE_GROUPS, 5, {"groups": ["again"]}),
    send("the leader joins again", JOIN_GROUP, 3, join("again", a("again"), **offers("range")), connection="again-a"),
    step("so b must, too", HEARTBEAT, 3, beat("again", 4, b("again")), until=rebalancing),
    step("b leaves instead", LEAVE_GROUP, 2, {"group_id": "again", "member_id": b("again")}),
    collect("the leader is alone", JOIN_GROUP, 3, connection="again-a"),
    *everybody_leaves("again", a("again")),
    step("the generation that all left", DESCRIBE_GROUPS, 5, {"groups": ["again"]}),
    step("who comes then gets the next", JOIN_GROUP, 3, join("again"), save={"again-d": "member_id"}),
    step("again: d leaves", LEAVE_GROUP, 4, leave("again", V("again-d"))),
)

LEADERS: tuple[Step, ...] = (
    *pair("head"),
    step("the leader leaves", LEAVE_GROUP, 4, leave("head", a("head"))),
    step("the follower hears that the leader left", HEARTBEAT, 3, beat("head", 2, b("head")), until=rebalancing),
    step("the follower leads", JOIN_GROUP, 3, join("head", b("head"))),
    *settle("head", 3, b("head")),
    *everybody_leaves("head", b("head")),
    *pair("head1"),
    send(
        "b joins, with something new", JOIN_GROUP, 3, join("head1", b("head1"), **offers("range")), connection="head1-b"
    ),
    step("a hears that there is something new", HEARTBEAT, 3, beat("head1", 2, a("head1")), until=rebalancing),
    step("the leader leaves while others join", LEAVE_GROUP, 4, leave("head1", a("head1"))),
    collect("who joined leads", JOIN_GROUP, 3, connection="head1-b"),
    *everybody_leaves("head1", b("head1")),
    *two("head2", join("head2"), join("head2")),
    send("b waits for who leaves", SYNC_GROUP, 3, sync("head2", 2, b("head2")), connection="head2-b"),
    step("nothing is described of who waits", DESCRIBE_GROUPS, 5, {"groups": ["head2"]}),
    step("the leader leaves before it assigns", LEAVE_GROUP, 4, leave("head2", a("head2"))),
    collect("who waits must join again", SYNC_GROUP, 3, connection="head2-b"),
    step("and leads", JOIN_GROUP, 3, join("head2", b("head2"))),
    *everybody_leaves("head2", b("head2")),
    *pair("batch"),
    step(
        "both leave at once, and one does twice",
        LEAVE_GROUP,
        5,
        leave("batch", b("batch"), a("batch"), b("batch"), "x"),
    ),
    step("nobody is left at once", DESCRIBE_GROUPS, 5, {"groups": ["batch"]}),
    *pair("gone"),
    send("a joins and waits for b", JOIN_GROUP, 3, join("gone", a("gone")), connection="gone-a"),
    step("b hears that a joins", HEARTBEAT, 3, beat("gone", 2, b("gone")), until=rebalancing),
    step("a leaves while it waits", LEAVE_GROUP, 4, leave("gone", a("gone"))),
    collect("a is told so", JOIN_GROUP, 3, connection="gone-a"),
    *everybody_leaves("gone", b("gone")),
    step("gone is empty", DESCRIBE_GROUPS, 5, {"groups": ["gone"]}),
    step("who left commits in its generation", OFFSET_COMMIT, 8, commit("gone", (0, 1, None), **_by(a("gone"), 2))),
    step("who left commits in the empty one", OFFSET_COMMIT, 8, commit("gone", (0, 1, None), **_by(a("gone"), 3))),
    step("who left commits without one", OFFSET_COMMIT, 8, commit("gone", (0, 1, None), **_by(a("gone"), -1))),
    step("nobody commits in the empty one", OFFSET_COMMIT, 8, commit("gone", (0, 1, None), **_by("", 3))),
    step("nobody commits without one", OFFSET_COMMIT, 8, commit("gone", (0, 1, None))),
)

EXPECTED: tuple[Step, ...] = (
    *pair("wait"),
    step("c is given an id", JOIN_GROUP, 5, join("wait"), client_id="c", save={"wait-c": "member_id"}),
    step("c is no member yet", HEARTBEAT, 3, beat("wait", 2, V("wait-c"))),
    step("c cannot sync yet", SYNC_GROUP, 3, sync("wait", 2, V("wait-c"))),
    step("c cannot commit yet", OFFSET_COMMIT, 8, commit("wait", (0, 1, None), **_by(V("wait-c"), 2))),
    step("c is not described yet", DESCRIBE_GROUPS, 5, {"groups": ["wait"]}),
    step("a and b go on", HEARTBEAT, 3, beat("wait", 2, a("wait"))),
    step("c gives its id up", LEAVE_GROUP, 4, leave("wait", V("wait-c"))),
    step("c's id is worth nothing", JOIN_GROUP, 5, join("wait", V("wait-c"))),
    step("d is given an id", JOIN_GROUP, 5, join("wait"), client_id="d", save={"wait-d": "member_id"}),
    step("d comes with a name of its own", JOIN_GROUP, 5, join("wait", V("wait-d"), group_instance_id="dee")),
    step("d comes speaking otherwise", JOIN_GROUP, 5, join("wait", V("wait-d"), **offers("odd"))),
    send("d joins in an old version", JOIN_GROUP, 3, join("wait", V("wait-d")), client_id="d", connection="wait-d"),
    step("a hears of d", HEARTBEAT, 3, beat("wait", 2, a("wait")), until=rebalancing),
    send("a joins d", JOIN_GROUP, 3, join("wait", a("wait")), connection="wait-a"),
    step("b joins d and a", JOIN_GROUP, 3, join("wait", b("wait"))),
    collect("d is in", JOIN_GROUP, 3, connection="wait-d"),
    collect("a is in, too", JOIN_GROUP, 3, connection="wait-a"),
    step("a fourth is given no id", JOIN_GROUP, 5, join("wait")),
    step("a fourth with a name is not let in", JOIN_GROUP, 5, join("wait", group_instance_id="four")),
    step("a fourth in an old version", JOIN_GROUP, 0, join("wait")),
    *everybody_leaves("wait", a("wait"), b("wait"), V("wait-d")),
    step("e is given the id of an empty group", JOIN_GROUP, 4, join("wait"), save={"wait-e": "member_id"}),
    step("a group that expects somebody is empty", DESCRIBE_GROUPS, 5, {"groups": ["wait"]}),
    step("and may be deleted", DELETE_GROUPS, 2, {"groups_names": ["wait"]}),
    step("e comes too late", JOIN_GROUP, 4, join("wait", V("wait-e"))),
)

SHORT = {"rebalance_timeout_ms": 2500}
"""Waited for where a member takes too long; what is to be in time has as long on a machine that stands still."""

SILENT: tuple[Step, ...] = (
    *pair("slow", **SHORT),
    send(
        "b joins and a does not",
        JOIN_GROUP,
        3,
        join("slow", b("slow"), **SHORT, **offers("range")),
        connection="slow-b",
    ),
    collect("b leads when a's time is over", JOIN_GROUP, 3, connection="slow-b"),
    step("a, who took too long, is a stranger", HEARTBEAT, 3, beat("slow", 2, a("slow"))),
    step("a joins as a stranger", JOIN_GROUP, 3, join("slow", a("slow"), **SHORT)),
    step("b is there alone", DESCRIBE_GROUPS, 5, {"groups": ["slow"]}),
    *everybody_leaves("slow", b("slow")),
    *two("mute", join("mute", **SHORT), join("mute", **SHORT)),
    step(
        "the leader assigns, b never asks",
        SYNC_GROUP,
        3,
        sync("mute", 2, a("mute"), (a("mute"), b"A"), (b("mute"), b"B")),
    ),
    step("b is put out for it", DESCRIBE_GROUPS, 5, {"groups": ["mute"]}, until=count(1)),
    step("a is told", HEARTBEAT, 3, beat("mute", 2, a("mute")), until=rebalancing),
    step("b is a stranger", SYNC_GROUP, 3, sync("mute", 2, b("mute"))),
    *everybody_leaves("mute", a("mute")),
    *two("dumb", join("dumb", **SHORT), join("dumb", **SHORT)),
    send("b waits for a leader that does not assign", SYNC_GROUP, 3, sync("dumb", 2, b("dumb")), connection="dumb-b"),
    collect("b waits no longer than it must", SYNC_GROUP, 3, connection="dumb-b"),
    step("the leader was put out for it", DESCRIBE_GROUPS, 5, {"groups": ["dumb"]}, until=count(1)),
    step("b leads instead", JOIN_GROUP, 3, join("dumb", b("dumb"), **SHORT)),
    *everybody_leaves("dumb", b("dumb")),
    step("a member that syncs never", JOIN_GROUP, 3, join("none", **SHORT), save={"none-a": "member_id"}),
    step("leaves an empty group", DESCRIBE_GROUPS, 5, {"groups": ["none"]}, until=in_state("Empty")),
    *pair("hush", session_ms=6000),
    step(
        "b sends no heartbeats",
        HEARTBEAT,
        3,
        beat("hush", 2, a("hush")),
        until=rebalancing,
    ),
    step("b is out of the group", DESCRIBE_GROUPS, 5, {"groups": ["hush"]}),
    step("b has lost its id", JOIN_GROUP, 3, join("hush", b("hush"), session_ms=6000)),
    step("a is alone again", JOIN_GROUP, 3, join("hush", a("hush"), session_ms=6000)),
    *everybody_leaves("hush", a("hush")),
)

STEPS: tuple[Step, ...] = (*VOTES, *REJOINING, *LEADERS, *EXPECTED, *SILENT)
