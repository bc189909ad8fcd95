"""Groups that go on to the consumer protocol with their members (KIP-848), classic members among newer ones, and back;
and expressions that are none.

Each group has one classic member beside one newer one, so that who gets what does not hang on how ids are drawn.
"""

from moldau.protocol import schema
from moldau.protocol.apis import (
    CREATE_TOPICS,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    SYNC_GROUP,
)
from moldau.protocol.consumer import (
    AssignedPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedPartitions,
)
from tests.differential.script import Step, V, step
from tests.differential.steps.consumer_groups import BEAT, DESCRIBE, commit, join
from tests.differential.steps.consumer_groups import beat as newer_beat
from tests.differential.steps.groups import beat, rebalancing, sync
from tests.differential.steps.groups import join as classic_join


def reads(*owned: int) -> dict[str, object]:
    """A member's words: it reads `benches`, and has some of its partitions."""
    parts = [OwnedPartitions(topic="benches", partitions=list(owned))] if owned else []
    words = ConsumerProtocolSubscription(topics=["benches"], owned_partitions=parts)
    metadata = b"\0\1" + bytes(schema.write(words, 1, False))
    return {"protocols": [{"name": name, "metadata": metadata} for name in ("sticky", "range")]}


def given(*partitions: int, topic: str = "benches", user_data: bytes | None = None) -> bytes:
    parts = [AssignedPartitions(topic=topic, partitions=list(partitions))]
    words = ConsumerProtocolAssignment(assigned_partitions=parts, user_data=user_data)
    return b"\0\1" + bytes(schema.write(words, 1, False))


def classic(group: str, name: str, part: bytes, **more: object) -> tuple[Step, ...]:
    """A stable classic group of one member, in generation 1."""
    me = V(name)
    asked = classic_join(group, **{**reads(), **more})
    named = {"group_instance_id": more["group_instance_id"]} if "group_instance_id" in more else {}
    return (
        step(f"{group}: a classic member joins", JOIN_GROUP, 5 if named else 1, asked, save={name: "member_id"}),
        step(f"{group}: and has all", SYNC_GROUP, 3, sync(group, 1, me, (me, part), **named)),
    )


TOPICS: tuple[Step, ...] = (
    step(
        "benches for those who migrate",
        CREATE_TOPICS,
        7,
        {"topics": [{"name": "benches", "num_partitions": 4, "replication_factor": 1}]},
        save={"benches-id": "topics[0].topic_id"},
    ),
)

C, M = V("mover-c"), {"group_ids": ["mover"]}

MOVING: tuple[Step, ...] = (
    *classic("mover", "mover-c", given(0, 1, 2, 3)),
    step("mover: a newer one with no expression", BEAT, 1, join("mover", "n", subscribed_topic_regex="[")),
    step("mover: it is classic yet", HEARTBEAT, 3, beat("mover", 1, C)),
    step("mover: a newer one joins", BEAT, 1, join("mover", "n", "benches"), save={"n": "member_epoch"}),
    step("mover: is described as what it is", DESCRIBE, 1, M),
    step("mover: is no classic group", DESCRIBE_GROUPS, 5, {"groups": ["mover"]}),
    step("mover: is listed", LIST_GROUPS, 5, {"types_filter": ["consumer"]}),
    step("mover: the classic one hears of it", HEARTBEAT, 3, beat("mover", 1, C), until=rebalancing),
    step("mover: a generation before", HEARTBEAT, 3, beat("mover", 0, C)),
    step("mover: nothing to sync", SYNC_GROUP, 3, sync("mover", 1, C)),
    step("mover: the classic one commits", OFFSET_COMMIT, 9, commit("mover", C, 1, topic="benches")),
    step("mover: in an old version", OFFSET_COMMIT, 8, commit("mover", C, 1, topic="benches")),
    step("mover: in another generation", OFFSET_COMMIT, 9, commit("mover", C, 2, topic="benches")),
    step("mover: no classic heartbeat of a newer one", HEARTBEAT, 3, beat("mover", 2, "n")),
    step("mover: nor a sync", SYNC_GROUP, 3, sync("mover", 2, "n")),
    step("mover: joins with what it has", JOIN_GROUP, 5, classic_join("mover", C, **reads(0, 1, 2, 3))),
    step(
        "mover: syncs what it keeps",
        SYNC_GROUP,
        5,
        sync("mover", 1, C, protocol_type="consumer", protocol_name="sticky"),
    ),
    step("mover: has to join again", HEARTBEAT, 4, beat("mover", 1, C)),
    step("mover: the newer one waits", BEAT, 1, newer_beat("mover", "n", V("n"), topic_partitions=[])),
    step("mover: is reconciling", DESCRIBE, 0, M),
    step("mover: joins with what it kept", JOIN_GROUP, 9, classic_join("mover", C, **reads(0, 1))),
    step(
        "mover: syncs in another protocol",
        SYNC_GROUP,
        5,
        sync("mover", 2, C, protocol_type="consumer", protocol_name="x"),
    ),
    step("mover: syncs as another type", SYNC_GROUP, 5, sync("mover", 2, C, protocol_type="x", protocol_name="sticky")),
    step("mover: syncs", SYNC_GROUP, 0, sync("mover", 2, C)),
    step("mover: is well", HEARTBEAT, 0, beat("mover", 2, C)),
    step("mover: the newer one gets the rest", BEAT, 1, newer_beat("mover", "n", V("n"), topic_partitions=[])),
    step("mover: is stable", DESCRIBE, 1, M),
    step("mover: a connector joins", JOIN_GROUP, 1, classic_join("mover", protocol_type="connect", **reads())),
    step(
        "mover: another assignor", JOIN_GROUP, 1, classic_join("mover", protocols=[{"name": "x", "metadata": b"\0\0"}])
    ),
    step("mover: an unknown instance", JOIN_GROUP, 5, classic_join("mover", "x", group_instance_id="i", **reads())),
    step("mover: the newer one leaves", BEAT, 1, newer_beat("mover", "n", -1)),
    step("mover: is no newer group", DESCRIBE, 1, M),
    step("mover: is a classic group", DESCRIBE_GROUPS, 5, {"groups": ["mover"]}),
    step("mover: its member hears of it", HEARTBEAT, 3, beat("mover", 2, C)),
    step("mover: joins", JOIN_GROUP, 5, classic_join("mover", C, **reads(0, 1))),
    step("mover: leads", SYNC_GROUP, 3, sync("mover", 3, C, (C, given(0, 1, 2, 3)))),
    step("mover: leaves", LEAVE_GROUP, 2, {"group_id": "mover", "member_id": C}),
)

FIRM: tuple[Step, ...] = (
    *classic("swap", "swap-c", given(0, 1, 2, 3), group_instance_id="i"),
    step("swap: the newer one takes its place", BEAT, 1, join("swap", "n", "benches", instance_id="i")),
    step("swap: is described", DESCRIBE, 1, {"group_ids": ["swap"]}),
    step("swap: the old one is fenced", HEARTBEAT, 3, beat("swap", 1, V("swap-c"), group_instance_id="i")),
    step(
        "swap: a classic one takes its place",
        JOIN_GROUP,
        5,
        classic_join("swap", group_instance_id="i", **reads()),
        save={"swap-d": "member_id"},
    ),
    step("swap: is no newer group", DESCRIBE, 1, {"group_ids": ["swap"]}),
    step("swap: is a classic group", DESCRIBE_GROUPS, 5, {"groups": ["swap"]}),
    step("swap: syncs", SYNC_GROUP, 3, sync("swap", 1, V("swap-d"), group_instance_id="i")),
    step("swap: is well", HEARTBEAT, 3, beat("swap", 1, V("swap-d"), group_instance_id="i")),
    step("swap: goes", LEAVE_GROUP, 3, {"group_id": "swap", "members": [{"group_instance_id": "i"}]}),
)

STAYING: tuple[Step, ...] = (
    *classic("connect", "connect-c", b"all", protocol_type="connect"),
    step("connect: no consumer joins it", BEAT, 1, join("connect", "n", "benches")),
    *classic("own-words", "words-c", given(0, 1, 2, 3), protocols=[{"name": "x", "metadata": b"x"}]),
    step("own-words: nobody joins it the newer way", BEAT, 1, join("own-words", "n", "benches")),
    *classic("own-ways", "ways-c", given(0, 1, 2, 3, user_data=b"mine")),
    step("own-ways: nobody joins it the newer way", BEAT, 1, join("own-ways", "n", "benches")),
    *(
        step(f"{group}: leaves", LEAVE_GROUP, 2, {"group_id": group, "member_id": V(member)})
        for group, member in (("connect", "connect-c"), ("own-words", "words-c"), ("own-ways", "ways-c"))
    ),
)

EXPRESSIONS: tuple[Step, ...] = (
    *(
        step(f"an expression {number}", BEAT, 1, join("matching", "m", subscribed_topic_regex=expression))
        for number, expression in enumerate(("(", "*", r"a\1", "(?=x)", "a{1,2000}", r"\Z", "x)"))
    ),
)

LAST: tuple[Step, ...] = (
    step(
        "nothing is left of those who migrate",
        DELETE_GROUPS,
        2,
        {"groups_names": ["mover", "swap", "connect", "own-words", "own-ways"]},
    ),
)

STEPS: tuple[Step, ...] = (*MOVING, *FIRM, *STAYING, *EXPRESSIONS, *LAST)
