from pathlib import Path
from typing import Any

import pytest

from harness.logs import NOW_MS, names, rows
from moldau.files.inspection.decoding import offsets, transactions
from moldau.files.inspection.documents import documents
from moldau.records.batch import encode_batch
from moldau.runtime import RealDisk
from tests.files.inspection.filled import BATCH_RECORDS, BATCHES, FLIGHTS, RECORDS, fill
from tests.records.old_messages import message, wrapper


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled")
    fill(path)
    return path


def found(path: Path, kind: str, *, with_records: bool = False) -> list[dict[str, Any]]:
    shown = list(documents(RealDisk(), path, with_records=with_records))
    assert shown[0] == {"type": "file", "path": str(path), "kind": shown[0]["kind"], "size": path.stat().st_size}
    return [document for document in shown if document["type"] == kind]


def test_batches_and_their_records_are_all_there_in_order(folder: Path) -> None:
    logs = [folder / "flights-0" / name for name in names(folder / "flights-0", ".log")]
    assert len(logs) > 2
    batches = [batch for path in logs for batch in found(path, "batch")]
    assert [(batch["base_offset"], batch["last_offset"]) for batch in batches] == [
        (first, first + BATCH_RECORDS - 1) for first in range(0, RECORDS, BATCH_RECORDS)
    ]
    assert [batch["codec"] for batch in batches[:5]] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert batches[1]["producer_id"] == 70 and batches[1]["last_sequence"] == 9 and batches[0]["producer_id"] == -1
    assert {batch["leader_epoch"] for batch in batches} == {0, 3} and all(batch["valid"] for batch in batches)
    records = [record for path in logs for record in found(path, "record", with_records=True)]
    assert [record["offset"] for record in records] == list(range(RECORDS))
    assert records[0] == {
        "type": "record",
        "offset": 0,
        "timestamp_ms": NOW_MS,
        "key": None,
        "value": b"\xff\x00",
        "headers": [("name", b"\xfe"), ("none", None)],
    }


def test_index_entries_name_the_batches_that_are_there(folder: Path) -> None:
    log = folder / "flights-0" / names(folder / "flights-0", ".log")[1]
    places = {batch["position"]: batch for batch in found(log, "batch")}
    entries = found(log.with_suffix(".index"), "offset_index_entry")
    assert len(entries) > 3
    assert all(places[entry["position"]]["last_offset"] == entry["offset"] for entry in entries)
    times = {batch["last_offset"]: batch["max_timestamp_ms"] for batch in places.values()}
    entries = found(log.with_suffix(".timeindex"), "time_index_entry")
    assert entries and all(times[entry["offset"]] == entry["timestamp_ms"] for entry in entries)


def test_transactions_are_shown_where_they_ended_and_in_the_index(folder: Path) -> None:
    logs = [folder / "bookings-0" / name for name in names(folder / "bookings-0", ".log")]
    records = [record for path in logs for record in found(path, "record", with_records=True)]
    markers = [record for record in records if "control" in record]
    assert {marker["control"]["type"] for marker in markers} == {"abort", "commit"}
    assert all(marker["control"]["coordinator_epoch"] == 4 for marker in markers)
    indexes = [folder / "bookings-0" / name for name in names(folder / "bookings-0", ".txnindex")]
    aborted = [entry["last_offset"] for path in indexes for entry in found(path, "aborted_transaction")]
    assert aborted == [marker["offset"] for marker in markers if marker["control"]["type"] == "abort"]


def test_small_files_say_what_they_hold(folder: Path) -> None:
    partition = folder / str(FLIGHTS)
    assert found(partition / "leader-epoch-checkpoint", "leader_epoch") == [
        {"type": "leader_epoch", "epoch": 0, "start_offset": 0},
        {"type": "leader_epoch", "epoch": 3, "start_offset": RECORDS // 2},
    ]
    assert found(partition / "partition.metadata", "topic_id")[0]["topic_id"] == "AAAAAAAAAAAAAAAAAAAAAQ"
    snapshot = partition / names(partition, ".snapshot")[-1]
    [producer] = found(snapshot, "producer")
    assert (producer["producer_id"], producer["producer_epoch"]) == (70, 1)
    assert producer["last_sequence"] == BATCHES // 2 * BATCH_RECORDS - 1
    points = found(folder / "recovery-point-offset-checkpoint", "partition_offset")
    assert {"type": "partition_offset", "topic": "flights", "partition": 0, "offset": RECORDS} in points
    properties = {entry["name"]: entry["value"] for entry in found(folder / "meta.properties", "property")}
    assert properties["cluster.id"] == "the-cluster"
    assert found(folder / ".kafka_cleanshutdown", "clean_stop")[0]["version"] == 0


def test_an_index_with_room_is_shown_up_to_its_zeros(tmp_path: Path) -> None:
    fill(tmp_path, clean=False)
    log = tmp_path / "flights-0" / names(tmp_path / "flights-0", ".log")[-1]
    assert log.with_suffix(".index").stat().st_size > 1_000_000
    assert len(found(log.with_suffix(".index"), "offset_index_entry")) < 100
    [note] = found(log.with_suffix(".index"), "note")
    assert "room for more entries" in note["message"]


def test_what_cannot_be_read_is_a_problem_and_what_is_before_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    first, second = encode_batch(rows(3)), encode_batch(rows(2), base_offset=3)
    second[-1] ^= 1
    path.write_bytes(bytes(first + second + first[:30]))
    assert [batch["valid"] for batch in found(path, "batch")] == [True, False]
    assert len(found(path, "record", with_records=True)) == 3
    problems = found(path, "problem")
    assert [problem["position"] for problem in problems] == [len(first), len(first) + len(second)]
    assert "checksum" in problems[0]["message"] and "cut off" in problems[1]["message"]
    (tmp_path / "surprise").write_bytes(b"")
    [problem] = documents(RealDisk(), tmp_path / "surprise")
    assert problem["type"] == "problem"


def test_old_messages_are_shown_with_their_records(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    inner = [(b"k", b"1"), (None, b"2")]
    old = [message(at, key, value, magic=1, timestamp=50) for at, (key, value) in enumerate(inner)]
    wrapped = wrapper(7, *old, magic=1)
    path.write_bytes(message(5, b"a", b"b") + wrapped)
    assert [(batch["magic"], batch["last_offset"]) for batch in found(path, "batch")] == [(0, 5), (1, 7)]
    records = found(path, "record", with_records=True)
    assert [(record["offset"], record["value"]) for record in records] == [(5, b"b"), (6, b"1"), (7, b"2")]


def test_records_of_internal_topics_say_what_they_are() -> None:
    key = bytes.fromhex("0001 0005") + b"group" + bytes.fromhex("0002") + b"to" + bytes.fromhex("00000003")
    value = bytes.fromhex("0003 0000000000000011 00000004 0002") + b"me" + bytes.fromhex("0000000000000005")
    said = offsets(key, value)
    assert (said["type"], said["group"], said["topic"], said["partition"]) == ("offset", "group", "to", 3)
    assert (said["value"]["offset"], said["value"]["leader_epoch"], said["value"]["metadata"]) == (17, 4, "me")
    assert offsets(key, None)["value"] is None
    key = bytes.fromhex("0000 0002") + b"id"
    value = (
        bytes.fromhex("0000 0000000000000009 0001 0000ea60 01 00000001 0001")
        + b"t"
        + bytes.fromhex("00000001 00000002")
    )
    said = transactions(key, value + bytes.fromhex("0000000000000007 0000000000000006"))
    assert (said["type"], said["transactional_id"]) == ("transaction", "id")
    assert said["value"]["transaction_status"] == "Ongoing" and said["value"]["producer_id"] == 9
    assert said["value"]["transaction_partitions"] == [{"topic": "t", "partition_ids": [2]}]
    assert offsets(b"\x00\x63", b"") == {"type": "unknown"}
    assert offsets(b"\x00", None)["type"] == offsets(b"\x00\x02\x00\x09g", None)["type"] == "unreadable"
