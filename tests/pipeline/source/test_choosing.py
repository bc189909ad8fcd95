"""What a read leaves out: columns that were not chosen, ranges that filters exclude; and how it is cut into tasks."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.error_codes import ErrorCode
from moldau.errors import KafkaError
from moldau.pipeline import positions
from moldau.pipeline.data_source import MoldauSource
from moldau.pipeline.options import read_options
from moldau.pipeline.ranges import OffsetRange
from moldau.pipeline.source.batch import FilteringBatchReader
from moldau.pipeline.source.reading import RangePartition, task_partitions
from tests.spark import setting_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NewTopic = Callable[..., str]
Produce = Callable[..., None]


def read(spark: "SparkSession", bootstrap: str, **options: str) -> "DataFrame":
    return spark.read.format("moldau").options(bootstrapServers=bootstrap, **options).load()


def numbered(first: int, count: int, at: int = 1_000) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(b"k%d" % n, b"v%d" % n, at + n) for n in range(first, first + count)]


def planned(bootstrap: str, topic: str, filters: list[Any], **more: str) -> list[OffsetRange]:
    """The ranges that a read with these filters would read."""
    reader = FilteringBatchReader(read_options({"bootstrapServers": bootstrap, "subscribe": topic, **more}))
    assert list(reader.pushFilters(filters)) == filters, "Spark applies all of them again"
    found = [one.part for one in reader.partitions() if isinstance(one, RangePartition)]
    return sorted(found)


def test_columns_are_chosen_by_an_option(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    with Producer(bootstrap) as producer:
        producer.send(topic, b"value", b"key", headers=[("h", b"1")])
        producer.send(topic, None, b"none")
    for columns in ("value,offset", "offset", "headers", "key", "timestampType,topic,headers,value"):
        frame = read(spark, bootstrap, subscribe=topic, columns=columns)
        assert frame.columns == columns.split(",")
        everything = read(spark, bootstrap, subscribe=topic).select(*columns.split(","))
        assert frame.collect() == everything.collect()
    assert "headers" not in read(spark, bootstrap, subscribe=topic, includeHeaders="false").columns


def test_filters_reach_the_source_and_results_stay_the_same(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic(2)
    for partition in (0, 1):
        produce(topic, numbered(0, 50), partition)
    filters = "partition = 1 and offset < 5 or offset = 49", "partition = 1 and offset >= 10 and offset < 20"
    options = {"subscribe": topic, "filterPushdown": "true"}
    for text, rows in zip(filters, (7, 10), strict=True):
        assert read(spark, bootstrap, **options).where(text).count() == rows
    timed = read(spark, bootstrap, **options, columns="value").where("value = 'v7'")
    assert timed.count() == 2
    since = "timestamp >= timestamp_millis(1040) and timestamp < timestamp_millis(1045)"
    assert read(spark, bootstrap, **options).where(since).count() == 10
    one = read(spark, bootstrap, **options).where("partition = 1")
    assert one.rdd.getNumPartitions() == 1, "the other partition is not read"
    with setting_of(spark, "spark.sql.python.filterPushdown.enabled", "false"):
        unfiltered = read(spark, bootstrap, **options).where("partition = 1")
        assert unfiltered.rdd.getNumPartitions() == 2 and unfiltered.count() == 50
        assert read(spark, bootstrap, **options).where(filters[1]).count() == 10


@pytest.mark.check  # a variant: `make test` has the usual case
def test_queries_of_one_frame_do_not_see_the_filters_of_others(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 50))
    frame = read(spark, bootstrap, subscribe=topic)
    assert (frame.where("offset < 10").count(), frame.count()) == (10, 50)
    assert frame.where("offset < 10").union(frame.where("offset >= 45")).count() == 15


def test_a_filtered_read_plans_only_what_can_pass(bootstrap: str, new_topic: NewTopic, produce: Produce) -> None:
    import datetime

    from pyspark.sql import datasource as ds

    topic = new_topic(2)
    for partition in (0, 1):
        produce(topic, numbered(0, 50), partition)
    both = [ds.EqualTo(("partition",), 0), ds.LessThan(("offset",), 5)]
    assert planned(bootstrap, topic, both) == [OffsetRange(topic, 0, 0, 5)]
    given = json.dumps({topic: {"0": 2, "1": 2}})
    assert planned(bootstrap, topic, both, startingOffsets=given) == [OffsetRange(topic, 0, 2, 5)]
    assert planned(bootstrap, topic, [ds.EqualTo(("topic",), "other")]) == []
    at = datetime.datetime.fromtimestamp(1.040, datetime.UTC)
    late = [OffsetRange(topic, 0, 40, 50), OffsetRange(topic, 1, 40, 50)]
    assert planned(bootstrap, topic, [ds.GreaterThanOrEqual(("timestamp",), at)]) == late
    assert planned(bootstrap, topic, [ds.GreaterThan(("timestamp",), at + datetime.timedelta(days=1))]) == []


@pytest.mark.check  # a variant: `make test` has the usual case
def test_records_that_are_not_in_the_order_of_their_times_pass_a_filter_by_time(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, [(None, b"v%d" % n, at) for n, at in enumerate([9_000, 1_000, 8_000, 2_000, 7_000])])
    early = read(spark, bootstrap, subscribe=topic).where("timestamp <= timestamp_millis(2000)")
    assert sorted(row["offset"] for row in early.collect()) == [1, 3]
    late = read(spark, bootstrap, subscribe=topic).where("timestamp > timestamp_millis(2000)")
    assert sorted(row["offset"] for row in late.collect()) == [0, 2, 4]


def test_edges_can_be_times_by_partition(bootstrap: str, new_topic: NewTopic, produce: Produce) -> None:
    topic = new_topic(2)
    for partition in (0, 1):
        produce(topic, numbered(0, 50), partition)
    times = {
        "startingOffsetsByTimestamp": json.dumps({topic: {"0": 1010, "1": 1020}}),
        "endingOffsetsByTimestamp": json.dumps({topic: {"0": 1015, "1": 99_999}}),
    }
    assert planned(bootstrap, topic, [], **times) == [OffsetRange(topic, 0, 10, 15), OffsetRange(topic, 1, 20, 50)]
    with pytest.raises(Exception, match="startingOffsetsByTimestamp names the partitions"):
        planned(bootstrap, topic, [], startingOffsetsByTimestamp=json.dumps({topic: {"0": 1010}}))


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [100, 10]),
        ({"maxRecordsPerPartition": "50"}, [50, 50, 10]),
        ({"minPartitions": "2"}, [100, 10]),
        ({"minPartitions": "11"}, [10] * 11),
        ({"minPartitions": "3", "maxRecordsPerPartition": "30"}, [25, 25, 25, 25, 10]),
    ],
)
def test_ranges_are_cut_into_tasks(options: dict[str, str], sizes: list[int]) -> None:
    ranges = [OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 5, 15)]
    subscribed = {part.topic_partition: None for part in ranges}
    tasks = task_partitions(ranges, subscribed, read_options({"bootstrapServers": "h:1", "subscribe": "t", **options}))
    assert [one.part.size for one in tasks if isinstance(one, RangePartition)] == sizes


def test_a_broker_that_does_not_answer_is_one_sentence(spark: "SparkSession") -> None:
    with pytest.raises(Exception, match=r"No broker answers at 127\.0\.0\.1:1: ") as raised:
        read(spark, "127.0.0.1:1", subscribe="t").count()
    assert "Traceback" not in str(raised.value) and len(str(raised.value)) < 400


@pytest.mark.parametrize(("given", "waits_ms"), [({}, 5_000), ({"kafka.default.api.timeout.ms": "100"}, 100)])
def test_the_first_contact_of_a_query_waits_for_seconds_at_most(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], waits_ms: int
) -> None:
    waited: list[int] = []

    def no_answer(*_: Any, timeout_ms: int, **__: Any) -> Any:
        waited.append(timeout_ms)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "silence")

    monkeypatch.setattr(positions, "subscribed", no_answer)
    with pytest.raises(positions.Unreachable, match="No broker answers at h:1"):
        positions.first_contact(read_options({"bootstrapServers": "h:1", "subscribe": "t", **given}))
    assert waited == [waits_ms]


def test_a_wrong_option_is_refused_without_a_traceback(spark: "SparkSession", bootstrap: str) -> None:
    with pytest.raises(Exception, match="no option 'colums'; did you mean columns") as raised:
        read(spark, bootstrap, subscribe="t", colums="value")
    assert "Traceback" not in str(raised.value)


def test_a_batch_read_may_name_a_group_and_publishes_nothing(
    bootstrap: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic()
    produce(topic, numbered(0, 5))
    assert planned(bootstrap, topic, [], groupIdPrefix=topic) == [OffsetRange(topic, 0, 0, 5)]
    with Admin(bootstrap) as admin:
        assert not [group for group in admin.list_groups() if group.group_id.startswith(topic)]


def test_a_batch_read_refuses_options_of_streams() -> None:
    source = MoldauSource({"bootstrapServers": "h:1", "subscribe": "t", "minOffsetsPerTrigger": "5"})
    with pytest.raises(Exception, match="minOffsetsPerTrigger is for streams"):
        source.reader(source.schema())
