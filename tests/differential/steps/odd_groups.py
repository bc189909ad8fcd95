"""Groups and offsets asked for in odd ways: names of all kinds, times at their bounds, things named twice, half of them
wrong.
"""

from moldau.protocol.apis import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
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
from tests.differential.steps.offsets import ask, commit, delete
from tests.differential.steps.topics import NOBODY

NAMES = (" ", "\t", "a/b", "gruppe-\u00e4", "\u4e16\u754c", "n" * 300, "..", "__consumer_offsets", "a\0b")


def _named(number: int, group: str) -> tuple[Step, ...]:
    me = V(f"odd-{number}")
    return (
        step(f"odd name {number}: join", JOIN_GROUP, 3, join(group), save={f"odd-{number}": "member_id"}),
        step(f"odd name {number}: sync", SYNC_GROUP, 3, sync(group, 1, me, (me, b"all"))),
        step(f"odd name {number}: heartbeat", HEARTBEAT, 3, beat(group, 1, me)),
        step(f"odd name {number}: leave", LEAVE_GROUP, 2, {"group_id": group, "member_id": me}),
        step(f"odd name {number}: commit", OFFSET_COMMIT, 8, commit(group, (0, 1, None))),
        step(f"odd name {number}: fetch", OFFSET_FETCH, 7, ask(group, 0)),
        step(f"odd name {number}: describe", DESCRIBE_GROUPS, 5, {"groups": [group]}),
        step(f"odd name {number}: delete", DELETE_GROUPS, 2, {"groups_names": [group]}),
    )


TIMES: tuple[Step, ...] = tuple(
    one
    for number, (version, session_ms, rebalance_ms) in enumerate(
        (
            (1, 6000, 0),
            (1, 6000, -1),
            (5, 1_800_000, 2**31 - 1),
            (0, 6000, -5),
            (2, 0, 1000),
            (2, -1, 1000),
            (2, 2**31 - 1, 1),
        )
    )
    for one in (
        step(
            f"session of {session_ms} and rebalance of {rebalance_ms} ms",
            JOIN_GROUP,
            version,
            join(f"timed-{number}", session_ms=session_ms, rebalance_timeout_ms=rebalance_ms),
        ),
    )
)


def _parts(*indexes: int, offset: int = 7) -> list[dict[str, object]]:
    return [
        {"partition_index": index, "committed_offset": offset + at, "committed_metadata": f"number {at}"}
        for at, index in enumerate(indexes)
    ]


def _topics(version: int, *topics: tuple[str, tuple[int, ...]]) -> list[dict[str, object]]:
    """By name, or by id from version 10 on."""
    listed = []
    for name, indexes in topics:
        where = {"topic_id": V(name) if name == "offsets" else NOBODY} if version >= 10 else {"name": name}
        listed.append({**where, "partitions": _parts(*indexes)})
    return listed


MIXED: tuple[Step, ...] = (
    *(
        step(
            f"v{version}: commit {what}",
            OFFSET_COMMIT,
            version,
            {"group_id": "odd", "topics": _topics(version, *topics)},
        )
        for version in (2, 6, 9, 10)
        for what, topics in (
            ("one partition twice", (("offsets", (0, 1, 0)),)),
            ("one topic twice", (("offsets", (0,)), ("offsets", (1,)))),
            ("one topic twice, and one partition", (("offsets", (0,)), ("offsets", (0,)))),
            ("some that is not there first", (("absent", (0, 1)), ("offsets", (0, 9, 1)))),
            ("some that is not there last", (("offsets", (9, 0, -1)), ("absent", (0,)))),
            ("one absent topic twice", (("absent", (0,)), ("absent", (1, 0)))),
            ("no partitions", (("offsets", ()),)),
            ("no partitions of what is not there", (("absent", ()), ("offsets", (1,)))),
        )
    ),
    step("a topic without id", OFFSET_COMMIT, 10, {"group_id": "odd", "topics": [{"partitions": _parts(0)}]}),
    step(
        "a topic without name", OFFSET_COMMIT, 9, {"group_id": "odd", "topics": [{"name": "", "partitions": _parts(0)}]}
    ),
    step(
        "a topic that cannot be",
        OFFSET_COMMIT,
        9,
        {"group_id": "odd", "topics": [{"name": "a b", "partitions": _parts(0)}]},
    ),
    step(
        "an internal topic",
        OFFSET_COMMIT,
        9,
        {"group_id": "odd", "topics": [{"name": "__consumer_offsets", "partitions": _parts(0)}]},
    ),
    step("what came of it", OFFSET_FETCH, 8, {"groups": [{"group_id": "odd", "topics": None}]}),
    *(
        step(f"fetch {what}", OFFSET_FETCH, 8, {"groups": [{"group_id": "odd", "topics": topics}]})
        for what, topics in (
            ("one partition twice", [{"name": "offsets", "partition_indexes": [0, 0]}]),
            (
                "one topic twice",
                [{"name": "offsets", "partition_indexes": [0]}, {"name": "offsets", "partition_indexes": [1]}],
            ),
            ("a topic without a name", [{"name": "", "partition_indexes": [0]}]),
            ("a topic that cannot be", [{"name": "a b", "partition_indexes": [0]}]),
        )
    ),
    step(
        "fetch by no id, a wrong one and a right one",
        OFFSET_FETCH,
        10,
        {
            "groups": [
                {
                    "group_id": "odd",
                    "topics": [
                        {"partition_indexes": [0]},
                        {"topic_id": NOBODY, "partition_indexes": [0, 1]},
                        {"topic_id": V("offsets"), "partition_indexes": [1, 0, 3]},
                    ],
                }
            ]
        },
    ),
    step("delete one partition twice", OFFSET_DELETE, 0, delete("odd", 0, 0)),
    step(
        "delete of a topic twice, and of one that is not there",
        OFFSET_DELETE,
        0,
        {
            "group_id": "odd",
            "topics": [
                {"name": "offsets", "partitions": [{"partition_index": 1}]},
                {"name": "absent", "partitions": [{"partition_index": 1}]},
                {"name": "offsets", "partitions": [{"partition_index": 8}]},
            ],
        },
    ),
    step("deleting all of it leaves nothing", OFFSET_FETCH, 8, {"groups": [{"group_id": "odd", "topics": None}]}),
    step("and leaves the group", DESCRIBE_GROUPS, 6, {"groups": ["odd"]}),
    step("which may be deleted", DELETE_GROUPS, 2, {"groups_names": ["odd"]}),
    step("describe one twice", DESCRIBE_GROUPS, 6, {"groups": ["odd", "odd"]}),
)

STEPS: tuple[Step, ...] = (*(one for pair in enumerate(NAMES) for one in _named(*pair)), *TIMES, *MIXED)
