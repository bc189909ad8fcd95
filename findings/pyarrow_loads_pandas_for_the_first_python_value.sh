#!/usr/bin/env bash
# What: where pandas is installed, pyarrow imports it the first time that it turns any Python value into Arrow
#   (`pa.scalar(1)`, `pa.array([1])`), although nothing of pandas is given or asked for. `pa.Array.from_buffers`, casting,
#   slicing and making tables of arrays do not.
# Guess: pandas is imported by `to_pandas` and `from_pandas`, and by nobody else.
# Seen: pyarrow 26.0.1, pandas 3.1.1, Python 3.11, 2026-11-28: no module of pandas after a table is made
#   of buffers and sliced; 394 more modules after `pa.scalar(1)`, which takes longer than importing pyarrow.
# Source: met as two thirds of the first second of a process that reads columns; pyarrow asks whether a value is one of
#   pandas' before it converts it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet pyarrow==26.0.1 pandas==3.1.1
cat >first.py <<'PYTHON'
import sys
import time

began = time.process_time()
import pyarrow as pa

imported = time.process_time() - began
column = pa.Array.from_buffers(pa.int32(), 3, [None, pa.py_buffer(b"\1\0\0\0" * 3)]).cast(pa.int64())
rows = len(pa.Table.from_batches([pa.RecordBatch.from_arrays([column], names=["a"])]).slice(1))
before = "pandas" in sys.modules, len(sys.modules)
began = time.process_time()
pa.scalar(1)
took = time.process_time() - began
after = "pandas" in sys.modules, len(sys.modules)
print(f"import pyarrow: {imported:.2f} s of processor time; {rows} rows of a table sliced, pandas loaded: {before[0]}")
print(f"pa.scalar(1):   {took:.2f} s of processor time; pandas loaded: {after[0]}, {after[1] - before[1]} more modules")
sys.exit((before[0], after[0], after[1] - before[1] > 100) != (False, True, True))
PYTHON
venv/bin/python first.py
