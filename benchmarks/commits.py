"""The processor time of a commit to a Delta table while a day of commits goes on: flat, because a load holds its table
open and compacts it.

usage: python -m benchmarks.commits [--commits 1440] [--steps 6] [--reopen] [--no-compaction]

A commit adds one file of `--rows` records and moves one offset, as a small load does. `--reopen` opens the table for
each commit, as a load each minute from cron does; `--no-compaction` shows what it costs to leave the small files.
Writing the data files is not counted; compactions are, in a column of their own.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet

from moldau.names import TopicPartition
from moldau.pipeline.tables.columns import in_files, names_of_partitions, of_table
from moldau.pipeline.tables.data_file import Bounds, DataFile
from moldau.pipeline.tables.maintenance import compact
from moldau.pipeline.tables.small_files import compaction_target
from moldau.pipeline.tables.storage import Location, location
from moldau.pipeline.tables.table import Table

TP = TopicPartition("rows", 0)
DAY = "2026-11-22"
TIME_US = 1_795_305_600_000_000


def write(folder: Path, start: int, rows: int) -> DataFile:
    """A data file with records from `start` on."""
    path = f"_date={DAY}/part-00000-{start:012x}-0-0.parquet"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    filled = {"value": [b"x" * 100] * rows, "_partition": [0] * rows, "_offset": list(range(start, start + rows))}
    filled |= {"_timestamp": [TIME_US] * rows, "_timestamp_type": [0] * rows}
    arrays = [pyarrow.array(filled.get(field.name, [None] * rows), field.type) for field in in_files()]
    parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=in_files()), folder / path)
    bounds = {"_partition": Bounds(0, 0), "_offset": Bounds(start, start + rows - 1)}
    bounds["_timestamp"] = Bounds(TIME_US, TIME_US)
    size = (folder / path).stat().st_size
    return DataFile(path, size, time.time_ns() // 1_000_000, {"_date": DAY}, rows, bounds)


def opened(where: Location) -> Table:
    found = Table.open(where)
    assert found is not None
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="processor time of a commit during a day of commits")
    parser.add_argument("--commits", type=int, default=1440)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--reopen", action="store_true")
    parser.add_argument("--no-compaction", action="store_true")
    chosen = parser.parse_args(arguments)
    step = max(1, chosen.commits // chosen.steps)
    print(f"{'commits':>8} {'ms a commit':>12} {'compactions':>12} {'ms each':>8} {'files':>6}")
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as name:
        folder = Path(name, TP.topic)
        table = Table.create(location(folder), of_table(in_files(), "date"), names_of_partitions("date"))
        committing = compacting = 0.0
        compactions = 0
        for number in range(chosen.commits):
            start = number * chosen.rows
            file = write(folder, start, chosen.rows)
            began = time.process_time()
            if chosen.reopen:
                table = opened(location(folder))
            else:
                table.refresh()
            offsets = table.offsets([TP])
            assert table.removed(TP.topic, offsets) is None
            table.commit(f"{number:012x}", [file], offsets, {TP: start + chosen.rows})
            target = None
            if not chosen.no_compaction and (chosen.reopen or number % 25 == 24):
                target = compaction_target(table.files())
            committed = time.process_time()
            committing += committed - began
            if target is not None:
                compact(table.where, target)
                compacting += time.process_time() - committed
                compactions += 1
            if (number + 1) % step == 0:
                each = compacting / compactions * 1000 if compactions else 0.0
                files = len(opened(location(folder)).files())
                print(f"{number + 1:>8} {committing / step * 1000:>12.1f} {compactions:>12} {each:>8.0f} {files:>6}")
                committing = compacting = 0.0
                compactions = 0
        assert table.offsets([TP]) == {TP: chosen.commits * chosen.rows}
    return 0


if __name__ == "__main__":
    sys.exit(main())
