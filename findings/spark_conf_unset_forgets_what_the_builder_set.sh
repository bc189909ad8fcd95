#!/usr/bin/env bash
# What: `spark.conf.unset(name)` of a session does not go back to the value that the session was built with
#   (`SparkSession.builder.config(name, value)`), but to Spark's own default, and a query then runs with that.
# Guess: what was set for a while is undone: the session has its own setting again.
# Seen: PySpark 4.3.0, Java 17, 2026-11-27: built with spark.sql.shuffle.partitions=2, set to 5, unset: 200, in the
#   setting and in the partitions of a grouped DataFrame. A stateful stream of a few rows then takes about ten times as long.
# Source: met in a test suite whose later tests were slow; `unset` is documented as resetting the configuration.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet pyspark==4.3.0
cat >unset.py <<'PYTHON'
import sys

from pyspark.sql import SparkSession

NAME = "spark.sql.shuffle.partitions"
spark = (
    SparkSession.builder.master("local[1]")
    .config(NAME, "2")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.adaptive.enabled", "false")
    .getOrCreate()
)


def seen():
    """The setting, and the partitions of a shuffle that runs with it."""
    grouped = spark.range(0, 10, 1, 4).selectExpr("id % 3 AS rest").groupBy("rest").count()
    return spark.conf.get(NAME), grouped.rdd.getNumPartitions()


built = seen()
spark.conf.set(NAME, "5")
changed = seen()
spark.conf.unset(NAME)
unset = seen()
spark.stop()
print("built with 2:", *built)
print("set to 5:    ", *changed)
print("unset:       ", *unset)
sys.exit((built, changed, unset) != (("2", 2), ("5", 5), ("200", 200)))
PYTHON
venv/bin/python unset.py 2>spark.log || { code=$?; tail -n 5 spark.log >&2; exit "$code"; }
