"""What one task of the sink writes, run again, fenced and replayed, against a broker and without Spark."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest
from pyspark.sql import types

import moldau
from moldau.client.administration.admin import Admin
from moldau.errors import KafkaError
from moldau.pipeline.options import OptionError
from moldau.pipeline.sink.batch import BatchWriter, TaskContext
from moldau.pipeline.sink.markers import BatchMarker, TaskOfQuery, committed
from moldau.pipeline.sink.options import SinkOptions, read_sink_options
from moldau.pipeline.sink.writing import BatchDivided, RowRefused, write_task

NewTopic = Callable[..., str]
COLUMNS = ("key", "value")


def rows(first: int, count: int) -> pyarrow.RecordBatch:
    numbers = range(first, first + count)
    return pyarrow.RecordBatch.from_pydict(
        {"key": [b"k%d" % n for n in numbers], "value": [f"v{n}" for n in numbers], "ignored": list(numbers)}
    )


def options(bootstrap: str, topic: str) -> SinkOptions:
    return read_sink_options({"bootstrapServers": bootstrap, "topic": topic})


def values(bootstrap: str, topic: str) -> list[str]:
    """The committed values."""
    found = moldau.read_table(topic, bootstrap)["value"].to_pylist()
    return sorted((value.decode() for value in found), key=lambda v: int(v[1:]))


def expected(count: int) -> list[str]:
    return [f"v{n}" for n in range(count)]


def job(bootstrap: str, topic: str, version: int) -> BatchWriter:
    names = {"txnAppId": f"nightly-{topic}", "txnVersion": str(version)}
    schema = types.StructType([types.StructField(name, types.StringType()) for name in COLUMNS])
    return BatchWriter(read_sink_options({"bootstrapServers": bootstrap, "topic": topic, **names}), schema, False)


def run_task(writer: BatchWriter, number: int, given: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(TaskContext, "get", lambda: SimpleNamespace(partitionId=lambda: number))
    return writer.write(iter(given))


def test_a_job_with_a_name_that_is_run_again_adds_what_it_had_not_written(
    bootstrap: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(2)
    given = {number: [rows(number * 10, 10)] for number in range(3)}
    first = job(bootstrap, topic, 7)
    with pytest.raises(ZeroDivisionError):
        run_task(first, 1, failing(rows(10, 200_000)), monkeypatch)
    first.abort([run_task(first, 0, given[0], monkeypatch), None, None])
    for _ in range(2):
        again = job(bootstrap, topic, 7)
        again.commit([run_task(again, number, given[number], monkeypatch) for number in given])
        assert values(bootstrap, topic) == expected(30)
    fewer = job(bootstrap, topic, 7)
    messages = [run_task(fewer, 0, given[0], monkeypatch), run_task(fewer, 1, [], monkeypatch)]
    with pytest.raises(BatchDivided, match="Task 1 had committed batch 7 with 10 rows"):
        fewer.commit(messages)
    with pytest.raises(BatchDivided, match="Start with a new checkpoint, or with a greater txnVersion"):
        run_task(job(bootstrap, topic, 6), 0, given[0], monkeypatch)
    following = job(bootstrap, topic, 8)
    following.commit([run_task(following, 0, [rows(30, 5)], monkeypatch)])
    assert values(bootstrap, topic) == expected(35)


def failing(*batches: Any) -> Iterator[Any]:
    yield from batches
    raise ZeroDivisionError


def test_a_task_that_failed_leaves_nothing_and_is_written_by_its_next_attempt(
    bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic(3)
    sink, task = options(bootstrap, topic), TaskOfQuery("test", topic, 0)
    with pytest.raises(ZeroDivisionError):
        write_task(sink, COLUMNS, task, 0, failing(rows(0, 200_000)))
    assert values(bootstrap, topic) == []
    written = write_task(sink, COLUMNS, task, 0, [rows(0, 10), rows(10, 0), rows(10, 10)])
    assert (written.marker.rows, written.is_replay) == (20, False)
    assert values(bootstrap, topic) == expected(20)


def test_a_replayed_batch_adds_nothing(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    sink, task = options(bootstrap, topic), TaskOfQuery("test", topic, 7)
    for batch in (0, 1):
        write_task(sink, COLUMNS, task, batch, [rows(batch * 10, 10)])
    again = write_task(sink, COLUMNS, task, 1, [rows(10, 4), rows(14, 6)])
    assert again.is_replay and again.marker == BatchMarker(1, 10, 60)
    assert values(bootstrap, topic) == expected(20)
    with Admin(bootstrap) as admin:
        assert committed(admin, task) == BatchMarker(1, 10, 60)
        assert committed(admin, task._replace(number=8)) is None


def test_a_batch_that_is_divided_in_another_way_is_refused(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    sink, task = options(bootstrap, topic), TaskOfQuery("test", topic, 0)
    write_task(sink, COLUMNS, task, 5, [rows(0, 10)])
    with pytest.raises(BatchDivided, match="committed batch 5 with 10 rows, and its replay has 5"):
        write_task(sink, COLUMNS, task, 5, [rows(0, 5)])
    with pytest.raises(BatchDivided, match="the checkpoint is older than what the topic holds"):
        write_task(sink, COLUMNS, task, 4, [rows(0, 5)])
    assert values(bootstrap, topic) == expected(10)


def test_a_task_that_lives_on_after_its_successor_is_fenced(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    sink, task = options(bootstrap, topic), TaskOfQuery("test", topic, 0)

    def overtaken() -> Iterator[Any]:
        yield rows(0, 200_000)  # enough to be sent before the rest is asked for
        write_task(sink, COLUMNS, task, 0, [rows(0, 10)])
        yield rows(200_000, 5)

    with pytest.raises(KafkaError):
        write_task(sink, COLUMNS, task, 0, overtaken())
    assert values(bootstrap, topic) == expected(10)


def test_rows_go_to_the_topic_they_name(bootstrap: str, new_topic: NewTopic) -> None:
    one, two = new_topic(), new_topic()
    sink = read_sink_options({"bootstrapServers": bootstrap})
    batch = pyarrow.RecordBatch.from_pydict({"value": ["v0", "v1", "v2"], "topic": [one, two, one]})
    write_task(sink, ("value", "topic"), TaskOfQuery("test", one, 0), 0, [batch])
    assert (values(bootstrap, one), values(bootstrap, two)) == (["v0", "v2"], ["v1"])
    nowhere = pyarrow.RecordBatch.from_pydict({"value": ["v0"], "topic": pyarrow.array([None], pyarrow.string())})
    with pytest.raises(OptionError, match="column topic is null"):
        write_task(sink, ("value", "topic"), TaskOfQuery("test", one, 1), 0, [nowhere])


def test_a_row_that_cannot_be_a_record_is_one_sentence(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    times = pyarrow.array([-5_000_000], pyarrow.timestamp("us", "UTC"))
    batch = pyarrow.RecordBatch.from_pydict({"value": ["v0"], "timestamp": times})
    with pytest.raises(RowRefused, match="the timestamp -5000 is before 1970"):
        write_task(options(bootstrap, topic), ("value", "timestamp"), TaskOfQuery("test", topic, 0), 0, [batch])
    assert values(bootstrap, topic) == []
