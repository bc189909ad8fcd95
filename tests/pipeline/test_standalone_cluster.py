"""Load, audit and a windowed stream on a standalone Spark cluster whose executors are killed meanwhile."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow
import pytest

from harness.patience import stretched, wait_until
from moldau.client.producing.producer import Producer
from moldau.pipeline.session import python_path
from moldau.pipeline.tables.warehouse import Warehouse
from tests.pipeline.standalone import HERE, Cluster, running_cluster

NewTopic = Callable[..., str]
RECORDS = 400_000
USERS = 7
WINDOW_MS = 60_000
STREAM = """
import json
import sys
from pathlib import Path
from moldau.pipeline import streams
from moldau.pipeline.session import start_session

master, bootstrap, topic, folder, records = sys.argv[1:]
spark = start_session("windows", master, Path(folder, "spark"), spark__sql__shuffle__partitions="2")
rows = streams.records(spark, bootstrap, topic, maxOffsetsPerTrigger=records)
users = rows.selectExpr("CAST(key AS STRING) AS user", "timestamp AS at")
counts = streams.windowed_counts(users, "at", streams.tumbling("1 minute"), by="user", delay="1 hour")
writer = counts.writeStream.format("memory").queryName("counts").outputMode("complete").trigger(availableNow=True)
streams.run_to_end(lambda _: writer.option("checkpointLocation", str(Path(folder, "checkpoint"))).start())
found = spark.table("counts").selectExpr("unix_millis(window.start)", "user", "count").collect()
print(json.dumps([list(row) for row in found]))
spark.stop()
"""


def clicks() -> pyarrow.Table:
    """Records of seven users, two minutes of them."""
    numbers = range(RECORDS)
    return pyarrow.table(
        {
            "key": [b"u%d" % (n % USERS) for n in numbers],
            "value": [b"value-%08d" % n for n in numbers],
            "timestamp": pyarrow.array([n * 2 * WINDOW_MS // RECORDS for n in numbers], pyarrow.timestamp("ms", "UTC")),
        }
    )


def driver(arguments: Sequence[str]) -> "subprocess.Popen[str]":
    """A process with a Spark driver that the executors reach at 127.0.0.1."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": python_path(), **HERE},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(process: "subprocess.Popen[str]") -> str:
    try:
        out, err = process.communicate(timeout=stretched(200))
    finally:
        process.kill()
    assert process.returncode == 0, f"{out}\n{err[-3000:]}"
    return out


def killing_an_executor(cluster: Cluster, process: "subprocess.Popen[str]", ready: Callable[[], object]) -> str:
    """The output of a driver, one of whose executors is killed at work as soon as `ready` holds."""
    before = cluster.launched()
    assert wait_until(lambda: ready() or process.poll() is not None, 200)
    cluster.kill_busy_executor()
    out = finished(process)
    assert cluster.launched() > before + 2, "another executor took the place of the killed one"
    return out


@pytest.mark.long  # eleven JVMs, 80 s of processor time; and an executor has to be met at work
@pytest.mark.own_jvm("master, workers, executors and drivers are processes of their own")
@pytest.mark.timeout(600)
def test_load_audit_and_windows_are_exact_although_executors_are_killed(
    bootstrap: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic, reports = new_topic(2), new_topic()
    table, warehouse = clicks(), tmp_path / "warehouse"
    with Producer(bootstrap, audit_topic=reports) as producer:
        producer.send_table(topic, table)
    with running_cluster(tmp_path) as cluster:
        here = ["-b", bootstrap, "--warehouse", str(warehouse)]
        load = driver(
            ["-m", "moldau", "pipeline", "load", "--topics", topic, *here, "--master", cluster.master, "--json"]
        )
        said = json.loads(killing_an_executor(cluster, load, lambda: True))
        assert said["records"] == RECORDS
        stream = driver(["-c", STREAM, cluster.master, bootstrap, topic, str(tmp_path), str(RECORDS // 4)])
        counted = json.loads(killing_an_executor(cluster, stream, (tmp_path / "checkpoint" / "commits" / "0").exists))
    loaded = Warehouse(warehouse).table(topic)
    assert loaded is not None and sum(file.records for file in loaded.files()) == RECORDS
    options = ["--topics", topic, "--audit-topic", reports, *here]
    assert "complete" in finished(driver(["-m", "moldau", "pipeline", "audit", *options]))
    expected = Counter((n * 2 // RECORDS * WINDOW_MS, f"u{n % USERS}") for n in range(RECORDS))
    assert {(start, user): count for start, user, count in counted} == expected
