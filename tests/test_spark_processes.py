"""Which processes are Spark's daemons and workers."""

import pytest

from harness.spark_processes import is_of_daemon

WORKER = "/usr/bin/python -m moldau.pipeline.worker_daemon pyspark.worker"
PLANNER = "/usr/bin/python -m pyspark.daemon pyspark.sql.worker.plan_data_source_read"
JVM = "/usr/bin/java -cp jars/* org.apache.spark.deploy.SparkSubmit --conf {} pyspark-shell".format(
    "spark.python.daemon.module=moldau.pipeline.worker_daemon"
)


@pytest.mark.parametrize(
    ("command", "is_one"),
    [(WORKER, True), (PLANNER, True), (JVM, False), ("/usr/bin/python -m pyspark.worker", False), ("", False)],
)
def test_a_daemon_is_known_by_the_module_that_python_runs(command: str, is_one: bool) -> None:
    assert is_of_daemon(b"".join(word.encode() + b"\0" for word in command.split())) is is_one
