"""Our cleaner makes of a log that Kafka wrote what Kafka's cleaner made of it."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from moldau.runtime import Runtime
from tests.agreement.apache import COMPACTED, Written
from tests.differential.batches import read_batches
from tests.log.compacting import clean_offsets
from tests.log.making import HandClock, config, open_log

CODEC, HORIZON = 7, 64
SETTINGS: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "segment_ms": 1000,
    "index_interval_bytes": 100,
    "min_cleanable_dirty_ratio": 0.01,
}


def batches(partition: Path) -> dict[str, list[dict[str, Any]]]:
    """Of each segment, without what says when the cleaner ran, and how well it compresses."""
    found = {}
    for log in sorted(partition.glob("*.log")):
        found[log.name] = read_batches(log.read_bytes()) or []
        for batch in found[log.name]:
            if batch["attributes"] & HORIZON:
                del batch["base_timestamp"]
            if batch["attributes"] & CODEC:
                del batch["batch_length"]
    return found


@pytest.mark.parametrize("topic", COMPACTED)
def test_our_cleaner_does_what_kafkas_did(written: Written, topic: str, tmp_path: Path) -> None:
    theirs, ours = written.killed / f"{topic}-0", tmp_path / f"{topic}-0"
    shutil.copytree(written.dirty / f"{topic}-0", ours)
    assert batches(ours) != batches(theirs)
    runtime = Runtime(clock=HandClock(int(time.time() * 1000)))
    log = open_log(ours, runtime, clean=False, config=config(**SETTINGS))
    while clean_offsets(log)():
        pass
    log.close()
    assert batches(ours) == batches(theirs)
    aborted = {path.name: path.read_bytes() for path in theirs.glob("*.txnindex")}
    assert {path.name: path.read_bytes() for path in ours.glob("*.txnindex")} == aborted
