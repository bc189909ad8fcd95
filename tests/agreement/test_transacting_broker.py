"""A broker that had transactions of every kind, stopped or killed: Kafka's dump tool reads everything it left, our own
dump says the same, and nothing in it contradicts itself."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.brokers import Broker
from harness.commands import moldau, run
from harness.listening import Broker as Address
from moldau.protocol.stored import TRANSACTION_STATES
from tests.agreement.dumping import DEEP, DumpTool
from tests.agreement.test_decoders import DECODERS, kafkas
from tests.agreement.transacting import steps
from tests.differential.brokers import SETTINGS
from tests.differential.playing import play

STATES = {"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}


@dataclass(frozen=True)
class Left:
    folder: Path

    def logs(self, topic: str) -> list[Path]:
        return sorted(self.folder.glob(f"{topic}-*/*.log"))


@pytest.fixture(
    scope="module",
    params=[
        "in virtual time, stopped",
        "in virtual time, killed",
        pytest.param("as a process, stopped", marks=pytest.mark.long),
        pytest.param("as a process, killed", marks=pytest.mark.long),
    ],
)
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Left:
    how, end = request.param.split(", ")
    folder = tmp_path_factory.mktemp("broker")
    if how == "as a process":
        return left_by_process(folder, end)
    done = run("tests.agreement.transacting", folder / "data", end)
    assert done.returncode == 0, done.stderr
    return Left(folder / "data")


def left_by_process(folder: Path, end: str) -> Left:
    broker = Broker(folder, dict(SETTINGS))
    broker.start()
    try:
        host, _, port = broker.address.rpartition(":")
        outcomes = play(Address("Moldau", host.strip("[]"), int(port)), steps())
        if end == "stopped":
            broker.stop()
    finally:
        broker.kill()
    assert {outcome.kind for outcome in outcomes} == {"reply"}
    return Left(broker.data)


@pytest.mark.parametrize("topic", DECODERS)
def test_kafka_and_our_dump_read_the_same_in_what_coordinators_keep(left: Left, topic: str, tool: DumpTool) -> None:
    theirs = kafkas(tool, left.logs(topic), topic)
    said = moldau("log", "dump", "--records", "--json", *left.logs(topic))
    assert said.returncode == 0, said.stderr
    ours = [document for document in map(json.loads, said.stdout.splitlines()) if "decoded" in document]
    assert [document["offset"] for document in ours] == [offset for offset, _, _ in theirs]
    assert len(theirs) > 40
    states = set()
    for document, (_, key, value) in zip(ours, theirs, strict=True):
        decoded: dict[str, Any] = document["decoded"]
        assert key.items() <= decoded.items()
        if value is not None and "transaction_status" in value:
            value["transaction_status"] = TRANSACTION_STATES[value["transaction_status"]]
            states.add(value["transaction_status"])
        if value is None or "members" not in value:  # what members say of themselves here is nothing that can be read
            assert decoded["value"] is None if value is None else value.items() <= decoded["value"].items()
    assert states == (STATES if topic == "__transaction_state" else set())


def test_kafka_finds_every_abort_in_the_transaction_indexes(left: Left, tool: DumpTool) -> None:
    for topic in ("tx-lives", "tx-mixed", "__consumer_offsets"):
        logs = tool.dump(left.logs(topic), *DEEP)
        assert logs.complaints == []
        began: set[tuple[str, str]] = set()
        aborts: list[tuple[str, str, str]] = []
        for path, file in logs.files.items():
            where = path.parent.name
            markers = {record["offset"]: record["endTxnMarker"] for record in file.records if "endTxnMarker" in record}
            for batch in file.batches:
                who = (where, batch["producerId"])
                if batch["isControl"] == "false" and batch["isTransactional"] == "true":
                    began.add(who)
                elif batch["isControl"] == "true" and who in began:
                    began.remove(who)
                    if markers[batch["baseOffset"]] == "ABORT":
                        aborts.append((*who, batch["baseOffset"]))
        indexes = sorted(left.folder.glob(f"{topic}-*/*.txnindex"))
        indexed = tool.dump(indexes)
        assert indexed.complaints == []
        found = [
            (path.parent.name, entry["producerId"], entry["lastOffset"])
            for path, file in indexed.files.items()
            for entry in file.entries
        ]
        assert found == aborts
        said = moldau("log", "dump", "--json", *indexes)
        shown = [one for one in map(json.loads, said.stdout.splitlines()) if one["type"] == "aborted_transaction"]
        assert [(str(one["producer_id"]), str(one["last_offset"])) for one in shown] == [one[1:] for one in found]
        assert len(aborts) >= 3


def test_nothing_that_was_left_contradicts_itself(left: Left) -> None:
    said = moldau("log", "verify", left.folder)
    assert said.returncode == 0, said.stdout + said.stderr
