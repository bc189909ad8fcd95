"""Fills our broker, over the wire, with every kind of batch, and reads back what it serves: both without our own code.

A `Served` is what a topic's partition 0 has for a consumer: its start and end, and every record as plain data.
"""

from dataclasses import dataclass
from typing import NamedTuple

from harness.patience import Deadline
from moldau.protocol.apis import DELETE_RECORDS, FIND_COORDINATOR, JOIN_GROUP, OFFSET_COMMIT, SYNC_GROUP
from moldau.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.differential.batches import GZIP, LZ4, SNAPPY, ZSTD, Row, batch, read_batches, record
from tests.differential.script import build
from tests.differential.steps.groups import join, sync
from tests.end_to_end.raw import Raw

CODECS = {"none": 0, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
KEPT = {"retention_ms": "-1"}
SEVERAL_SEGMENTS = {"segment_ms": "1000", "index_interval_bytes": "100"}
TOPICS: dict[str, dict[str, str]] = {
    "codecs": {},
    "segments": SEVERAL_SEGMENTS,
    "stamped": {"message_timestamp_type": "LogAppendTime", **SEVERAL_SEGMENTS},
    "into-gzip": {"compression_type": "gzip"},
    "into-zstd": {"compression_type": "zstd"},
    "from-compressed": {"compression_type": "uncompressed"},
    "idempotent": SEVERAL_SEGMENTS,
    "preallocated": {
        "preallocate": "true",
        "segment_bytes": "1048576",
        "segment_index_bytes": "200",
        "index_interval_bytes": "0",
    },
    "shortened": SEVERAL_SEGMENTS,
    "timeless": {"index_interval_bytes": "0"},
    "keyed": {"cleanup_policy": "compact"},
}
ROWS: tuple[Row, ...] = ((b"key", b"value" * 20), (None, b"no key"), (b"no value", None), (b"", b""), (None, None))
HEADERS = [("h", b"1"), ("h", None), ("", b"")]


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Served:
    start: int
    end: int
    records: list[Record]


def rows(timestamp: int, codec: int = 0, **more: int) -> bytes:
    """A batch with every shape of record."""
    body = b"".join(record(row, i, i, HEADERS[:i]) for i, row in enumerate(ROWS))
    return batch(*ROWS, codec=codec, body=body, timestamp=timestamp, **more)


def sequenced(producer_id: int, first: int, count: int, timestamp: int, epoch: int = 0) -> bytes:
    values = [b"%d" % (first + i) for i in range(count)]
    return batch(*values, timestamp=timestamp, producer_id=producer_id, producer_epoch=epoch, base_sequence=first)


def create(raw: Raw) -> None:
    for name, settings in TOPICS.items():
        raw.create_topic(name, **KEPT, **settings)


def fill(raw: Raw, t0_ms: int, round_: int = 0) -> None:
    """One round of batches into every topic, from that time on; rounds are an hour of record time apart."""
    begin = t0_ms + round_ * 3_600_000
    for name, codec in CODECS.items():
        send(raw, "codecs", rows(begin, codec), rows(begin + 20, codec))
        for topic in ("into-gzip", "into-zstd", "from-compressed"):
            send(raw, topic, rows(begin, codec), batch(name.encode(), timestamp=begin, codec=codec))
    for topic in ("segments", "stamped", "shortened"):
        send(raw, topic, *(rows(begin + i * 400, i % 5) for i in range(20)))
        send(raw, topic, batch(b"late", timestamp=begin - 5000), batch(b"after", timestamp=begin + 60_000))
    near_the_end, producer_id = 2**31 - 4, 7000 + round_
    send(
        raw,
        "idempotent",
        *(sequenced(producer_id, i * 3, 3, begin + i * 700) for i in range(8)),
        sequenced(producer_id, 0, 2, begin + 6000, epoch=1),
        sequenced(producer_id + 100, near_the_end, 8, begin + 6500),
        sequenced(producer_id + 100, 4, 1, begin + 6600),
    )
    send(raw, "preallocated", *(batch(b"%d" % i * 30, timestamp=begin + i) for i in range(60)))
    send(raw, "timeless", *(batch(b"%d" % i, timestamp=-1, max_timestamp=-1) for i in range(5)))
    send(raw, "keyed", *(batch((b"k%d" % (i % 7), b"%d" % i), timestamp=begin + i) for i in range(30)))
    delete_before(raw, "shortened", 40 + round_ * 100)
    commit(raw, "readers", "segments", 17 + round_)
    commit(raw, "readers", "codecs", 3)


def send(raw: Raw, topic: str, *batches: bytes) -> None:
    for one in batches:
        error, _ = raw.produce(topic, one)
        assert error == 0, (topic, error)


def delete_before(raw: Raw, topic: str, offset: int) -> None:
    part = DeleteRecordsPartition(partition_index=0, offset=offset)
    asked = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=5000)
    result = raw.ask(DELETE_RECORDS, 2, asked).topics[0].partitions[0]
    assert result.error_code == 0, result


def commit(raw: Raw, group: str, topic: str, offset: int) -> None:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="noted")
    asked = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])])
    until = Deadline()
    while True:  # the topic is made when somebody asks for the coordinator, which then reads it
        raw.ask(FIND_COORDINATOR, 1, FindCoordinatorRequest(key=group))
        result = raw.ask(OFFSET_COMMIT, 7, asked).topics[0].partitions[0]
        if result.error_code not in (14, 15, 16) or until.passed:
            break
    assert result.error_code == 0, result


def become_member(raw: Raw, group: str) -> str:
    """Join a group and take everything; the id of the member."""
    commit(raw, group, "codecs", 0)
    joined = raw.ask(JOIN_GROUP, 2, build(JOIN_GROUP.request, join(group), {}))
    assert joined.error_code == 0, joined
    member: str = joined.member_id
    taken = build(SYNC_GROUP.request, sync(group, joined.generation_id, member, (member, b"all of it")), {})
    assert raw.ask(SYNC_GROUP, 2, taken).error_code == 0
    return member


def serve(raw: Raw, topic: str) -> Served:
    """Everything that a consumer gets of a topic's partition 0."""
    start, end = raw.offset_at(topic, -2), raw.offset_at(topic, -1)
    records: list[Record] = []
    at = start
    while at < end:
        answer = raw.fetch(topic, at)
        assert answer.error_code == 0, (topic, at, answer.error_code)
        batches = [one for one in read_batches(bytes(answer.records)) or [] if "cut_off_bytes" not in one]
        assert batches, (topic, at)
        for one in batches:
            records += [found for found in records_of(one) if found.offset >= at]
        at = batches[-1]["base_offset"] + batches[-1]["last_offset_delta"] + 1
    return Served(start, end, records)


def records_of(one: dict[str, object]) -> list[Record]:
    """The records of a batch that `read_batches` read."""
    stamped = one["attributes"] & 8  # type: ignore[operator]
    return [
        Record(
            one["base_offset"] + found["offset_delta"],
            one["max_timestamp"] if stamped else found["timestamp"],
            found["key"],
            found["value"],
            tuple((name.decode(), value) for name, value in found["headers"]),
        )
        for found in one["records"]  # type: ignore[attr-defined]
    ]
