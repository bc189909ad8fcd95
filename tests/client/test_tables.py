"""Tables of pyarrow, pandas and others are sent as records, and lists of values."""

import asyncio
import datetime
import importlib.util
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.consuming.tables.table_polling import TablePolling
from moldau.client.fetching import LATEST, list_offsets, read_columns
from moldau.client.producing.partitioning import positive_hash
from moldau.client.producing.producer import AsyncProducer, Producer
from moldau.client.producing.serializers import to_json
from moldau.errors import ConfigError, KafkaError, NoSuchPartition
from moldau.names import TopicPartition

NAMES = ("key", "value", "timestamp", "headers")


def stored(bootstrap: str, topic: str, partition: int = 0) -> list[dict[str, Any]]:
    tp = TopicPartition(topic, partition)
    end = list_offsets(bootstrap, {tp: LATEST})[tp]
    return [row for columns in read_columns(bootstrap, *tp, 0, end) for row in columns.to_pylist()]


def values(bootstrap: str, topic: str, partition: int = 0) -> list[bytes | None]:
    return [row["value"] for row in stored(bootstrap, topic, partition)]


class OnlyTheInterface:
    """A table of another library: nothing but the PyCapsule interface."""

    def __init__(self, table: pa.Table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_rows_go_to_their_keys_partitions_and_keep_their_order(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=3, configs={"retention.ms": "-1"})
    rows = [(f"k{number % 37}", f"value {number}", number) for number in range(5_000)]
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(("key", "value", "timestamp"))})
    with Producer(bootstrap, column_batch_size=10_000, compression_type="lz4") as producer:
        sent = producer.send_table(topic, table)
        where = sent.result()
    assert len(sent) == sum(part.rows for part in where) == 5_000
    for partition in range(3):
        found = stored(bootstrap, topic, partition)
        assert [(r["key"].decode(), r["value"].decode(), round(r["timestamp"].timestamp() * 1000)) for r in found] == [
            row for row in rows if positive_hash(row[0].encode()) % 3 == partition
        ]
        offsets = [
            at for part in where if part.partition == partition for at in range(part.offset, part.offset + part.rows)
        ]
        assert offsets == list(range(len(found)))


def test_columns_are_taken_by_name_and_by_argument(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2, configs={"retention.ms": "-1"})
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    table = pa.table(
        {
            "who": pa.array(["a", None], pa.large_string()),
            "value": [b"1", None],
            "partition": [1, 1],
            "timestamp": pa.array([noon, noon], pa.timestamp("ns", tz="UTC")),
            "headers": [[{"key": "h", "value": b"x"}, {"key": "n", "value": None}], None],
        }
    )
    with Producer(bootstrap) as producer:
        producer.send_table(topic, table, key="who")
        producer.send_table(topic, table, value="who", headers=None, partition=0)
        producer.send_table(topic, table, key=["x", "y"], value=pa.array(["v", "w"]).dictionary_encode(), partition=1)
    first, second, third, fourth = ([row[name] for name in NAMES] for row in stored(bootstrap, topic, 1))
    pair = [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]
    assert first == [b"a", b"1", noon, pair]
    assert second == [None, None, noon, None]
    assert (third[:2], fourth[:2]) == ([b"x", b"v"], [b"y", b"w"])
    assert [row["headers"] for row in stored(bootstrap, topic, 0)] == [None, None]
    assert values(bootstrap, topic, 0) == [b"a", None]


def test_tables_of_pandas_and_of_every_library_with_the_arrow_interface_are_taken(bootstrap: str, topic: str) -> None:
    table = pa.table({"key": ["k"], "value": ["v"]})
    with Producer(bootstrap) as producer:
        for one in (pd.DataFrame({"key": ["k"], "value": ["v"]}), OnlyTheInterface(table), table.to_batches()[0],
                    table.to_reader(), {"key": ["k"], "value": ["v"]}):  # fmt: skip
            producer.send_table(topic, one).result()
    assert [(row["key"], row["value"]) for row in stored(bootstrap, topic)] == [(b"k", b"v")] * 5


def test_a_table_of_polars_keeps_its_text_bytes_times_and_headers(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2, configs={"retention.ms": "-1"})
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    rows = pl.DataFrame(
        {
            "key": ["short", None, "a key that is longer than twelve bytes", "short"],
            "value": [b"1", b"\xff\x00", None, b"4"],
            "partition": [0, 1, 0, 1],
            "timestamp": [noon, noon, None, noon],
            "headers": [[{"key": "h", "value": b"x"}], [], None, [{"key": "n", "value": None}]],
            "ignored": [1.5, 2.5, None, 0.0],
        },
        schema_overrides={"key": pl.String, "headers": pl.List(pl.Struct({"key": pl.String, "value": pl.Binary}))},
    )
    chunks = pl.concat([rows, rows.with_columns(pl.col("key").cast(pl.Categorical).cast(pl.String))], rechunk=False)
    with Producer(bootstrap) as producer:
        assert len(producer.send_table(topic, chunks)) == 8
        producer.send_table(topic, rows.select("value"), key=rows["key"], partition=0)
    found = [[row[name] for name in NAMES] for row in stored(bootstrap, topic, 1)]
    second = [None, b"\xff\x00", noon, None]
    fourth = [b"short", b"4", noon, [{"key": "n", "value": None}]]
    assert found == [second, fourth] * 2
    keys = [b"short", b"a key that is longer than twelve bytes"]
    zero = stored(bootstrap, topic, 0)
    assert [row["key"] for row in zero] == [*keys, *keys, keys[0], None, keys[1], keys[0]]
    assert zero[0]["headers"] == [{"key": "h", "value": b"x"}] and zero[1]["headers"] is None


def test_categories_of_polars_and_pandas_and_a_relation_of_duckdb_are_text(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        producer.send_table(topic, pl.DataFrame({"value": pl.Series(["a", "b"], dtype=pl.Categorical)})).result()
        producer.send_table(topic, pd.DataFrame({"value": pd.Series(["c", None], dtype="category")})).result()
        producer.send_table(topic, pd.DataFrame({"value": pd.Series(["d", None], dtype="string")})).result()
        producer.send_table(topic, duckdb.sql("select 'e' as value, 'k' as key")).result()
        with pytest.raises(TypeError, match="value"):
            producer.send_table(topic, pl.DataFrame({"value": [1.5]}))
    assert values(bootstrap, topic) == [b"a", b"b", b"c", None, b"d", None, b"e"]


def test_named_partitions_and_chosen_ones_live_in_one_table(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
    keys = [f"k{number}" for number in range(30)]
    table = pa.table({"key": keys, "value": keys, "partition": [2 if n % 2 else None for n in range(30)]})
    with Producer(bootstrap) as producer:
        producer.send_table(topic, table)
        with pytest.raises(NoSuchPartition, match="has no partition 3"):
            producer.send_table(topic, table, partition=3)
    for partition in range(3):
        assert values(bootstrap, topic, partition) == [
            key.encode() for n, key in enumerate(keys)
            if (2 if n % 2 else positive_hash(key.encode()) % 3) == partition
        ]  # fmt: skip


def test_the_partitioner_and_the_serializers_of_the_settings_hold_for_tables(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=3)
    table = pa.table({"key": ["", "a", "bb"], "value": [{"n": 1}, {"n": 2}, None]})
    with Producer(bootstrap, partitioner=lambda _, key, __: len(key or b""), value_serializer=to_json) as producer:
        producer.send_table(topic, table)
        producer.send_many(topic, [[1, 2], None], keys=["a", "a"])
    assert [values(bootstrap, topic, partition) for partition in range(3)] == [
        [b'{"n":1}'], [b'{"n":2}', b"[1,2]", None], [None],
    ]  # fmt: skip


def test_lists_of_values_and_keys_are_sent(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b"first")
        delivery = producer.send_many(topic, ["second", None, "fourth"])
        producer.send_many(topic, [b"fifth"], keys=[b"k"])
        producer.send(topic, b"sixth")
        assert delivery.result() == [(topic, 0, 1, 3)] and delivery.done and len(delivery) == 3
        assert len(producer.send_many(topic, [])) == 0
    found = stored(bootstrap, topic)
    assert [row["value"] for row in found] == [b"first", b"second", None, b"fourth", b"fifth", b"sixth"]
    assert [row["key"] for row in found] == [None] * 4 + [b"k", None]


@pytest.mark.parametrize(
    ("table", "arguments", "said"),
    [
        ({"a": [1]}, {}, "the table has no column 'value': say which one is .*; its columns are a"),
        ({"value": [1]}, {}, "the value column is int64, not binary or text"),
        ({"value": ["a"], "key": [1.5]}, {}, "the key column is double, not binary or text"),
        ({"value": ["a"]}, {"key": "who"}, "key='who': the table has no column of that name; its columns are value"),
        ({"value": ["a"]}, {"key": ["a", "b"]}, "key has 2 rows and the table 1"),
        ({"value": ["a"], "timestamp": ["noon"]}, {}, "the timestamp column is string, neither"),
        ({"value": ["a"], "timestamp": [-5]}, {}, "the timestamp -5 is before 1970"),
        ({"value": ["a"], "partition": ["0"]}, {}, "the partition column is string, not whole numbers"),
        ({"value": ["a"], "partition": [-1]}, {}, "partition=-1 is not between 0"),
        ({"value": ["a"], "headers": ["h"]}, {}, "the headers column is string, neither lists"),
        ({"value": ["a"], "headers": [[{"key": None, "value": b""}]]}, {}, "the name of a header is NoneType, not str"),
        ([1, 2], {}, "a table comes from pyarrow, pandas or Polars, .* list is not"),
        ({"value": ["a"]}, {"key": 5}, "key is int, neither a column's name nor an array"),
    ],
)
def test_a_wrong_table_is_one_sentence_and_sends_nothing(
    bootstrap: str, topic: str, table: Any, arguments: dict[str, Any], said: str
) -> None:
    with Producer(bootstrap) as producer:
        producer.send(topic, b"before")
        with pytest.raises((TypeError, ValueError), match=said):
            producer.send_table(topic, table if isinstance(table, list) else pa.table(table), **arguments)
    assert values(bootstrap, topic) == [b"before"]


def test_a_huge_row_among_small_ones_gets_a_batch_of_its_own(bootstrap: str, topic: str) -> None:
    contents = [b"s"] * 500 + [b"h" * 900_000] + [b"s"] * 500
    with Producer(bootstrap, column_batch_size=50_000) as producer:
        producer.send_many(topic, contents)
    assert values(bootstrap, topic) == contents


def test_rows_that_the_topic_refuses_are_an_error_and_the_others_of_their_batch_are_delivered(
    bootstrap: str, topic: str
) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "2000"})
    with Producer(bootstrap) as producer:
        sent = producer.send_many(topic, [b"small"] * 50 + [b"large" * 1000] + [b"small"] * 50)
        with pytest.raises(KafkaError, match="too large"):
            sent.result()
        assert sent.done and len(sent) == 101
    assert values(bootstrap, topic) == [b"small"] * 100


def test_tables_are_awaited_on_a_loop_of_ones_own_and_wait_for_room(bootstrap: str, topic: str) -> None:
    async def run() -> list[Any]:
        async with AsyncProducer(bootstrap, buffer_memory=30_000, column_batch_size=5_000) as producer:
            await producer.send_many(topic, ["a"] * 3_000)
            return await (await producer.send_table(topic, {"value": ["b"] * 3_000}))

    where = asyncio.run(run())
    assert where[0].offset == 3_000 and sum(part.rows for part in where) == 3_000
    assert values(bootstrap, topic) == [b"a"] * 3_000 + [b"b"] * 3_000


def test_without_pyarrow_the_error_says_what_to_install(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else found(name))
    with Producer(bootstrap) as producer, pytest.raises(ConfigError, match=r"pip install 'moldau\[arrow\]'"):
        producer.send_table(topic, {"value": ["a"]})


def test_a_table_ends_when_it_is_large_and_the_next_one_goes_on_there(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TablePolling, "_table_bytes_max", 250_000)
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2)
    with Producer(bootstrap, compression_type="zstd", linger_ms=0) as producer:
        for number in range(40):
            producer.send(topic, b"%02d" % number + bytes(60_000), partition=number % 2).result()
    found: list[bytes] = []
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(2)])
        while len(found) < 40:
            table = consumer.poll_table(timeout=30)
            assert 0 < table.nbytes < 500_000
            found += [value[:2] for value in table["value"].to_pylist()]
    assert sorted(found) == [b"%02d" % number for number in range(40)]


def test_a_consumer_refuses_a_batch_that_would_take_all_memory_and_names_it(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TablePolling, "_inflated_max", 100_000)
    monkeypatch.setattr("moldau.client.consuming.fetched.assigned.FETCHED_INFLATED_MAX", 100_000)
    with Producer(bootstrap, compression_type="zstd", linger_ms=0) as producer:
        producer.send(topic, b"small").result()
        producer.send(topic, bytes(300_000)).result()
    sentence = f"{topic}.*the batch at offset 1 cannot be inflated: the batch holds more than 100000 bytes"
    for read in (lambda one: one.poll_table(timeout=30), lambda one: one.poll(timeout_ms=30_000)):
        with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert len(read(consumer)) == 1
            for _ in range(2):
                with pytest.raises(KafkaError, match=sentence):
                    read(consumer)
