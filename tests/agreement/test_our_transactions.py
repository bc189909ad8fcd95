"""Kafka's dump tool reads what transactions leave in a partition: markers, aborted ones in the index, who is open."""

from pathlib import Path

import pytest

from harness.logs import open_log
from tests.agreement.dumping import DEEP, Dump, DumpTool
from tests.agreement.logs import COORDINATOR_EPOCH, SEGMENT, Ended, with_transactions


@pytest.fixture(params=["stopped", "recovered"])
def left(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[Ended]]:
    """A partition of many transactions in several segments, one of which is left open; how each ended."""
    folder = tmp_path / "t-0"
    log, ended = with_transactions(folder)
    if request.param == "stopped":
        log.close()
    else:
        log.flush()
        log.abandon()
        for path in [*folder.glob("*.txnindex"), *folder.glob("*.snapshot")]:
            path.unlink()
        with open(max(folder.glob("*.log")), "ab") as torn:
            torn.write(b"torn" * 20)
        open_log(folder, clean=False, config=SEGMENT).close()
    return folder, ended


def dumped(tool: DumpTool, folder: Path, suffix: str, *options: str) -> Dump:
    dump = tool.dump(sorted(folder.glob(f"*{suffix}")), *options)
    assert dump.complaints == []
    assert dump.gaps == []
    return dump


def test_every_marker_is_found_and_says_how_its_transaction_ended(
    tool: DumpTool, left: tuple[Path, list[Ended]]
) -> None:
    folder, ended = left
    dump = dumped(tool, folder, ".log", *DEEP)
    markers = [batch for batch in dump.batches() if batch["isControl"] == "true"]
    assert [(int(one["producerId"]), int(one["baseOffset"])) for one in markers] == [one[:2] for one in ended]
    assert {one["isTransactional"] for one in markers} == {"true"}
    said = {int(one["offset"]): one["endTxnMarker"] for one in dump.records() if "endTxnMarker" in one}
    assert said == {one.marker: "COMMIT" if one.commits else "ABORT" for one in ended}
    epochs = {one["coordinatorEpoch"] for one in dump.records() if "endTxnMarker" in one}
    assert epochs == {str(COORDINATOR_EPOCH)}
    assert len(dump.files) >= 3


def test_the_index_has_every_aborted_transaction(tool: DumpTool, left: tuple[Path, list[Ended]]) -> None:
    folder, ended = left
    dump = dumped(tool, folder, ".txnindex")
    found = [
        tuple(int(entry[name]) for name in ("producerId", "firstOffset", "lastOffset"))
        for file in dump.files.values()
        for entry in file.entries
    ]
    assert found == [(one.producer_id, one.first, one.marker) for one in ended if not one.commits]
    stable = [int(e["lastStableOffset"]) for file in dump.files.values() for e in file.entries]
    assert stable == sorted(stable)
    assert len(dump.files) > 1


def test_the_snapshot_knows_who_is_open(tool: DumpTool, left: tuple[Path, list[Ended]]) -> None:
    folder, _ = left
    dump = dumped(tool, folder, ".snapshot")
    last = {entry["producerId"]: entry for entry in list(dump.files.values())[-1].entries}
    assert sorted(last) == ["1", "2", "3"]
    assert last["1"]["currentTxnFirstOffset"] == "OptionalLong.empty"
    assert last["3"]["currentTxnFirstOffset"].startswith("OptionalLong[")
    assert {last[one]["coordinatorEpoch"] for one in ("1", "2")} == {str(COORDINATOR_EPOCH)}
    assert last["3"]["coordinatorEpoch"] == "-1"


def test_indexes_are_sound(tool: DumpTool, left: tuple[Path, list[Ended]]) -> None:
    for suffix in (".index", ".timeindex"):
        checked = dumped(tool, left[0], suffix, "--index-sanity-check")
        assert all(file.sound or not path.stat().st_size for path, file in checked.files.items())
        dumped(tool, left[0], suffix, "--verify-index-only")
