#!/usr/bin/env bash
# What: `DeltaTable.create_write_transaction` with a RemoveAction, for a file that `optimize.compact` has replaced since
#   the table was read, commits. If the transaction adds another file in its place (a rewrite of its rows), the table has
#   the rows twice: in that file and in the compacted one. The same beside a DELETE of the file's rows is refused, and a
#   `DeltaTable.delete` beside a compaction is refused, too. `CommitProperties(max_commit_retries=0)` refuses all.
# Guess: two commits that remove the same file conflict (ConcurrentDeleteDelete), whatever the other one was.
# Seen: deltalake 1.6.6, pyarrow 26.0.1, Python 3.11, 2026-11-28: rows [0, 1, 2] become [0, 0, 1, 2].
# Source: Delta's protocol leaves conflicts to its writers; Delta Lake's page on concurrency control lists compactions
#   beside updates of the same files as conflicts. Met when rejected records were rewritten beside `optimize`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet deltalake==1.6.6 pyarrow==26.0.1
cat >beside.py <<'PYTHON'
import os
import shutil
import sys
import time

import pyarrow as pa
import pyarrow.parquet as parquet
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction


def beside(what, retries):
    """The rows after a file was rewritten beside another operation, or how that was refused."""
    shutil.rmtree("t", ignore_errors=True)
    for number in range(3):
        write_deltalake("t", pa.table({"a": [number]}), mode="append")
    table = DeltaTable("t")
    listed = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    [old] = [one["path"] for one in listed if one["min.a"] == 0]
    parquet.write_table(pa.table({"a": [0]}), "t/again.parquet")
    now = time.time_ns() // 1_000_000
    size = os.path.getsize("t/again.parquet")
    actions = [RemoveAction(old, True, now, None, {}), AddAction("again.parquet", size, {}, now, True, '{"numRecords": 1}')]
    other = DeltaTable("t")
    other.optimize.compact() if what == "compact" else other.delete("a = 0")
    try:
        table.create_write_transaction(
            actions, "append", table.schema(), [], commit_properties=CommitProperties(max_commit_retries=retries)
        )
    except CommitFailedError:
        return "refused"
    return sorted(DeltaTable("t").to_pyarrow_table()["a"].to_pylist())


seen = [beside(*one) for one in (("delete", None), ("compact", None), ("compact", 0))]
print(f"beside a delete: {seen[0]}; beside a compaction: {seen[1]}; without retries: {seen[2]}")
sys.exit(seen != ["refused", [0, 0, 1, 2], "refused"])
PYTHON
venv/bin/python beside.py
