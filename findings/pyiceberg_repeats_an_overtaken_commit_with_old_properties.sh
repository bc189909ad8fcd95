#!/usr/bin/env bash
# What: a transaction of pyiceberg that appends rows and sets a table property, and that another commit has overtaken, is
#   repeated by pyiceberg 0.12: its rows are added to the newer snapshot, and the property becomes what the transaction
#   had computed from the older one. No error is raised.
# Guess: the second transaction fails, as in pyiceberg 0.11 (CommitFailedException), since it was prepared on a snapshot
#   and a property that are no longer the table's. A program that keeps its position (an offset) in a property, in the
#   same transaction as the rows, would thus never add the rows of one position twice.
# Seen: pyiceberg 0.12.0, SQLite catalog, Python 3.11, 2026-11-28: two programs read offset 0, both append the rows 0 to 2
#   and set the offset to 3: the table has 6 rows and offset 3. With commit.retry.num-retries=0 the second one fails.
# Source: https://py.iceberg.apache.org/configuration/ has the retries; that properties are not looked at again is not said.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet 'pyiceberg[sql-sqlite]==0.12.0' pyarrow==26.0.1
cat >overtaken.py <<'PYTHON'
import sys

import pyarrow
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

catalog = load_catalog("local", uri="sqlite:///catalog.db", warehouse="file://" + sys.argv[1])
catalog.create_namespace("lake")
ROWS = pyarrow.table({"number": [0, 1, 2]})


def race(name, properties):
    """Two programs that add the same rows if the offset is 0; the rows, the offset, and what the second one was told."""
    catalog.create_table(name, ROWS.schema, properties={"offset": "0", **properties})
    programs = [catalog.load_table(name) for _ in range(2)]
    assert all(table.properties["offset"] == "0" for table in programs)
    told = "success"
    for table in programs:
        try:
            with table.transaction() as transaction:
                transaction.append(ROWS)
                transaction.set_properties({"offset": "3"})
        except CommitFailedException:
            told = "CommitFailedException"
    table = catalog.load_table(name)
    return table.scan().to_arrow().num_rows, table.properties["offset"], told


default = race("lake.default", {})
without = race("lake.without_retries", {"commit.retry.num-retries": "0"})
print("as tables are made: rows, offset, second commit:", *default)
print("without retries:    rows, offset, second commit:", *without)
sys.exit((default, without) != ((6, "3", "success"), (3, "3", "CommitFailedException")))
PYTHON
venv/bin/python overtaken.py "$folder" 2>log || { code=$?; tail -n 5 log >&2; exit "$code"; }
