"""A stream written to a topic: each record once, whatever is killed meanwhile."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import moldau
from harness.patience import wait_until
from harness.spark_processes import is_of_daemon
from harness.tiers import sized
from moldau.client.fetching import LATEST, list_offsets
from moldau.names import TopicPartition
from moldau.pipeline.session import python_path
from moldau.pipeline.sink.markers import TaskOfQuery, committed
from moldau.pipeline.sink.options import PREFIX, read_sink_options
from moldau.pipeline.sink.stream import StreamWriter
from moldau.pipeline.sink.writing import BatchDivided, WrittenRows, write_task
from tests.pipeline.sink.test_writing import COLUMNS, expected, options, rows, values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., str]
RECORDS = sized(6_000, 6_000, 20_000)
OF_A_BATCH = "2000"
DRIVERS_KILLED = sized(1, 1, 3)
START = """
import sys
from pathlib import Path
from moldau.pipeline.session import start_session

bootstrap, source, target, folder, records = sys.argv[1:]
spark = start_session("copy", "local[2]", Path(folder, "spark"))
"""
COPY = """
from pathlib import Path
from moldau.pipeline.streams import run_to_end

options = {"bootstrapServers": bootstrap, "subscribe": source, "startingOffsets": "earliest"}
stream = spark.readStream.format("moldau").options(**options, maxOffsetsPerTrigger=records, minPartitions=3).load()
writer = stream.select("key", "value").writeStream.format("moldau").options(bootstrapServers=bootstrap, topic=target)
writer = writer.option("checkpointLocation", str(Path(folder, "checkpoint"))).trigger(availableNow=True)
run_to_end(lambda _: writer.start())
"""


class Copy:
    """A process that copies a topic in micro-batches, in a process group of its own."""

    def __init__(self, bootstrap: str, source: str, target: str, folder: Path):
        arguments = [bootstrap, source, target, str(folder), OF_A_BATCH]
        with (folder / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START + COPY, *arguments],
                start_new_session=True,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": python_path()},
            )

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def workers(self) -> list[int]:
        """The Python workers of its queries: children of daemons in its session, not the daemons themselves."""
        daemons, found = set(), []
        for entry in Path("/proc").iterdir():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if not entry.name.isdecimal() or int(stat[3]) != self.process.pid or not is_of_daemon(command):
                continue
            daemons.add(int(entry.name))
            found.append((int(entry.name), int(stat[1])))
        return [pid for pid, parent in found if parent in daemons]


@pytest.fixture
def copies() -> Iterator[list[Copy]]:
    started: list[Copy] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.kill()


def written(bootstrap: str, topic: str) -> int:
    """The records in the log, committed or not."""
    return sum(list_offsets(bootstrap, {TopicPartition(topic, n): LATEST for n in range(2)}).values())


@pytest.mark.check
@pytest.mark.own_jvm("the driver is killed")
@pytest.mark.timeout(600)
def test_a_stream_whose_driver_and_workers_are_killed_writes_each_record_once(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, tmp_path: Path, copies: list[Copy]
) -> None:
    """What the last driver has left goes on in the session of all tests."""
    source, target = new_topic(2), new_topic(2)
    with moldau.Producer(bootstrap) as producer:
        producer.send_many(source, [f"v{n}" for n in range(RECORDS)], [f"k{n}" for n in range(RECORDS)])

    def start() -> Copy:
        copies.append(Copy(bootstrap, source, target, tmp_path))
        return copies[-1]

    def go_on(copy: Copy, share: float) -> None:
        goal = written(bootstrap, target) + share * RECORDS
        assert wait_until(lambda: copy.process.poll() is not None or written(bootstrap, target) >= goal, 200, 0.01)

    copy = start()
    go_on(copy, 0.15)
    assert wait_until(copy.workers, 200)
    for pid in copy.workers():
        os.kill(pid, signal.SIGKILL)
    for number in range(DRIVERS_KILLED):
        copy = start() if number else copy
        go_on(copy, 0.2)
        assert copy.process.poll() is None, (tmp_path / "errors").read_text()[-3000:]
        copy.kill()
    names = {"source": source, "target": target, "folder": str(tmp_path), "records": OF_A_BATCH}
    exec(COPY, {"spark": spark, "bootstrap": bootstrap, **names})
    assert values(bootstrap, target) == expected(RECORDS)
    query = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    with moldau.Admin(bootstrap) as admin:
        marker = committed(admin, TaskOfQuery(PREFIX, query, 0))
    assert marker is not None and marker.run, "Spark tells tasks which run of the query they are of"


def writer_of(bootstrap: str, topic: str) -> StreamWriter:
    from pyspark.sql import types

    schema = types.StructType([types.StructField(name, types.StringType()) for name in COLUMNS])
    return StreamWriter(read_sink_options({"bootstrapServers": bootstrap, "topic": topic}), schema)


def test_a_replay_that_has_fewer_tasks_is_refused(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    sink = options(bootstrap, topic)
    tasks = [TaskOfQuery("test", topic, number) for number in range(3)]
    before = [write_task(sink, COLUMNS, task, 4, [rows(task.number * 10, 10)]) for task in tasks]
    writer = writer_of(bootstrap, topic)
    writer.commit(before, 4)
    same = [write_task(sink, COLUMNS, task, 4, [rows(task.number * 10, 10)]) for task in tasks]
    writer.commit(same, 4)
    with pytest.raises(BatchDivided, match="Task 2 had committed batch 4 with 10 rows"):
        writer.commit(same[:2], 4)
    empty = write_task(sink, COLUMNS, tasks[1], 4, [])
    assert isinstance(empty, WrittenRows) and empty.marker.rows == 0
    with pytest.raises(BatchDivided, match="Task 1 had committed batch 4"):
        writer.commit([same[0], empty, same[2]], 4)


def test_rows_that_only_other_tasks_had_committed_are_noticed_in_the_first_batch_of_a_run(
    bootstrap: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    sink, writer = options(bootstrap, topic), writer_of(bootstrap, topic)

    def write(number: int, batch: int, run: str) -> WrittenRows:
        return write_task(sink, COLUMNS, TaskOfQuery("test", topic, number), batch, [rows(number * 10, 10)], run)

    writer.commit([write(0, 3, "first")], 3)
    write(4, 4, "first")  # the query is killed before its other tasks have committed
    again = [write(0, 4, "second"), write(1, 4, "second")]
    assert not any(one.is_replay for one in again)
    with pytest.raises(BatchDivided, match="Task 4 had committed batch 4 with 10 rows, and its replay has none"):
        writer.commit(again, 4)
    monkeypatch.setattr("moldau.pipeline.sink.stream.check_division", None)
    writer.commit([write(0, 5, "second"), write(2, 5, "second")], 5)  # a later batch of a run asks nothing


class Query:
    """A query of two batches with three tasks each, as Spark runs it; its checkpoint knows the finished batches."""

    def __init__(self, bootstrap: str, topic: str):
        self._sink, self._writer, self._topic = options(bootstrap, topic), writer_of(bootstrap, topic), topic
        self._finished = self._runs = 0

    def run(self, steps_max: int | None = None) -> None:
        """Run to the end, or until it is killed after this number of steps."""
        self._runs += 1
        for _ in islice(self._steps(), steps_max):
            pass

    def _steps(self) -> Iterator[str]:
        while self._finished < 2:
            batch, written = self._finished, []
            for number in range(3):
                task, given = TaskOfQuery("test", self._topic, number), [rows(30 * batch + 10 * number, 10)]
                written.append(write_task(self._sink, COLUMNS, task, batch, given, f"run {self._runs}"))
                yield "a task has committed"
            self._writer.commit(written, batch)
            yield "the sink has committed"
            self._finished += 1
            yield "the commit log has the batch"


@pytest.mark.check
@pytest.mark.parametrize("steps", range(1, 11))
def test_a_query_that_is_killed_after_any_step_writes_each_row_once(
    bootstrap: str, new_topic: NewTopic, steps: int
) -> None:
    topic = new_topic()
    query = Query(bootstrap, topic)
    query.run(steps)
    query.run(1)
    query.run()
    assert values(bootstrap, topic) == expected(60)


@pytest.mark.timeout(240)
def test_a_frame_is_written_with_keys_headers_and_times(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic
) -> None:
    source, target = new_topic(3), new_topic(3)
    with moldau.Producer(bootstrap) as producer:
        for n in range(30):
            producer.send(source, f"v{n}", f"k{n}", headers=[("h", b"%d" % n)], timestamp_ms=1_000 + n)
    frame = spark.read.format("moldau").options(bootstrapServers=bootstrap, subscribe=source).load()
    to = {"kafka.bootstrap.servers": bootstrap, "topic": target}
    frame.drop("partition").write.format("moldau").options(**to).mode("append").save()
    columns = ["key", "value", "timestamp", "headers"]
    one, other = (
        moldau.read_table(topic, bootstrap).sort_by("timestamp").select(["partition", *columns])
        for topic in (source, target)
    )
    assert one.equals(other), "keys go to the partitions that they have in Java"
    with moldau.Admin(bootstrap) as admin:
        groups = [group.group_id for group in admin.list_groups()]
    assert not [group for group in groups if group.startswith("moldau-spark-job-")], "the job's markers are gone"
    with pytest.raises(Exception, match="column value as string or binary, not bigint") as raised:
        frame.selectExpr("offset as value").write.format("moldau").options(**to).mode("append").save()
    assert "Traceback" not in str(raised.value)
    with pytest.raises(Exception, match="A topic cannot be overwritten"):
        frame.select("value").write.format("moldau").options(**to).mode("overwrite").save()
