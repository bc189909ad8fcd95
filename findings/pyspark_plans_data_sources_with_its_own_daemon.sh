#!/usr/bin/env bash
# What: with `spark.python.daemon.module` set, Spark runs the tasks of a Python data source by that daemon, and still plans
#   the same source (looks it up, creates it, asks for its partitions) by processes that `pyspark.daemon` forks.
# Guess: one session has one Python daemon: the module that is set stands for all of Spark's Python processes, so what it
#   prepares (imports, signals, paths) is there when the source's code is planned, too.
# Seen: PySpark 4.3.0, Java 17, 2026-11-28: the daemon of our own has started, and so has `pyspark.daemon`, once for each
#   step of the planning (its arguments name `pyspark.sql.worker.plan_data_source_read` and others).
# Source: met when a daemon that imports a source's modules once made tasks start quickly and planning not;
#   PythonPlannerRunner asks SparkEnv for a worker without the setting.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet pyspark==4.3.0 pyarrow==26.0.1
mkdir modules
cat >modules/our_daemon.py <<'PYTHON'
from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
PYTHON
cat >modules/sitecustomize.py <<'PYTHON'
import os
import sys

with open(os.environ["STARTED"], "a") as started:
    print(*sys.orig_argv[1:], file=started)
PYTHON
cat >source.py <<'PYTHON'
import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader


class Numbers(DataSource):
    def schema(self):
        return "n INT"

    def reader(self, schema):
        return Reader()


class Reader(DataSourceReader):
    def read(self, partition):
        yield (1,)


spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.python.daemon.module", "our_daemon")
    .getOrCreate()
)
spark.dataSource.register(Numbers)
rows = spark.read.format("Numbers").load().collect()
spark.stop()
with open(os.environ["STARTED"]) as started:
    lines = [line.split() for line in started]
ours = {line[-1] for line in lines if "our_daemon" in line}
others = {line[-1] for line in lines if "pyspark.daemon" in line}
print("rows:", [tuple(row) for row in rows])
print("by our_daemon:    ", *sorted(ours))
print("by pyspark.daemon:", *sorted(others))
sys.exit(not (ours == {"pyspark.worker"} and "pyspark.sql.worker.plan_data_source_read" in others))
PYTHON
export STARTED=$folder/started PYTHONPATH=$folder/modules PYSPARK_PYTHON=$folder/venv/bin/python
venv/bin/python source.py 2>spark.log || { code=$?; tail -n 5 spark.log >&2; exit "$code"; }
