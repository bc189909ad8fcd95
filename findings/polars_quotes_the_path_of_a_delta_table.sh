#!/usr/bin/env bash
# What: `polars.scan_delta` and `read_delta` of a table on a local disk whose path has a blank or a letter outside of
#   ASCII raise FileNotFoundError: they look for the files below the path in percent-encoding ("with%20blank"). deltalake
#   reads and writes the same table by the same path, also if Polars is given its `DeltaTable`.
# Guess: a path that `open` takes works, or is refused with a sentence.
# Seen: polars 2.1.0, deltalake 1.6.6, pyarrow 26.0.1, Python 3.11, 2026-11-29: 2 rows by deltalake, none by Polars.
# Source: the documentation of `scan_delta` takes a path or URI to the root of the table, and names no such limit. Met when
#   a load's table was in a folder with a blank in its name.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet polars==2.1.0 deltalake==1.6.6 pyarrow==26.0.1
cat >paths.py <<'PYTHON'
import sys
from pathlib import Path

import polars
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def seen(name):
    """The rows that deltalake and Polars find in a table of this name."""
    path = str(Path(sys.argv[1]) / name)
    write_deltalake(path, pa.table({"a": [1, 2]}))
    found = [DeltaTable(path).to_pyarrow_table().num_rows]
    for source in (path, DeltaTable(path)):
        try:
            found.append(polars.scan_delta(source).collect().height)
        except FileNotFoundError as error:
            found.append("%" in str(error))
    return found


answers = {name: seen(name) for name in ("plain", "with blank", "letter-ö")}
for name, found in answers.items():
    print(f"{name}: deltalake {found[0]}; Polars by path {found[1]}, by DeltaTable {found[2]} (True: a name with % is not found)")
sys.exit(answers != {"plain": [2, 2, 2], "with blank": [2, True, True], "letter-ö": [2, True, True]})
PYTHON
venv/bin/python paths.py "$folder"
