"""Fetch sessions (KIP-227): begun, gone on with, changed and ended, with ids and with names, rightly and wrongly.

Over a topic of their own, `followed`, of three partitions.
"""

from moldau.protocol.apis import CREATE_TOPICS, DELETE_RECORDS, FETCH, METADATA, PRODUCE
from tests.differential.batches import batch
from tests.differential.script import Step, Tree, V, step
from tests.differential.steps.fetch import whole
from tests.differential.steps.topics import has_leaders

NAME = "followed"


def part(index: int, offset: int = 0, **more: object) -> dict[str, object]:
    return {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **more}


def asked(
    session: object, epoch: int, *parts: dict[str, object], topic: str = NAME, **more: object
) -> dict[str, object]:
    topics: list[object] = [{"topic": topic, "partitions": list(parts)}] if parts else []
    return whole(topics, session_id=session, session_epoch=epoch, **{"max_wait_ms": 100, **more})


def asked_by_id(session: object, epoch: int, *parts: dict[str, object], **more: object) -> dict[str, object]:
    topics: list[object] = [{"topic_id": V("followed"), "partitions": list(parts)}] if parts else []
    return whole(topics, session_id=session, session_epoch=epoch, **{"max_wait_ms": 100, **more})


def forgetting(*indexes: int, topic: str = NAME) -> dict[str, object]:
    return {"forgotten_topics_data": [{"topic": topic, "partitions": list(indexes)}]}


def records(index: int, *values: bytes) -> dict[str, object]:
    data = [{"index": index, "records": batch(*values)}]
    return {"acks": -1, "timeout_ms": 5000, "topic_data": [{"name": NAME, "partition_data": data}]}


def written(reply: Tree) -> bool:
    """A leader may be known before it writes."""
    return bool(reply["responses"][0]["partition_responses"][0]["error_code"] == 0)


def read(reply: Tree) -> bool:
    return all(one["error_code"] == 0 for one in reply["responses"][0]["partitions"])


S = V("session")
STEPS: tuple[Step, ...] = (
    step(
        "make a topic to follow",
        CREATE_TOPICS,
        7,
        {"topics": [{"name": NAME, "num_partitions": 3, "replication_factor": 1}], "timeout_ms": 10000},
    ),
    step(
        "see the topic to follow",
        METADATA,
        12,
        {"topics": [{"name": NAME}]},
        until=has_leaders,
        save={"followed": "topics[0].topic_id"},
    ),
    step("write to what is followed", PRODUCE, 9, records(0, b"a", b"b"), until=written),
    step("read all of it", FETCH, 12, asked(0, -1, part(0), part(1), part(2)), until=read),
    step(
        "begin to follow",
        FETCH,
        12,
        asked(0, 0, part(0), part(1)),
        save={"session": "session_id"},
    ),
    step("go on where the records end", FETCH, 12, asked(S, 1, part(0, 2))),
    step("go on with nothing new", FETCH, 12, asked(S, 2)),
    step("write to another partition that is followed", PRODUCE, 9, records(1, b"c"), until=written),
    step("go on and be told of that one only", FETCH, 12, asked(S, 3)),
    step("go on without reading further and be told again", FETCH, 12, asked(S, 4)),
    step("go on past it, with one more partition", FETCH, 12, asked(S, 5, part(1, 1), part(2))),
    step("go on with an epoch that was", FETCH, 12, asked(S, 5)),
    step("go on with an epoch to come", FETCH, 12, asked(S, 8)),
    step("go on by id in a session by name", FETCH, 13, asked_by_id(S, 6)),
    step("go on in an older version", FETCH, 7, asked(S, 6)),
    step("go on with a partition that is not there", FETCH, 12, asked(S, 7, part(9))),
    step("go on and be told of it again", FETCH, 12, asked(S, 8)),
    step("forget what is not there", FETCH, 12, asked(S, 9, **forgetting(9))),
    step("go on after that", FETCH, 12, asked(S, 10)),
    step(
        "delete records of what is followed",
        DELETE_RECORDS,
        2,
        {"topics": [{"name": NAME, "partitions": [{"partition_index": 0, "offset": 1}]}], "timeout_ms": 5000},
    ),
    step("be told that the log begins later", FETCH, 12, asked(S, 11)),
    step("read what was deleted", FETCH, 12, asked(S, 12, part(0, 0))),
    step("read what was not", FETCH, 12, asked(S, 13, part(0, 1))),
    step("name and forget a partition at once", FETCH, 12, asked(S, 14, part(1, 0), **forgetting(1))),
    step("go on without it", FETCH, 12, asked(S, 15)),
    step("forget all of it", FETCH, 12, asked(S, 16, **forgetting(0, 2))),
    step("go on in what was forgotten", FETCH, 12, asked(S, 17)),
    step("begin to follow nothing", FETCH, 12, asked(0, 0)),
    step("begin to follow by id", FETCH, 15, asked_by_id(0, 0, part(0, 1), part(1)), save={"session": "session_id"}),
    step("go on by name in a session by id", FETCH, 12, asked(S, 1)),
    step("go on by id", FETCH, 15, asked_by_id(S, 1, part(0, 2), part(1, 1))),
    step("begin anew in place of that", FETCH, 18, asked_by_id(S, 0, part(2)), save={"next": "session_id"}),
    step("go on in what was replaced", FETCH, 18, asked_by_id(S, 2)),
    step("end a session and read the last time", FETCH, 18, asked_by_id(V("next"), -1, part(0, 1))),
    step("go on in what was ended", FETCH, 18, asked_by_id(V("next"), 1)),
    step("go on with a negative epoch", FETCH, 12, asked(0, -7, part(0, 1))),
)
