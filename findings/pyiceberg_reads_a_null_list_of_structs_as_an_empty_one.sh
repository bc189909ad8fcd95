#!/usr/bin/env bash
# What: pyiceberg returns an empty list where a Parquet file of a table has a list of structs that is null, and writes an
#   empty list where it is given a null one. Null lists of numbers and null maps stay null. A program that reads rows
#   with it and writes them back changes them, and nothing says so.
# Guess: null stays null, as in pyarrow, or at least all kinds of lists are treated alike.
# Seen: pyiceberg 0.12.0, pyarrow 26.0.1, SQLite catalog, Python 3.11, 2026-11-28: of a row with a null list of structs,
#   a null list of numbers and a null map, in a file that pyarrow wrote, a scan returns [], None and None; a file that
#   `append` wrote of the same row has [], None and None.
# Source: https://iceberg.apache.org/spec/ (optional fields may be null); the difference is not documented.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet 'pyiceberg[sql-sqlite]==0.12.0' pyarrow==26.0.1
cat >nulls.py <<'PYTHON'
import sys

import pyarrow
import pyarrow.parquet as parquet
from pyiceberg.catalog import load_catalog

catalog = load_catalog("local", uri="sqlite:///catalog.db", warehouse="file://" + sys.argv[1])
catalog.create_namespace("lake")
KINDS = {
    "structs": pyarrow.list_(pyarrow.struct([("a", pyarrow.int64())])),
    "numbers": pyarrow.list_(pyarrow.int64()),
    "map": pyarrow.map_(pyarrow.string(), pyarrow.int64()),
}
rows = pyarrow.table({name: pyarrow.array([None], kind) for name, kind in KINDS.items()})
parquet.write_table(rows, "rows.parquet")
added = catalog.create_table("lake.added", rows.schema)
added.add_files([sys.argv[1] + "/rows.parquet"])
appended = catalog.create_table("lake.appended", rows.schema)
appended.append(rows)
[path] = [task.file.file_path.removeprefix("file://") for task in appended.scan().plan_files()]
[given] = parquet.read_table("rows.parquet").to_pylist()
[scanned] = added.scan().to_arrow().to_pylist()
[written] = parquet.ParquetFile(path).read().to_pylist()
print("in a file by pyarrow:      ", given)
print("a scan of that file:       ", scanned)
print("in a file by pyiceberg:    ", written)
CHANGED = {"structs": [], "numbers": None, "map": None}
sys.exit((given, scanned, written) != (dict.fromkeys(KINDS), CHANGED, CHANGED))
PYTHON
venv/bin/python nulls.py "$folder" 2>log || { code=$?; tail -n 5 log >&2; exit "$code"; }
