"""Several things at once: requests queued on one connection, readers that wait, changes others see, names used again.

Played after the other areas, over what they left.
"""

from moldau.errors import ErrorCode
from moldau.protocol.apis import (
    API_VERSIONS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    FETCH,
    HEARTBEAT,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    PRODUCE,
)
from tests.differential.batches import batch
from tests.differential.script import Step, V, collect, send, step
from tests.differential.steps.configs import SET, TOPIC, change
from tests.differential.steps.fetch import LATEST, at, delete, read, read_by_id
from tests.differential.steps.groups import beat
from tests.differential.steps.offsets import ask
from tests.differential.steps.produce import by_id, to
from tests.differential.steps.topics import has_leaders, more, new

OFFSETS_TOPIC = "__consumer_offsets"

QUEUED: tuple[Step, ...] = (
    send("first in a queue of four", METADATA, 1, {"topics": [{"name": "plain"}]}, connection="queue"),
    send("second in the queue", PRODUCE, 8, to("grown", batch(b"queued"), 1), connection="queue"),
    send("third in the queue", FETCH, 12, read("grown", 0, 1), connection="queue"),
    send("fourth in the queue", API_VERSIONS, 0, {}, connection="queue"),
    collect("the first is answered first", METADATA, 1, connection="queue"),
    collect("the second is answered second", PRODUCE, 8, connection="queue"),
    collect("the third sees what the second wrote", FETCH, 12, connection="queue"),
    collect("the fourth is answered last", API_VERSIONS, 0, connection="queue"),
    send(
        "a reader waits for more",
        FETCH,
        12,
        {**read("grown", 1, 1), "max_wait_ms": 8000},
        connection="reader",
    ),
    step("somebody writes", PRODUCE, 9, to("grown", batch(b"woken"), 1)),
    collect("the reader is woken", FETCH, 12, connection="reader"),
    step(
        "a refused Produce without an answer closes the connection",
        PRODUCE,
        8,
        to("absent", batch(b"x"), acks=0),
        connection="zero",
        wait_s=2,
    ),
)

INTERNAL: tuple[Step, ...] = (
    step("metadata of the offsets topic", METADATA, 7, {"topics": [{"name": OFFSETS_TOPIC}]}),
    step("produce to the offsets topic", PRODUCE, 8, to(OFFSETS_TOPIC, batch((b"k", b"v")))),
    step("create the offsets topic", CREATE_TOPICS, 5, {"topics": [new(OFFSETS_TOPIC)]}),
    step("delete records of the offsets topic", DELETE_RECORDS, 2, delete(OFFSETS_TOPIC, (0, 0))),
    step(
        "grow the offsets topic",
        CREATE_PARTITIONS,
        3,
        {"topics": [more(OFFSETS_TOPIC, 9)], "timeout_ms": 5000, "validate_only": True},
    ),
)

CHANGES: tuple[Step, ...] = (
    step(
        "allow smaller batches only",
        INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [change(TOPIC, "configured", ("max.message.bytes", SET, "200"))]},
    ),
    step(
        "then a larger one is refused",
        PRODUCE,
        7,
        to("configured", batch(b"x" * 300)),
        until=lambda reply: reply["responses"][0]["partition_responses"][0]["error_code"],
    ),
    step("list all groups, also those that only have offsets", LIST_GROUPS, 4),
    step("delete a group that only has offsets", DELETE_GROUPS, 2, {"groups_names": ["far"]}),
    step("its offsets are gone", OFFSET_FETCH, 5, ask("far", 0)),
    step("a heartbeat to it", HEARTBEAT, 1, beat("far", 1, "x")),
)


def is_uncommitted(reply: dict[str, list[dict[str, list[dict[str, int]]]]]) -> bool:
    return all(part["committed_offset"] == -1 for topic in reply["topics"] for part in topic["partitions"])


AGAIN: tuple[Step, ...] = (
    step("delete a topic that has offsets", DELETE_TOPICS, 5, {"topic_names": ["offsets"], "timeout_ms": 5000}),
    step("its offsets are gone, too", OFFSET_FETCH, 5, ask("o", 0, 1), until=is_uncommitted),
    step(
        "delete a topic that has records",
        DELETE_TOPICS,
        6,
        {"topics": [{"name": None, "topic_id": V("read")}], "timeout_ms": 5000},
    ),
    step(
        "fetch it by its id",
        FETCH,
        13,
        read_by_id(V("read"), 0, 2),
        until=lambda reply: reply["responses"][0]["partitions"][0]["error_code"] == ErrorCode.UNKNOWN_TOPIC_ID,
    ),
    step("produce to it by its id", PRODUCE, 13, by_id(V("read"), batch(b"x"))),
    step("produce to it by its name", PRODUCE, 12, to("read", batch(b"x"))),
    step(
        "ask for its offsets",
        LIST_OFFSETS,
        7,
        at("read", (0, LATEST)),
        until=lambda reply: reply["topics"][0]["partitions"][0]["error_code"],
    ),
    step("create it again", CREATE_TOPICS, 6, {"topics": [new("read", 2)]}),
    step(
        "it has another id",
        METADATA,
        12,
        {"topics": [{"name": "read"}]},
        until=has_leaders,
        save={"reread": "topics[0].topic_id"},
    ),
    step("it has a leader that leads", LIST_OFFSETS, 7, at("read", (0, LATEST), (1, LATEST)), until=has_leaders),
    step("its first record has offset zero", PRODUCE, 13, by_id(V("reread"), batch(b"first again"))),
    step("it is read by its new id", FETCH, 13, read_by_id(V("reread"))),
    step("and not by its old one", FETCH, 13, read_by_id(V("read"))),
)

STEPS: tuple[Step, ...] = (*QUEUED, *INTERNAL, *CHANGES, *AGAIN)
