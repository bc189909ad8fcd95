"""Topics are read as tables: at once by `read_table`, and by consumers that share positions between rows and tables."""

import asyncio
import datetime
import importlib.util
from collections.abc import Callable

import pyarrow as pa
import pytest

import moldau
import moldau.aio
from harness.patience import stretched, wait_until
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.names import TopicPartition
from tests import raw_transactions

COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """100 records at the seconds 0 to 99 in each of two partitions."""
    with moldau.Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=2, configs={"retention.ms": "-1"})
    with moldau.Producer(bootstrap) as producer:
        for number in range(200):
            at = number // 2
            producer.send(topic, b"v%d" % at, b"k", partition=number % 2, timestamp_ms=at * 1000, headers={"h": b"x"})
    return topic


def numbers(table: pa.Table, partition: int = 0) -> list[int]:
    rows = zip(table["partition"].to_pylist(), table["value"].to_pylist(), strict=True)
    return [int(value[1:]) for one, value in rows if one == partition]


def test_a_topic_is_a_table(bootstrap: str, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = moldau.read_table(filled, bootstrap, fetch_max_bytes=1_000)
    assert table.column_names == COLUMNS
    assert numbers(table, 0) == numbers(table, 1) == list(range(100))
    assert table.slice(101, 1).to_pylist() == [
        {
            "topic": filled, "partition": 1, "offset": 1, "key": b"k", "value": b"v1",
            "timestamp": datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC),
            "headers": [{"key": "h", "value": b"x"}],
        }
    ]  # fmt: skip
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", bootstrap)
    assert moldau.read_table(filled, partitions=[1]).num_rows == 100


def test_asyncio_reads_the_same_table(bootstrap: str, filled: str) -> None:
    table = asyncio.run(moldau.aio.read_table(filled, bootstrap, since={0: 50}, partitions=[0]))
    assert numbers(table) == list(range(50, 100))
    assert table == moldau.read_table(filled, bootstrap, since={0: 50}, partitions=[0])


def test_a_range_begins_and_ends_at_times_and_offsets(bootstrap: str, filled: str) -> None:
    at = datetime.datetime.fromtimestamp(90, datetime.UTC)
    assert numbers(moldau.read_table(filled, bootstrap, since=at)) == list(range(90, 100))
    assert numbers(moldau.read_table(filled, bootstrap, since=10_500, until=13_000), 1) == [11, 12]
    by_offset = moldau.read_table(filled, bootstrap, since={0: 50}, until={0: 53, 1: 2})
    assert (numbers(by_offset, 0), numbers(by_offset, 1)) == ([50, 51, 52], [0, 1])
    beyond = moldau.read_table(filled, bootstrap, since={0: -5, 1: 1_000}, until={0: 1_000})
    assert (numbers(beyond, 0), numbers(beyond, 1)) == (list(range(100)), [])
    empty = moldau.read_table(filled, bootstrap, since=datetime.timedelta(hours=1))
    assert empty.num_rows == 0 and empty.column_names == COLUMNS
    with pytest.raises(TypeError, match="since='yesterday' is not a datetime"):
        moldau.read_table(filled, bootstrap, since="yesterday")  # type: ignore[arg-type]


def test_what_was_not_committed_is_left_out(bootstrap: str, filled: str) -> None:
    transaction = raw_transactions.Producer(bootstrap, filled)
    transaction.write_values(filled, [b"v100", b"v101"])
    assert numbers(moldau.read_table(filled, bootstrap)) == list(range(100))
    assert numbers(moldau.read_table(filled, bootstrap, isolation_level="read_uncommitted")) == list(range(102))
    transaction.close()


def test_what_cannot_be_read_is_one_sentence(bootstrap: str, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaError) as unknown:
        moldau.read_table("not-there", bootstrap)
    assert unknown.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(KafkaError, match=f"topic {filled} has no partition 2: it has 2 partitions, 0 to 1"):
        moldau.read_table(filled, bootstrap, partitions=[0, 2])
    with pytest.raises(ConfigError, match="isolation level 'dirty' is not one of"):
        moldau.read_table(filled, bootstrap, isolation_level="dirty")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else found(name))
    with pytest.raises(ConfigError, match=r"^read_table needs pyarrow: install it with pip install 'moldau\[arrow\]'$"):
        moldau.read_table(filled, bootstrap)


def test_a_bar_shows_how_far_a_read_is(bootstrap: str, filled: str, capsys: pytest.CaptureFixture[str]) -> None:
    moldau.read_table(filled, bootstrap, progress=True)
    assert "200/200" in capsys.readouterr().err
    moldau.read_table(filled, bootstrap)
    assert capsys.readouterr().err == ""


def test_tables_and_rows_take_turns_at_the_same_positions(bootstrap: str, filled: str) -> None:
    tp = TopicPartition(filled, 0)
    with moldau.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        rows = consumer.poll(int(stretched(10) * 1000), max_records=30)
        table = consumer.poll_table(int(stretched(10) * 1000))
        assert table.column_names == COLUMNS and consumer.position(tp) == 100
        assert [row.offset for row in rows] + table["offset"].to_pylist() == list(range(100))
        consumer.seek(tp, 95)
        assert numbers(next(consumer.tables())) == list(range(95, 100))
        assert consumer.poll_table(0).num_rows == 0
        assert list(consumer.tables(idle_ms=1)) == []


def test_a_table_counts_as_processed_when_the_next_one_is_asked_for(bootstrap: str, filled: str, group: str) -> None:
    settings = {"group_id": group, "auto_offset_reset": "earliest", "max_partition_fetch_bytes": 1}
    partitions = [TopicPartition(filled, partition) for partition in (0, 1)]
    with moldau.Consumer(bootstrap, **settings) as consumer:
        consumer.subscribe(filled)
        assert next(consumer.tables()).num_rows
    with moldau.Consumer(bootstrap, **settings) as consumer:
        assert {at.offset for at in consumer.committed(partitions).values()} <= {0}
        consumer.subscribe(filled)
        counts: list[int] = []
        assert wait_until(lambda: counts.extend(map(len, consumer.tables(idle_ms=200))) or sum(counts) == 200)
    with moldau.Consumer(bootstrap, **settings) as consumer:
        assert [at.offset for at in consumer.committed(partitions).values()] == [100, 100]


def test_tables_of_read_committed_consumers_leave_out_what_was_aborted(bootstrap: str, filled: str) -> None:
    transaction = raw_transactions.Producer(bootstrap, filled)
    transaction.write_values(filled, [b"v100", b"v101"])
    transaction.end(commits=False)
    with moldau.Producer(bootstrap) as producer:
        producer.send(filled, b"v102", partition=0)
    for level, expected in (("read_committed", [*range(100), 102]), ("read_uncommitted", list(range(103)))):
        with moldau.Consumer(bootstrap, auto_offset_reset="earliest", isolation_level=level) as consumer:
            consumer.assign([TopicPartition(filled, 0)])
            found: list[int] = []
            while len(found) < len(expected):
                found += numbers(consumer.poll_table(int(stretched(10) * 1000)))
            assert found == expected
    transaction.close()


def test_tables_are_awaited_on_a_loop_of_ones_own(bootstrap: str, filled: str, fresh: Callable[[], str]) -> None:
    async def run() -> int:
        async with AsyncConsumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(filled, partition) for partition in (0, 1)])
            rows = 0
            async for table in consumer.tables():
                rows += len(table)
                if rows == 200:
                    return rows
        return -1

    assert asyncio.run(run()) == 200
