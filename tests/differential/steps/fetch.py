"""Reading: Fetch in every generation of its versions, offsets by time and by name, records deleted from the front.

The topics `events` (two partitions), `plain`, `stamped` and `read` hold what the produce area left there.
"""

import uuid

from moldau.protocol.apis import DELETE_RECORDS, FETCH, LIST_OFFSETS
from tests.differential.batches import T0
from tests.differential.script import Step, V, step
from tests.differential.steps.topics import NOBODY

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6


def read(topic: str, offset: int = 0, partition: int = 0, **more: object) -> dict[str, object]:
    """One partition by name; `more` belongs to the partition."""
    part = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **more}
    return whole([{"topic": topic, "partitions": [part]}])


def read_by_id(topic_id: object, offset: int = 0, partition: int = 0, **more: object) -> dict[str, object]:
    part = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **more}
    return whole([{"topic_id": topic_id, "partitions": [part]}])


def whole(topics: list[object], **more: object) -> dict[str, object]:
    return {"max_wait_ms": 300, "min_bytes": 1, "max_bytes": 1 << 22, "topics": topics, **more}


FETCHING: tuple[Step, ...] = (
    step("fetch in the oldest way", FETCH, 4, read("events")),
    step("fetch with log start offsets", FETCH, 5, read("events", 2)),
    step("fetch from within a batch", FETCH, 8, read("events", 1)),
    step("fetch zstd before it was known", FETCH, 9, read("events", 5)),
    step("fetch zstd", FETCH, 10, read("events", 5)),
    step("fetch in a middle version", FETCH, 11, read("events", 0, 1)),
    step("fetch, newest by name", FETCH, 12, read("events", 0, 1)),
    step("fetch, oldest by id", FETCH, 13, read_by_id(V("events"), 0, 1)),
    step("fetch, newest", FETCH, 18, read_by_id(V("plain"))),
    step("fetch committed records only", FETCH, 12, {**read("events"), "isolation_level": 1}),
    step("fetch at an isolation nobody knows", FETCH, 12, {**read("events"), "isolation_level": 5}),
    step("fetch what the broker stamped", FETCH, 12, read("stamped")),
    step("fetch what the broker compressed", FETCH, 12, read("recompressed")),
    step("fetch what is compacted", FETCH, 12, read("compacted")),
    step("fetch a partition with nothing in it", FETCH, 12, read("configured")),
    step("fetch at the end", FETCH, 12, read("read", 2, 1)),
    step("fetch beyond the end", FETCH, 12, read("read", 3, 1)),
    step("fetch far beyond the end", FETCH, 17, read_by_id(V("read"), 10**12)),
    step("fetch before the start", FETCH, 12, read("read", -1)),
    step("fetch a topic that is not there", FETCH, 12, read("absent")),
    step("fetch a partition that is not there", FETCH, 12, read("events", 0, 9)),
    step("fetch a partition that is not there, by id", FETCH, 16, read_by_id(V("events"), 0, -3)),
    step("fetch an id nobody has", FETCH, 15, read_by_id(NOBODY)),
    step("fetch the id of nothing", FETCH, 13, read_by_id(uuid.UUID(int=0))),
    step("fetch nothing", FETCH, 12, whole([])),
    step("fetch with the right leader epoch", FETCH, 12, read("read", current_leader_epoch=0)),
    step("fetch with a newer leader epoch", FETCH, 12, read("read", current_leader_epoch=9)),
    step("fetch with an epoch that has read on", FETCH, 12, read("read", last_fetched_epoch=0)),
    step("fetch with the epoch of a future", FETCH, 13, read_by_id(V("read"), last_fetched_epoch=7)),
    step("fetch a first batch larger than the request may be", FETCH, 12, {**read("events"), "max_bytes": 10}),
    step("fetch a first batch larger than the partition may be", FETCH, 12, read("events", partition_max_bytes=1)),
    step("fetch no byte of a partition", FETCH, 12, read("events", partition_max_bytes=0)),
    step("fetch some batches of many", FETCH, 12, read("events", partition_max_bytes=200)),
    step("fetch less than nothing", FETCH, 12, {**read("events"), "max_bytes": -1}),
    step("fetch more than there is, which waits", FETCH, 12, {**read("read"), "min_bytes": 1 << 20}),
    step("fetch without waiting", FETCH, 12, {**read("read", 2, 1), "max_wait_ms": 0}),
    step("fetch with a negative wait", FETCH, 12, {**read("read", 2, 1), "max_wait_ms": -1}),
    step("fetch as a replica that is none", FETCH, 12, {**read("read"), "replica_id": 5}),
    step("fetch as a debugging consumer", FETCH, 12, {**read("read"), "replica_id": -2}),
    step(
        "fetch two partitions and one that is not there",
        FETCH,
        8,
        whole(
            [
                {
                    "topic": "read",
                    "partitions": [
                        {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in (1, 0, 8)
                    ],
                },
                {"topic": "absent", "partitions": [{"partition": 0, "partition_max_bytes": 100}]},
            ]
        ),
    ),
    step(
        "fetch two partitions of which the second no longer fits",
        FETCH,
        12,
        {
            **whole(
                [
                    {
                        "topic": "events",
                        "partitions": [
                            {"partition": index, "fetch_offset": 0, "partition_max_bytes": 100} for index in (0, 1)
                        ],
                    }
                ]
            ),
            "max_bytes": 100,
        },
    ),
    step("fetch without a session", FETCH, 7, {**read("read"), "session_id": 0, "session_epoch": -1}),
    step("fetch and begin a session", FETCH, 12, {**read("read"), "session_id": 0, "session_epoch": 0}),
    step("fetch in a session nobody has", FETCH, 12, {**read("read"), "session_id": 4711, "session_epoch": 3}),
    step("fetch in a session that cannot be", FETCH, 12, {**read("read"), "session_id": 0, "session_epoch": 3}),
    step("close a session nobody has", FETCH, 12, {**whole([]), "session_id": 4711, "session_epoch": -1}),
    step("fetch with a rack", FETCH, 11, {**read("read"), "rack_id": "here"}),
    step("fetch for another cluster", FETCH, 12, {**read("read"), "cluster_id": "another"}),
)


def at(topic: str, *asked: tuple[int, int], **more: object) -> dict[str, object]:
    """(partition, time) pairs of one topic."""
    parts = [{"partition_index": index, "timestamp": time, **more} for index, time in asked]
    return {"replica_id": -1, "timeout_ms": 5000, "topics": [{"name": topic, "partitions": parts}]}


OFFSETS: tuple[Step, ...] = (
    step("first and last offsets in the oldest way", LIST_OFFSETS, 1, at("events", (0, LATEST), (1, EARLIEST))),
    step(
        "first and last offsets, committed ones", LIST_OFFSETS, 2, {**at("events", (0, LATEST)), "isolation_level": 1}
    ),
    step("first and last offsets with epochs", LIST_OFFSETS, 4, at("events", (0, LATEST), (1, EARLIEST))),
    step("first and last offsets, flexible", LIST_OFFSETS, 6, at("read", (0, LATEST), (1, LATEST), (2, EARLIEST))),
    step("first and last offsets, newest", LIST_OFFSETS, 11, at("read", (0, LATEST), (1, EARLIEST))),
    step("the offset of the largest time", LIST_OFFSETS, 7, at("plain", (0, MAX_TIMESTAMP))),
    step("the offset of the largest time inside gzip", LIST_OFFSETS, 9, at("recompressed", (0, MAX_TIMESTAMP))),
    step("the offset of the largest time of nothing", LIST_OFFSETS, 7, at("configured", (0, MAX_TIMESTAMP))),
    step("the offset of the largest time before it was known", LIST_OFFSETS, 6, at("plain", (0, MAX_TIMESTAMP))),
    step("the first offset on this disk", LIST_OFFSETS, 8, at("plain", (0, EARLIEST_LOCAL))),
    step("the first offset on this disk before it was known", LIST_OFFSETS, 7, at("plain", (0, EARLIEST_LOCAL))),
    step("the last offset on another disk", LIST_OFFSETS, 9, at("plain", (0, LATEST_TIERED))),
    step("the first offset to be moved to another disk", LIST_OFFSETS, 11, at("plain", (0, EARLIEST_PENDING))),
    step("the same before it was known", LIST_OFFSETS, 10, at("plain", (0, EARLIEST_PENDING))),
    step("a name for an offset that nobody knows", LIST_OFFSETS, 11, at("plain", (0, -9))),
    step("the offset of the first time", LIST_OFFSETS, 5, at("events", (0, T0))),
    step("the offset of a time within a batch", LIST_OFFSETS, 5, at("events", (0, T0 + 2))),
    step("the offset of a time within gzip", LIST_OFFSETS, 5, at("recompressed", (0, T0 + 1))),
    step("the offset of time zero", LIST_OFFSETS, 1, at("events", (0, 0))),
    step("the offset of a time to come", LIST_OFFSETS, 11, at("events", (0, T0 + 10**9))),
    step("an offset where the broker stamps", LIST_OFFSETS, 5, at("stamped", (0, T0))),
    step("offsets of what is not there", LIST_OFFSETS, 5, at("absent", (0, LATEST))),
    step("offsets of a partition that is not there", LIST_OFFSETS, 11, at("read", (0, LATEST), (9, LATEST))),
    step("offsets of one partition twice", LIST_OFFSETS, 5, at("read", (0, LATEST), (0, EARLIEST))),
    step("offsets of a name that is none", LIST_OFFSETS, 5, at("a b", (0, LATEST))),
    step("offsets with the right leader epoch", LIST_OFFSETS, 4, at("read", (0, LATEST), current_leader_epoch=0)),
    step("offsets with a newer leader epoch", LIST_OFFSETS, 4, at("read", (0, LATEST), current_leader_epoch=3)),
    step("offsets of nothing", LIST_OFFSETS, 11, {"replica_id": -1, "topics": []}),
    step("offsets as a replica that is none", LIST_OFFSETS, 5, {**at("read", (0, LATEST)), "replica_id": 5}),
)


def delete(topic: str, *before: tuple[int, int]) -> dict[str, object]:
    parts = [{"partition_index": index, "offset": offset} for index, offset in before]
    return {"topics": [{"name": topic, "partitions": parts}], "timeout_ms": 5000}


DELETING: tuple[Step, ...] = (
    step("delete records", DELETE_RECORDS, 0, delete("read", (1, 1))),
    step("delete records again", DELETE_RECORDS, 1, delete("read", (1, 1))),
    step("delete up to the end", DELETE_RECORDS, 2, delete("read", (0, -1))),
    step("delete less than is deleted", DELETE_RECORDS, 2, delete("read", (1, 0))),
    step("delete beyond the end", DELETE_RECORDS, 2, delete("read", (1, 50))),
    step("delete to an offset that is none", DELETE_RECORDS, 2, delete("read", (1, -2))),
    step("delete from what is not there", DELETE_RECORDS, 2, delete("absent", (0, 1))),
    step("delete from a partition that is not there", DELETE_RECORDS, 1, delete("read", (2, 0), (9, 1))),
    step("delete where it is compacted", DELETE_RECORDS, 2, delete("compacted", (0, 0))),
    step("delete from nothing", DELETE_RECORDS, 2, {"topics": [], "timeout_ms": 5000}),
    step("fetch from before the first record", FETCH, 12, read("read", 0, 1)),
    step("fetch from the first record", FETCH, 12, read("read", 1, 1)),
    step("where records begin now", LIST_OFFSETS, 7, at("read", (0, EARLIEST), (1, EARLIEST))),
    step("the largest time of what is left", LIST_OFFSETS, 7, at("read", (0, MAX_TIMESTAMP), (1, MAX_TIMESTAMP))),
)

STEPS: tuple[Step, ...] = (*FETCHING, *OFFSETS, *DELETING)
