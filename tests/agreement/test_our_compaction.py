"""Kafka's dump tool reads what our cleaner leaves: gaps, emptied batches, delete horizons, markers, rebuilt indexes."""

from itertools import pairwise
from pathlib import Path

import pytest

from harness.logs import HandClock, open_log, read_all
from moldau.log.log import Log
from moldau.runtime import Runtime
from tests.agreement.dumping import DEEP, Dump, DumpTool
from tests.agreement.logs import fill_compacted
from tests.log.compaction.compacting import compact, compacted_log, put

DELETE_RETENTION_MS = 1000
SETTINGS = {"delete_retention_ms": DELETE_RETENTION_MS, "segment_bytes": 2000}


@pytest.fixture(params=["once", "twice, its horizons past", "recovered"])
def compacted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Log, Path]:
    """A log that our cleaner compacted."""
    folder, clock = tmp_path / "t-0", HandClock()
    runtime = Runtime(clock=clock)
    log = compacted_log(folder, runtime=runtime, **SETTINGS)
    fill_compacted(log, 0)
    assert compact(log)
    if request.param != "once":
        clock.ms += 2 * DELETE_RETENTION_MS
        fill_compacted(log, 60)
        assert compact(log)
    put(log, ("last", "value"))
    if request.param == "recovered":
        log.flush()
        log.abandon()
        for path in [*folder.glob("*index"), *folder.glob("*.snapshot")]:
            path.unlink()
        log = open_log(folder, runtime, clean=False, config=log.config)
    log.close()
    return open_log(folder, runtime, config=log.config), folder


def dumped(tool: DumpTool, folder: Path, suffix: str, *options: str) -> Dump:
    dump = tool.dump(sorted(folder.glob(f"*{suffix}")), *options)
    assert dump.complaints == []
    return dump


def test_the_tool_finds_every_record_that_is_left(tool: DumpTool, compacted: tuple[Log, Path]) -> None:
    log, folder = compacted
    dump = dumped(tool, folder, ".log", *DEEP)
    found = [
        (int(one["offset"]), one.get("key"), one.get("payload", "") if one["valueSize"] != "-1" else None)
        for one in dump.records()
        if "endTxnMarker" not in one
    ]
    left = read_all(log)
    assert found == [(r.offset, (r.key or b"").hex(), None if r.value is None else r.value.hex()) for r in left]
    assert len(found) < 60
    assert found[-1][1] == b"last".hex()
    assert dump.gaps, "offsets stay as they are"


def test_horizons_are_where_tombstones_and_lonely_markers_are(tool: DumpTool, compacted: tuple[Log, Path]) -> None:
    _, folder = compacted
    dump = dumped(tool, folder, ".log", *DEEP)
    horizons = {
        batch["deleteHorizonMs"] for batch in dump.batches() if batch["deleteHorizonMs"] != "OptionalLong.empty"
    }
    assert horizons
    assert all(one.startswith("OptionalLong[") for one in horizons)
    tombstones = {int(one["offset"]) for one in dump.records() if one["valueSize"] == "-1"}
    assert tombstones
    for batch in dump.batches():
        if batch["deleteHorizonMs"] == "OptionalLong.empty":
            assert not tombstones & set(range(int(batch["baseOffset"]), int(batch["lastOffset"]) + 1))


def test_batches_are_in_order_and_producers_keep_their_last(tool: DumpTool, compacted: tuple[Log, Path]) -> None:
    _, folder = compacted
    batches = dumped(tool, folder, ".log", *DEEP).batches()
    ends = [(int(one["baseOffset"]), int(one["lastOffset"])) for one in batches]
    assert all(before[1] < after[0] <= after[1] for before, after in pairwise(ends))
    snapshots = dumped(tool, folder, ".snapshot")
    last = {one["producerId"]: one for one in list(snapshots.files.values())[-1].entries}
    of_70 = [batch for batch in batches if batch["producerId"] == "70"]
    assert of_70[-1]["lastSequence"] == last["70"]["lastSequence"]


def test_indexes_agree(tool: DumpTool, compacted: tuple[Log, Path]) -> None:
    _, folder = compacted
    for suffix in (".index", ".timeindex"):
        checked = dumped(tool, folder, suffix, "--index-sanity-check")
        assert all(file.sound or not path.stat().st_size for path, file in checked.files.items())
    dumped(tool, folder, ".index", "--verify-index-only")
    if list(folder.glob("*.txnindex")):
        dumped(tool, folder, ".txnindex")
    verified = tool.dump(sorted(folder.glob("*.timeindex")), "--verify-index-only")
    told = [line.rpartition("/")[2] for line in verified.complaints if not line.startswith("  Index timestamp:")]
    # of a segment whose only batch is empty the tool finds no time, in Kafka's own files as well
    hollow = {
        f"{path.stem}.timeindex" for path, file in dumped(tool, folder, ".log", *DEEP).files.items() if not file.records
    }
    assert set(told) <= hollow
