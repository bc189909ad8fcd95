"""Kafka's dump tool reads every file of a broker of ours: after a SIGKILL, after a recovery, after a clean stop.

What it finds is compared with what the broker served before, record for record. That the comparison can fail is shown
by copies with one thing wrong.
"""

import json

import pytest

from tests.agreement import filling
from tests.agreement.dumping import DEEP, Dump, DumpTool
from tests.agreement.filling import Record
from tests.agreement.leaving import OFFSETS, Left


@pytest.fixture(params=["killed", "recovered"])
def left(request: pytest.FixtureRequest) -> Left:
    found: Left = request.getfixturevalue(request.param)
    return found


def as_served(dump: Dump) -> list[Record]:
    """The tool's records in the shape of those that were served; of headers it only tells the names."""
    return [
        Record(
            int(found["offset"]),
            int(found.get("CreateTime") or found.get("LogAppendTime") or found["NoTimestampType"]),
            None if found["keySize"] == "-1" else bytes.fromhex(found.get("key", "")),
            None if found["valueSize"] == "-1" else bytes.fromhex(found.get("payload", "")),
            tuple((name, None) for name in found["headerKeys"][1:-1].split(",")) if found["headerKeys"] != "[]" else (),
        )
        for found in dump.records()
    ]


def without_header_values(records: list[Record]) -> list[Record]:
    return [one._replace(headers=tuple((name, None) for name, _ in one.headers)) for one in records]


@pytest.mark.parametrize("topic", filling.TOPICS)
def test_the_tool_finds_every_record_that_was_served(tool: DumpTool, left: Left, killed: Left, topic: str) -> None:
    dump = tool.dump(left.files(".log", topic=topic), *DEEP)
    served = left.served[topic]
    if left.data == killed.data and topic == "preallocated":
        assert len(dump.complaints) == 1  # the room behind the last batch is only given back by a stop
        assert "Found record size 0 smaller" in dump.complaints.pop()
    assert dump.complaints == []
    assert dump.gaps == []
    assert [one for one in as_served(dump) if one.offset >= served.start] == without_header_values(served.records)
    assert served.end == served.records[-1].offset + 1


def test_what_was_filled_is_of_every_kind(tool: DumpTool, recovered: Left) -> None:
    dump = tool.dump(recovered.files(".log", topic="codecs"), *DEEP)
    assert {batch["compresscodec"] for batch in dump.batches()} == set(filling.CODECS)
    for topic, codec in (("into-gzip", "gzip"), ("into-zstd", "zstd"), ("from-compressed", "none")):
        batches = tool.dump(recovered.files(".log", topic=topic), *DEEP).batches()
        assert {batch["compresscodec"] for batch in batches} == {codec}, topic
    assert all("LogAppendTime" in one for one in tool.dump(recovered.files(".log", topic="stamped"), *DEEP).records())
    assert len(recovered.files(".log", topic="segments")) > 10
    sequences = tool.dump(recovered.files(".log", topic="idempotent"), *DEEP).batches()
    assert {"2147483644"} <= {batch["baseSequence"] for batch in sequences}
    assert {"3"} <= {batch["lastSequence"] for batch in sequences}


def test_indexes_pass_kafkas_check_and_agree_with_the_log(tool: DumpTool, recovered: Left) -> None:
    indexes = recovered.files(".index", ".timeindex")
    checked = tool.dump(indexes, "--index-sanity-check")
    assert checked.complaints == []
    assert [path for path, file in checked.files.items() if not file.sound and path.stat().st_size] == []
    verified = tool.dump(indexes, "--verify-index-only")
    assert verified.complaints == []
    dumped = tool.dump(indexes)
    assert dumped.complaints == []
    for path, file in dumped.files.items():
        assert len(file.entries) == path.stat().st_size // (8 if path.suffix == ".index" else 12), path
    assert sum(len(file.entries) for file in dumped.files.values()) > 100


def test_snapshots_name_every_producer(tool: DumpTool, recovered: Left) -> None:
    snapshots = recovered.files(".snapshot", topic="idempotent")
    dump = tool.dump(snapshots)
    assert dump.complaints == []
    last = dump.files[snapshots[-1]].entries
    assert {(one["producerId"], one["producerEpoch"], one["lastSequence"]) for one in last} == {
        ("7000", "1", "1"),
        ("7001", "1", "1"),
        ("7100", "0", "4"),
        ("7101", "0", "4"),
    }
    assert len(snapshots) >= 2


def test_committed_offsets_are_decoded(tool: DumpTool, recovered: Left) -> None:
    dump = tool.dump(recovered.files(".log", topic=OFFSETS), "--offsets-decoder")
    assert dump.complaints == []
    assert len(dump.records()) == len(recovered.served[OFFSETS].records)
    found = [(json.loads(one["key"]), json.loads(one["payload"])) for one in dump.records()]
    committed = {key["data"]["topic"]: value["data"]["offset"] for key, value in found if key["type"] == "1"}
    assert committed == {"segments": 18, "codecs": 3}
    assert {(key["data"]["group"], value["data"]["metadata"]) for key, value in found} == {("readers", "noted")}


def test_kafkas_classes_read_checkpoints_and_marks(tool: DumpTool, recovered: Left) -> None:
    ends = {f"{topic}-0": served.end for topic, served in recovered.served.items()}
    read = {name: tool.read(recovered.data / name) for name in CHECKPOINTS}
    assert offsets(read["recovery-point-offset-checkpoint"]) == ends
    assert offsets(read["replication-offset-checkpoint"]) == ends
    assert offsets(read["log-start-offset-checkpoint"]) == {"shortened-0": recovered.served["shortened"].start}
    assert tool.read(recovered.data / ".kafka_cleanshutdown") != []
    assert len(tool.read(recovered.data / "meta.properties")[0].split()) == 2
    for topic in filling.TOPICS:
        lines = tool.read(recovered.folder(topic) / "leader-epoch-checkpoint")
        epochs = {int(epoch): int(start) for epoch, start in map(str.split, lines)}
        assert max(epochs) == 1
        for one in tool.dump(recovered.files(".log", topic=topic)).batches():
            if int(one["lastOffset"]) >= recovered.served[topic].start:
                assert int(one["lastOffset"]) >= epochs[int(one["partitionLeaderEpoch"])]
        version, topic_id = tool.read(recovered.folder(topic) / "partition.metadata")[0].split()
        assert version == "0"
        assert len(topic_id) == 22


CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint")


def offsets(lines: list[str]) -> dict[str, int]:
    return {partition: int(offset) for partition, offset in (line.split() for line in lines)}
