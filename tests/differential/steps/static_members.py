"""Members with an instance id (KIP-345, KIP-814): they come back with and without their id, in every version and in
every state of their group, are replaced, fenced, sent away, and fall silent.
"""

from moldau.protocol.apis import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
)
from tests.differential.script import Step, V, collect, send, step
from tests.differential.steps.groups import beat, join, rebalancing, static, sync
from tests.differential.steps.offsets import commit
from tests.differential.steps.rebalances import SHORT, count, offers


def a(group: str) -> V:
    return V(f"{group}-a")


def b(group: str) -> V:
    return V(f"{group}-b")


def named(letter: str) -> dict[str, object]:
    return {"group_instance_id": letter}


def pair(group: str, version: int = 5, **more: object) -> tuple[Step, ...]:
    """A stable group of the static members A, who leads, and B, in generation 2."""
    first, second = static(group, "", "A", **more), static(group, "", "B", **more)
    return (
        step(f"{group}: A joins", JOIN_GROUP, version, first, save={f"{group}-a": "member_id"}),
        step(f"{group}: A is alone", SYNC_GROUP, 3, sync(group, 1, a(group), (a(group), b"all"), **named("A"))),
        send(f"{group}: B joins", JOIN_GROUP, version, second, connection=f"{group}-b"),
        step(f"{group}: A hears of B", HEARTBEAT, 3, beat(group, 1, a(group), **named("A")), until=rebalancing),
        step(f"{group}: A joins again", JOIN_GROUP, version, {**first, "member_id": a(group)}),
        collect(
            f"{group}: B has joined", JOIN_GROUP, version, connection=f"{group}-b", save={f"{group}-b": "member_id"}
        ),
        step(
            f"{group}: A assigns",
            SYNC_GROUP,
            3,
            sync(group, 2, a(group), (a(group), b"pA"), (b(group), b"pB"), **named("A")),
        ),
        step(f"{group}: B gets its part", SYNC_GROUP, 3, sync(group, 2, b(group), **named("B"))),
    )


def leave(group: str, *names: str) -> Step:
    members = [{"group_instance_id": name} for name in names]
    return step(f"{group}: all are sent away", LEAVE_GROUP, 5, {"group_id": group, "members": members})


def _back(version: int) -> tuple[Step, ...]:
    """Follower and leader come back to a stable group, in that version."""
    group = f"back-{version}"
    return (
        *pair(group, version),
        step(f"{group}: B is back", JOIN_GROUP, version, static(group, "", "B"), save={f"{group}-b2": "member_id"}),
        step(f"{group}: B has what it had", SYNC_GROUP, 3, sync(group, 2, V(f"{group}-b2"), **named("B"))),
        step(f"{group}: the old B is fenced", HEARTBEAT, 3, beat(group, 2, b(group), **named("B"))),
        step(f"{group}: the old B without its name", HEARTBEAT, 3, beat(group, 2, b(group))),
        step(f"{group}: the old B joins", JOIN_GROUP, version, static(group, b(group), "B")),
        step(f"{group}: the old B syncs", SYNC_GROUP, 5, _named_sync(group, b(group), "B")),
        step(f"{group}: the old B commits", OFFSET_COMMIT, 8, _commit(group, b(group), "B")),
        step(f"{group}: the old B leaves", LEAVE_GROUP, 5, _leaving(group, b(group), "B")),
        step(f"{group}: the new B commits", OFFSET_COMMIT, 8, _commit(group, V(f"{group}-b2"), "B")),
        step(f"{group}: the new B under another name", HEARTBEAT, 3, beat(group, 2, V(f"{group}-b2"), **named("A"))),
        step(f"{group}: A has heard nothing", HEARTBEAT, 3, beat(group, 2, a(group), **named("A"))),
        step(f"{group}: A is back", JOIN_GROUP, version, static(group, "", "A"), save={f"{group}-a2": "member_id"}),
        step(f"{group}: A assigns nothing", SYNC_GROUP, 5, _named_sync(group, V(f"{group}-a2"), "A")),
        step(f"{group}: described", DESCRIBE_GROUPS, 5, {"groups": [group]}),
        step(f"{group}: B joins with its id", JOIN_GROUP, version, static(group, V(f"{group}-b2"), "B")),
        step(f"{group}: still no rebalance", HEARTBEAT, 3, beat(group, 2, V(f"{group}-a2"), **named("A"))),
        leave(group, "A", "B"),
        step(f"{group}: deleted", DELETE_GROUPS, 2, {"groups_names": [group]}),
    )


def _named_sync(group: str, member: object, name: str) -> dict[str, object]:
    return sync(group, 2, member, protocol_type="consumer", protocol_name="range", **named(name))


def _commit(group: str, member: object, name: str) -> dict[str, object]:
    return commit(group, (0, 5, None), member_id=member, generation_id_or_member_epoch=2, **named(name))


def _leaving(group: str, member: object, name: str) -> dict[str, object]:
    return {"group_id": group, "members": [{"member_id": member, "group_instance_id": name}]}


BACK: tuple[Step, ...] = tuple(one for version in range(5, 10) for one in _back(version))

CHANGED: tuple[Step, ...] = (
    *pair("new", **offers("range", "other")),
    step(
        "B is back with another subscription",
        JOIN_GROUP,
        7,
        static("new", "", "B", **offers("range", "other", words=b"\0\0")),
        save={"nb": "member_id"},
    ),
    step("which costs no rebalance", HEARTBEAT, 3, beat("new", 2, a("new"), **named("A"))),
    step("and is described", DESCRIBE_GROUPS, 5, {"groups": ["new"]}),
    send(
        "B is back with another first choice",
        JOIN_GROUP,
        7,
        static("new", "", "B", **offers("other")),
        connection="new-b",
    ),
    step("which costs one", HEARTBEAT, 3, beat("new", 2, a("new"), **named("A")), until=rebalancing),
    step("A joins it", JOIN_GROUP, 7, static("new", a("new"), "A", **offers("range", "other"))),
    collect("B joins it", JOIN_GROUP, 7, connection="new-b", save={"nb": "member_id"}),
    send("B is back while it completes", JOIN_GROUP, 7, static("new", "", "B", **offers("other")), connection="new-b"),
    step("A hears of that", HEARTBEAT, 3, beat("new", 3, a("new"), **named("A")), until=rebalancing),
    step("A joins that", JOIN_GROUP, 7, static("new", a("new"), "A", **offers("range", "other"))),
    collect("B joins that", JOIN_GROUP, 7, connection="new-b", save={"nb": "member_id"}),
    step("B speaks what A does not", JOIN_GROUP, 7, static("new", "", "B", **offers("third"))),
    step("B speaks of another kind", JOIN_GROUP, 7, static("new", "", "B", protocol_type="connect", **offers("range"))),
    step("B joins with an id nobody has", JOIN_GROUP, 7, static("new", "nobody", "B", **offers("other"))),
    step("C joins with an id nobody has", JOIN_GROUP, 7, static("new", "nobody", "C", **offers("other"))),
    step("B joins as A", JOIN_GROUP, 7, static("new", V("nb"), "A", **offers("other"))),
    step("A joins as C", JOIN_GROUP, 7, static("new", a("new"), "C", **offers("other"))),
    step("an empty name", JOIN_GROUP, 7, static("unnamed", "", "")),
    leave("new", "A", "B"),
    leave("unnamed", ""),
)

REPLACED: tuple[Step, ...] = (
    *pair("twin"),
    send(
        "B joins with its id and something new",
        JOIN_GROUP,
        7,
        static("twin", b("twin"), "B", **offers("range")),
        connection="twin-b",
    ),
    step("A hears of it", HEARTBEAT, 3, beat("twin", 2, a("twin"), **named("A")), until=rebalancing),
    send("another B comes meanwhile", JOIN_GROUP, 7, static("twin", "", "B"), connection="twin-c"),
    collect("the B that waits is fenced", JOIN_GROUP, 7, connection="twin-b"),
    step("A joins the other B", JOIN_GROUP, 7, static("twin", a("twin"), "A")),
    collect("the other B is in", JOIN_GROUP, 7, connection="twin-c", save={"twin-c": "member_id"}),
    send(
        "the other B waits for its part", SYNC_GROUP, 3, sync("twin", 3, V("twin-c"), **named("B")), connection="twin-c"
    ),
    step("the group completes with the other", DESCRIBE_GROUPS, 5, {"groups": ["twin"]}),
    send("a third B comes", JOIN_GROUP, 7, static("twin", "", "B"), connection="twin-d"),
    collect("the B that waits for its part is fenced", SYNC_GROUP, 3, connection="twin-c"),
    step("A hears of the third B", HEARTBEAT, 3, beat("twin", 3, a("twin"), **named("A")), until=rebalancing),
    step("A joins the third B", JOIN_GROUP, 7, static("twin", a("twin"), "A")),
    collect("the third B is in", JOIN_GROUP, 7, connection="twin-d", save={"twin-d": "member_id"}),
    step("the third B gets nothing yet", HEARTBEAT, 3, beat("twin", 4, V("twin-d"), **named("B"))),
    step(
        "A assigns to all",
        SYNC_GROUP,
        3,
        sync("twin", 4, a("twin"), (a("twin"), b"A"), (V("twin-d"), b"B"), **named("A")),
    ),
    step("the third B has its part", SYNC_GROUP, 3, sync("twin", 4, V("twin-d"), **named("B"))),
    step(
        "B leaves by its id without its name",
        LEAVE_GROUP,
        5,
        {"group_id": "twin", "members": [{"member_id": V("twin-d")}]},
    ),
    step("A is told that B left", HEARTBEAT, 3, beat("twin", 4, a("twin"), **named("A")), until=rebalancing),
    step("the left B comes back with its id", JOIN_GROUP, 7, static("twin", V("twin-d"), "B")),
    step("nobody has its name", HEARTBEAT, 3, beat("twin", 4, V("twin-d"), **named("B"))),
    leave("twin", "A", "B"),
)

MIXED: tuple[Step, ...] = (
    *pair("mix"),
    step("a dynamic one is given an id", JOIN_GROUP, 7, join("mix"), client_id="dyn", save={"mix-c": "member_id"}),
    send("a dynamic one joins", JOIN_GROUP, 7, join("mix", V("mix-c")), client_id="dyn", connection="mix-c"),
    step("A hears of the dynamic one", HEARTBEAT, 3, beat("mix", 2, a("mix"), **named("A")), until=rebalancing),
    send("A joins the dynamic one", JOIN_GROUP, 7, static("mix", a("mix"), "A"), connection="mix-a"),
    step("B joins the dynamic one", JOIN_GROUP, 7, static("mix", b("mix"), "B")),
    collect("A is in with it", JOIN_GROUP, 7, connection="mix-a"),
    collect("the dynamic one is in", JOIN_GROUP, 7, connection="mix-c"),
    step("no B may come without its id to a full group", JOIN_GROUP, 7, static("mix", "", "B")),
    step("B may with it", JOIN_GROUP, 7, static("mix", b("mix"), "B")),
    step(
        "A assigns to all three",
        SYNC_GROUP,
        3,
        sync("mix", 3, a("mix"), (a("mix"), b"A"), (b("mix"), b"B"), (V("mix-c"), b"C"), **named("A")),
    ),
    step("no B may come without its id to a full stable group", JOIN_GROUP, 9, static("mix", "", "B")),
    step("B may with it, when it is stable", JOIN_GROUP, 9, static("mix", b("mix"), "B")),
    step("D may not come", JOIN_GROUP, 7, static("mix", "", "D")),
    step(
        "all leave, each in its way",
        LEAVE_GROUP,
        5,
        {
            "group_id": "mix",
            "members": [
                {"group_instance_id": "A"},
                {"group_instance_id": "A"},
                {"member_id": V("mix-c")},
                {"member_id": a("mix"), "group_instance_id": "A"},
                {"group_instance_id": "B"},
            ],
        },
    ),
    step("they have all left", DESCRIBE_GROUPS, 5, {"groups": ["mix"]}),
)

SILENT: tuple[Step, ...] = (
    *pair("late", **SHORT),
    send("A joins, and B has no time", JOIN_GROUP, 7, static("late", a("late"), "A", **SHORT), connection="late-a"),
    collect("A goes on, and B is still counted", JOIN_GROUP, 7, connection="late-a"),
    step(
        "A assigns to both",
        SYNC_GROUP,
        3,
        sync("late", 3, a("late"), (a("late"), b"A"), (b("late"), b"B"), **named("A")),
    ),
    step("B is late for its generation", HEARTBEAT, 3, beat("late", 2, b("late"), **named("B"))),
    step("B, who did not ask for its part, is out", DESCRIBE_GROUPS, 5, {"groups": ["late"]}, until=count(1)),
    leave("late", "A", "B"),
)

STEPS: tuple[Step, ...] = (*BACK, *CHANGED, *REPLACED, *MIXED, *SILENT)
