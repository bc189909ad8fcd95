"""The data source in a real Spark session: schema, edges, streams, new partitions, data loss."""

import datetime
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from moldau.pipeline.data_source import MoldauSource
from moldau.pipeline.positions import DataLost
from moldau.pipeline.source import reading
from moldau.pipeline.source.schema import SCHEMA
from moldau.pipeline.streams import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UTC = datetime.UTC
NewTopic = Callable[..., str]
Produce = Callable[..., None]


def numbered(first: int, count: int, at: int = 1_000) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(b"k%d" % n, b"v%d" % n, at + n) for n in range(first, first + count)]


def read(spark: "SparkSession", bootstrap: str, **options: str) -> "DataFrame":
    return spark.read.format("moldau").options(bootstrapServers=bootstrap, **options).load()


def values(frame: "DataFrame") -> list[str]:
    return sorted((bytes(row["value"]).decode() for row in frame.select("value").collect()), key=lambda v: int(v[1:]))


def joined(batches: Iterable[list[str]]) -> list[str]:
    return [value for batch in batches for value in batch]


def expected(numbers: Iterable[int]) -> list[str]:
    return [f"v{number}" for number in numbers]


class Collector:
    """Runs a stream over what is there (AvailableNow) with a checkpoint, and keeps each micro-batch's values. The
    stream is started again if the Python process of its source started too slowly for Spark."""

    def __init__(self, spark: "SparkSession", bootstrap: str, checkpoint: Path):
        self._spark, self._bootstrap, self._checkpoint = spark, bootstrap, checkpoint

    def run(self, **options: str) -> list[list[str]]:
        batches: dict[int, list[str]] = {}
        stream = self._spark.readStream.format("moldau").options(bootstrapServers=self._bootstrap, **options).load()
        writer = (
            stream.writeStream.foreachBatch(lambda frame, number: batches.update({number: values(frame)}))
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
        )
        run_to_end(lambda _: writer.start())
        return [batch for _, batch in sorted(batches.items()) if batch]


def test_committed_records_are_read_unless_the_option_says_otherwise(
    spark: "SparkSession", bootstrap: str, half_open: tuple[str, Any], tmp_path: Path
) -> None:
    topic, transaction = half_open
    assert values(read(spark, bootstrap, subscribe=topic)) == expected(range(10))
    everything = expected([*range(13), 20])
    assert values(read(spark, bootstrap, subscribe=topic, **{"isolation.level": "read_uncommitted"})) == everything
    with pytest.raises(Exception, match=r"names offset 15 of .*, but a transaction is open from 14"):
        read(spark, bootstrap, subscribe=topic, endingOffsets=f'{{"{topic}":{{"0":15}}}}').collect()
    collector = Collector(spark, bootstrap, tmp_path)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    assert joined(collector.run(**options)) == expected(range(10))
    transaction.end(commits=True)
    assert wait_until(lambda: joined(collector.run(**options)) == expected([20]))


def test_rows_have_the_columns_of_the_kafka_connector(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with Producer(bootstrap) as producer:
        producer.send(topic, b"value", b"key", timestamp_ms=1_357_000_000_123, headers=[("h", b"1"), ("h", None)])
        producer.send(topic, None, None, timestamp_ms=5)
    frame = spark.read.format("moldau").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic).load()
    assert frame.dtypes == [
        ("key", "binary"), ("value", "binary"), ("topic", "string"), ("partition", "int"), ("offset", "bigint"),
        ("timestamp", "timestamp"), ("timestampType", "int"), ("headers", "array<struct<key:string,value:binary>>"),
    ]  # fmt: skip
    first, second = frame.selectExpr("*", "unix_micros(timestamp) AS micros").orderBy("offset").collect()
    assert (bytes(first["key"]), bytes(first["value"])) == (b"key", b"value")
    assert (first["topic"], first["partition"], first["offset"], first["timestampType"]) == (topic, 0, 0, 0)
    assert first["micros"] == 1_357_000_000_123_000
    assert [(header["key"], header["value"]) for header in first["headers"]] == [("h", bytearray(b"1")), ("h", None)]
    assert (second["key"], second["value"], second["headers"], second["offset"]) == (None, None, None, 1)


def test_a_batch_read_has_one_spark_partition_for_each_topic_partition_and_more_when_asked(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic(3)
    for partition in (0, 2):
        produce(topic, numbered(partition * 100, 50), partition)
    frame = read(spark, bootstrap, subscribe=topic)
    assert frame.rdd.getNumPartitions() == 2
    assert values(frame) == expected([*range(50), *range(200, 250)])
    more = read(spark, bootstrap, subscribe=topic, minPartitions="5")
    assert more.rdd.getNumPartitions() >= 5 and more.count() == 100


def test_edges_are_offsets_or_times_and_topics_may_be_a_pattern_or_assigned(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic(2, "edges")
    produce(topic, numbered(0, 10), 0)
    produce(topic, numbered(10, 10), 1)
    cut = {
        "startingOffsets": json.dumps({topic: {"0": 7, "1": -2}}),
        "endingOffsets": json.dumps({topic: {"0": -1, "1": 3}}),
    }
    assert values(read(spark, bootstrap, subscribe=topic, **cut)) == expected([7, 8, 9, 10, 11, 12])
    only = json.dumps({topic: [1]})
    assert values(read(spark, bootstrap, assign=only)) == expected(range(10, 20))
    times = {"startingTimestamp": "1004", "endingTimestamp": "1012"}
    assert values(read(spark, bootstrap, subscribePattern="edges-.*", **times)) == expected(range(4, 12))
    assert read(spark, bootstrap, subscribePattern="no-such-.*").count() == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Give exactly one of the options subscribe"),
        ({"subscribe": "no-such-topic"}, "No topic has this name"),
        ({"subscribe": "{topic}", "startingOffsets": "latest"}, "cannot start at latest"),
        ({"subscribe": "{topic}", "startingOffsets": '{"other":{"0":1}}'}, "names the partitions other-0"),
        ({"subscribe": "{topic}", "startingTimestamp": "99999"}, "is as new as startingTimestamp"),
        ({"subscribe": "{topic}", "endingOffsets": '{"{topic}":{"0":9}}'}, "the log ends at 3"),
        ({"subscribe": "{topic}", "maxOffsetsPerTrigger": "5"}, "is for streams"),
        ({"assign": '{"{topic}":[4]}'}, "has no partition 4"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(
    bootstrap: str, new_topic: NewTopic, produce: Produce, options: dict[str, str], said: str
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 3))
    given = {"bootstrapServers": bootstrap, **{name: text.replace("{topic}", topic) for name, text in options.items()}}
    with pytest.raises(Exception) as raised:  # Spark tells the sentence of any
        list(MoldauSource(given).reader(SCHEMA).partitions())
    assert said in str(raised.value)


def test_spark_tells_the_sentence(spark: "SparkSession", bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as raised:
        read(spark, bootstrap, subscribe=topic, startingOffsets="latest").count()
    assert "cannot start at latest" in str(raised.value)


def test_batches_are_bounded(bootstrap: str, new_topic: NewTopic, produce: Produce, monkeypatch: Any) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5000))
    monkeypatch.setattr(reading, "BATCH_ROWS", 700)
    reader = MoldauSource({"bootstrapServers": bootstrap, "subscribe": topic}).reader(SCHEMA)
    (partition,) = reader.partitions()
    sizes = [batch.num_rows for batch in reader.read(partition)]
    assert sum(sizes) == 5000 and max(sizes) <= 700


def test_a_stream_reads_in_rations_and_goes_on_from_its_checkpoint_with_new_partitions(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 25))
    collector = Collector(spark, bootstrap, tmp_path / "checkpoint")
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "10"}
    batches = collector.run(**options)
    assert [len(batch) for batch in batches] == [10, 10, 5] and joined(batches) == expected(range(25))
    assert collector.run(**options) == []
    with Admin(bootstrap) as admin:
        admin.create_partitions(topic, 3)
    produce(topic, numbered(25, 5), 0)
    produce(topic, numbered(30, 5), 2)
    again = collector.run(**options)
    assert sorted(joined(again), key=lambda v: int(v[1:])) == expected(range(25, 35))


def test_a_checkpoint_notices_a_topic_that_was_created_again_with_more_records(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5))
    collector = Collector(spark, bootstrap, tmp_path / "checkpoint")
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    assert joined(collector.run(**options)) == expected(range(5))
    with Admin(bootstrap) as admin:
        admin.delete_topic(topic)
        assert wait_until(lambda: topic not in admin.list_topics())
        admin.create_topic(topic, partitions=1, replication_factor=1, configs={"retention.ms": "-1"})
    produce(topic, numbered(100, 8))
    with pytest.raises(Exception, match=f"Topic {topic} was deleted and created again since it was read"):
        collector.run(**options)
    assert joined(collector.run(**options, failOnDataLoss="false")) == expected(range(100, 108))
    assert collector.run(**options) == []


def test_available_now_does_not_read_what_comes_after_its_start(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 4))
    reader = MoldauSource({"bootstrapServers": bootstrap, "subscribe": topic}).streamReader(SCHEMA)
    reader.prepareForTriggerAvailableNow()
    produce(topic, numbered(4, 4))
    start = {topic: {"0": 1}}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert end[topic] == {"0": 4}
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
    assert reader.reportLatestOffset()[topic] == {"0": 8}


def test_a_stream_starts_at_latest_unless_told_otherwise(bootstrap: str, new_topic: NewTopic, produce: Produce) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 4))
    reader = MoldauSource({"bootstrapServers": bootstrap, "subscribe": topic}).streamReader(SCHEMA)
    assert reader.initialOffset()[topic] == {"0": 4}


def test_deleted_records_fail_a_read_or_are_skipped_by_fail_on_data_loss(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce, tmp_path: Path
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 10))
    with Admin(bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 6})
    start = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 2}})}
    with pytest.raises(Exception, match=r"Offsets 2 to 5 of .* are gone from the log"):
        read(spark, bootstrap, **start).count()
    assert values(read(spark, bootstrap, **start, failOnDataLoss="false")) == expected(range(6, 10))
    with pytest.raises(Exception, match="are gone from the log"):
        Collector(spark, bootstrap, tmp_path / "strict").run(**start)
    lenient = Collector(spark, bootstrap, tmp_path / "lenient").run(**start, failOnDataLoss="false")
    assert joined(lenient) == expected(range(6, 10))


def test_records_that_expire_between_planning_and_reading_are_handled_the_same_way(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 10))
    options = {"bootstrapServers": bootstrap, "subscribe": topic}
    strict = MoldauSource(options).reader(SCHEMA)
    lenient = MoldauSource({**options, "failOnDataLoss": "false"}).reader(SCHEMA)
    (planned,) = strict.partitions()
    with Admin(bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 6})
    assert sum(batch.num_rows for batch in lenient.read(planned)) == 4
    with pytest.raises(DataLost, match="Offsets 0 to 5"):
        list(strict.read(planned))


def test_a_topic_that_is_gone_or_made_anew_is_data_loss_for_a_stream(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 2))
    options = {"bootstrapServers": bootstrap, "subscribePattern": f"{topic}|other-{topic}"}
    strict = MoldauSource(options).streamReader(SCHEMA)
    lenient = MoldauSource({**options, "failOnDataLoss": "false"}).streamReader(SCHEMA)
    ahead, gone = {topic: {"0": 7}}, {f"other-{topic}": {"0": 3}}
    limit = strict.getDefaultReadLimit()
    with pytest.raises(DataLost, match="ends at offset 2, before 7"):
        strict.latestOffset(ahead, limit)
    assert lenient.latestOffset(ahead, limit)[topic] == {"0": 2}, "what is written there next is new"
    assert lenient.partitions(ahead, {topic: {"0": 2}}) == []
    with pytest.raises(DataLost, match="is gone"):
        strict.latestOffset(gone, limit)
    with pytest.raises(DataLost, match="is gone"):
        strict.partitions({}, gone)
    assert lenient.partitions({}, gone) == []
