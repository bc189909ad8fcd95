"""What is in the internal topics: Kafka's decoders read what we write there, and ours read Kafka's as Kafka's do."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from harness.commands import moldau
from harness.logs import NOW_MS, append, open_log
from moldau.protocol.internal import TransactionLogKey, TransactionLogValue, TransactionPartitions
from moldau.protocol.schema import writer
from moldau.protocol.stored import TRANSACTION_STATES
from moldau.records.batch import Row
from tests.agreement import filling
from tests.agreement.apache import Written
from tests.agreement.dumping import DumpTool
from tests.agreement.standing import InVirtualTime

DECODERS = {"__consumer_offsets": "--offsets-decoder", "__transaction_state": "--transaction-log-decoder"}
CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


def snake(value: Any) -> Any:
    """With the names of fields as we write them."""
    if isinstance(value, dict):
        return {CAMEL.sub("_", name).lower(): snake(item) for name, item in value.items()}
    return [snake(item) for item in value] if isinstance(value, list) else value


def kafkas(tool: DumpTool, logs: list[Path], topic: str) -> list[tuple[int, dict[str, Any], dict[str, Any] | None]]:
    """(offset, key, value) of every record that is no marker."""
    dump = tool.dump(logs, DECODERS[topic])
    assert dump.complaints == []
    return [
        (
            int(record["offset"]),
            snake(json.loads(record["key"])["data"]),
            None if record["payload"] == "<DELETE>" else snake(json.loads(record["payload"])["data"]),
        )
        for record in dump.records()
        if "endTxnMarker" not in record
    ]


@pytest.mark.parametrize("topic", DECODERS)
def test_we_read_kafkas_internal_topics_as_kafka_does(written: Written, topic: str, tool: DumpTool) -> None:
    logs = sorted(written.clean.glob(f"{topic}-*/*.log"))
    said = moldau("log", "dump", "--records", "--json", *logs)
    assert said.returncode == 0, said.stderr
    ours = [document for document in map(json.loads, said.stdout.splitlines()) if "decoded" in document]
    theirs = kafkas(tool, logs, topic)
    assert [document["offset"] for document in ours] == [offset for offset, _, _ in theirs]
    for document, (_, key, value) in zip(ours, theirs, strict=True):
        decoded = document["decoded"]
        assert key.items() <= decoded.items()
        if value is None:
            assert decoded["value"] is None
            continue
        if "transaction_status" in value:
            value["transaction_status"] = TRANSACTION_STATES[value["transaction_status"]]
        assert value.items() <= decoded["value"].items()
    assert len(theirs) > 5


def test_kafka_reads_the_groups_that_we_keep(tool: DumpTool, tmp_path: Path) -> None:
    broker = InVirtualTime({"offsets.topic.num.partitions": "1"})
    try:
        broker.start()
        with broker.connect() as raw:
            raw.create_topic("codecs")
            member = filling.become_member(raw, "members")
            filling.commit(raw, "readers", "codecs", 12345678901)
        broker.stop()
        data = broker.copy(tmp_path / "data")
    finally:
        broker.close()
    found = kafkas(tool, sorted(data.glob("__consumer_offsets-0/*.log")), "__consumer_offsets")
    offsets = {key["group"]: value for _, key, value in found if "topic" in key and value is not None}
    groups = [value for _, key, value in found if "topic" not in key and value is not None]
    assert offsets["readers"]["offset"] == 12345678901
    assert offsets["readers"]["metadata"] == "noted"
    stable = next(group for group in groups if group["members"])
    assert (stable["protocol_type"], stable["protocol"], stable["generation"]) == ("consumer", "range", 1)
    assert [one["member_id"] for one in stable["members"]] == [member] == [stable["leader"]]


def test_kafka_reads_the_transactions_that_we_would_keep(tool: DumpTool, tmp_path: Path) -> None:
    partitions = [TransactionPartitions(topic="t", partition_ids=[0, 3]), TransactionPartitions(topic="u")]
    values = [
        TransactionLogValue(
            producer_id=7 + status,
            previous_producer_id=6,
            next_producer_id=9,
            producer_epoch=3,
            next_producer_epoch=4,
            transaction_timeout_ms=60_000,
            transaction_status=status,
            transaction_partitions=partitions if status else None,
            transaction_last_update_timestamp_ms=NOW_MS,
            transaction_start_timestamp_ms=NOW_MS - 5,
            client_transaction_version=2,
        )
        for status in range(len(TRANSACTION_STATES))
    ]
    log = open_log(tmp_path / "__transaction_state-0")
    for number, value in enumerate(values):
        key = encoded(TransactionLogKey(transactional_id=f"id-{number}"), 0, False)
        append(log, [Row(key, encoded(value, 1, True), NOW_MS)])
    append(log, [Row(encoded(TransactionLogKey(transactional_id="gone"), 0, False), None, NOW_MS)])
    log.close()
    found = kafkas(tool, sorted((tmp_path / "__transaction_state-0").glob("*.log")), "__transaction_state")
    assert [key["transactional_id"] for _, key, _ in found] == [*(f"id-{n}" for n in range(len(values))), "gone"]
    assert found[-1][2] is None
    for value, (_, _, read) in zip(values, found, strict=False):
        assert read is not None
        listed = read.pop("transaction_partitions")
        assert (listed is None) == (value.transaction_partitions is None)
        assert read == {name: getattr(value, name) for name in read}
        assert len(read) == 10


def encoded(message: Any, version: int, flexible: bool) -> bytes:
    """As it stands in a record: its version and its bytes."""
    out = bytearray(struct.pack(">h", version))
    writer(type(message), version, flexible)(out, message)
    return bytes(out)
