"""What a job that moves here from Spark's Kafka connector asks of a batch read."""

import contextlib
import json
from typing import Any

from moldau.client.producing.producer import Producer
from tests.pipeline.beside.playing import Answer, Case, Player


def json_of(topic: str, **partitions: int) -> str:
    """Numbers by partition, such as `_0=5`, as an option."""
    return json.dumps({topic: {name.removeprefix("_"): number for name, number in partitions.items()}})


def schema(player: Player) -> Answer:
    return [list(column) for column in player.frame(subscribe=player.topic()).dtypes]


def schema_with_headers(player: Player) -> Answer:
    return [list(column) for column in player.frame(subscribe=player.topic(), includeHeaders="true").dtypes]


def own_schema(player: Player) -> Answer:
    topic = player.topic()
    reader = player.spark.read.format(player.source).option("kafka.bootstrap.servers", player.bootstrap)
    return reader.option("subscribe", topic).schema("value string").load().count()


def headers(player: Player) -> Answer:
    topic = player.topic(1, records=False)
    with Producer(player.bootstrap) as producer:
        producer.send(topic, b"v", b"k", headers=[("h", b"1"), ("h", None), ("", b"")])
        producer.send(topic, None, None)
    found: list[Any] = player.frame(subscribe=topic, includeHeaders="true").orderBy("offset").collect()
    return [
        [_text(row["key"]), _text(row["value"]), [[h["key"], _text(h["value"])] for h in row["headers"] or ()] or None]
        for row in found
    ]


def _text(value: bytearray | None) -> str | None:
    return None if value is None else bytes(value).decode()


def times(player: Player) -> Answer:
    frame = player.frame(subscribe=player.topic(1))
    return [
        list(row) for row in frame.orderBy("offset").selectExpr("unix_micros(timestamp)", "timestampType").collect()
    ]


def log_append_time(player: Player) -> Answer:
    frame = player.frame(subscribe=player.topic(1, message_timestamp_type="LogAppendTime"))
    (row,) = frame.selectExpr("min(unix_millis(timestamp)) > 1700000000000", "min(timestampType)").collect()
    return list(row)


def offsets_by_partition(player: Player) -> Answer:
    topic = player.topic()
    start, end = json_of(topic, _0=3, _1=-2), json_of(topic, _0=-1, _1=2)
    return player.rows(topic, startingOffsets=start, endingOffsets=end)


def below_the_log_start(player: Player) -> Answer:
    topic = player.topic(1)
    player.delete_records(topic, 3)
    start = json_of(topic, _0=1)
    return player.each(
        strict=lambda: player.rows(topic, startingOffsets=start),
        lenient=lambda: player.rows(topic, startingOffsets=start, failOnDataLoss="false"),
        earliest=lambda: player.rows(topic, startingOffsets="earliest"),
    )


def beyond_the_end(player: Player) -> Answer:
    topic = player.topic(1)
    start = json_of(topic, _0=9)
    return player.each(
        strict=lambda: player.rows(topic, startingOffsets=start),
        lenient=lambda: player.rows(topic, startingOffsets=start, failOnDataLoss="false"),
    )


def end_beyond_the_end(player: Player) -> Answer:
    topic = player.topic(1)
    end = json_of(topic, _0=9)
    return player.each(
        strict=lambda: player.rows(topic, endingOffsets=end),
        lenient=lambda: player.rows(topic, endingOffsets=end, failOnDataLoss="false"),
    )


def at_the_end(player: Player) -> Answer:
    topic = player.topic(1)
    return player.rows(topic, startingOffsets=json_of(topic, _0=5))


def start_above_end(player: Player) -> Answer:
    topic = player.topic(1)
    return player.rows(topic, startingOffsets=json_of(topic, _0=4), endingOffsets=json_of(topic, _0=2))


def missing_partition(player: Player) -> Answer:
    topic = player.topic()
    return player.rows(topic, startingOffsets=json_of(topic, _0=1))


def unknown_partition(player: Player) -> Answer:
    topic = player.topic(1)
    return player.rows(topic, startingOffsets=json_of(topic, _0=1, _7=0))


def latest_of_one(player: Player) -> Answer:
    topic = player.topic(1)
    return player.rows(topic, startingOffsets=json_of(topic, _0=-1))


def earliest_end_of_one(player: Player) -> Answer:
    topic = player.topic(1)
    return player.rows(topic, endingOffsets=json_of(topic, _0=-2))


def times_by_partition(player: Player) -> Answer:
    topic = player.topic()
    return player.rows(
        topic,
        startingOffsetsByTimestamp=json_of(topic, _0=1002, _1=2001),
        endingOffsetsByTimestamp=json_of(topic, _0=1004, _1=9999),
    )


def times_of_some(player: Player) -> Answer:
    topic = player.topic()
    return player.rows(topic, startingOffsetsByTimestamp=json_of(topic, _0=1002))


def later_than_all(player: Player) -> Answer:
    topic = player.topic()
    return player.each(
        error=lambda: player.rows(topic, startingTimestamp="2001"),
        latest=lambda: player.rows(topic, startingTimestamp="2001", startingOffsetsByTimestampStrategy="latest"),
    )


def full_match(player: Player) -> Answer:
    short, long = player.topic(1, "x"), player.topic(1, "xy", records=False)
    player.write(long, 0, range(20, 21))
    return player.each(
        short=lambda: player.rows(subscribePattern=short), both=lambda: player.rows(subscribePattern=f"{short}.*")
    )


def java_pattern(player: Player) -> Answer:
    topic = player.topic(1)
    return player.rows(subscribePattern=topic[:-1] + r"\p{Lower}")


def spaces(player: Player) -> Answer:
    one, other = player.topic(1, "x"), player.topic(1, "y")
    return player.rows(f" {one} , {other},")


def assigned(player: Player) -> Answer:
    topic = player.topic()
    return player.each(
        one=lambda: player.rows(assign=json.dumps({topic: [1]})),
        unknown=lambda: player.rows(assign=json.dumps({topic: [5]})),
    )


def two_ways(player: Player) -> Answer:
    topic = player.topic(1)
    return player.rows(topic, assign=json.dumps({topic: [0]}))


def no_broker(player: Player) -> Answer:
    return player.spark.read.format(player.source).option("subscribe", "any").load().count()


def tasks(player: Player) -> Answer:
    topic = player.topic()
    return player.each(
        plain=lambda: player.frame(subscribe=topic).rdd.getNumPartitions(),
        at_least_four=lambda: player.frame(subscribe=topic, minPartitions="4").rdd.getNumPartitions(),
        of_two_records=lambda: player.frame(subscribe=topic, maxRecordsPerPartition="2").rdd.getNumPartitions(),
    )


def aborted(player: Player) -> Answer:
    topic = player.topic(1)
    with Producer(player.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        with contextlib.suppress(InterruptedError), producer.transaction():
            producer.send(topic, b"aborted")
            producer.flush()
            raise InterruptedError
        with producer.transaction():
            producer.send(topic, b"committed")
    return player.each(
        plain=lambda: player.rows(topic), committed=lambda: player.rows(topic, kafka__isolation__level="read_committed")
    )


def simple(partitions: int = 2, **options: str) -> Case:
    """A batch read of one topic with these options."""
    return lambda player: player.rows(player.topic(partitions), **options)


CASES: dict[str, Case] = {
    "which columns has a read": schema,
    "which columns has a read with includeHeaders": schema_with_headers,
    "may a read have a schema of its own": own_schema,
    "what are keys, values and headers that are null or empty": headers,
    "what is the time of a record": times,
    "what is the time of a record of a topic with LogAppendTime": log_append_time,
    "where does a batch read start and end": simple(),
    "are offsets given by partition": offsets_by_partition,
    "may a batch read start at latest": simple(1, startingOffsets="latest"),
    "may one partition of a batch read start at latest": latest_of_one,
    "may a batch read end at earliest": simple(1, endingOffsets="earliest"),
    "may one partition of a batch read end at earliest": earliest_end_of_one,
    "must offsets name every partition": missing_partition,
    "may offsets name a partition that does not exist": unknown_partition,
    "are offsets that are not JSON refused": simple(1, startingOffsets="{0:1}"),
    "what if startingOffsets are below the start of the log": below_the_log_start,
    "what if startingOffsets are beyond the end of the log": beyond_the_end,
    "what if endingOffsets are beyond the end of the log": end_beyond_the_end,
    "what if startingOffsets are the end of the log": at_the_end,
    "what if the start is above the end": start_above_end,
    "where does startingTimestamp start": simple(startingTimestamp="1003"),
    "where does endingTimestamp end": simple(endingTimestamp="2001"),
    "what if endingTimestamp is later than all records": simple(endingTimestamp="9999"),
    "what if startingTimestamp is later than all records of a partition": later_than_all,
    "what if startingTimestamp is after endingTimestamp": simple(1, startingTimestamp="1003", endingTimestamp="1001"),
    "are times given by partition": times_by_partition,
    "must times name every partition": times_of_some,
    "which wins, a time or an offset": simple(startingTimestamp="2001", startingOffsets="earliest",
                                              startingOffsetsByTimestampStrategy="latest"),
    "must a pattern match the whole name": full_match,
    "is a pattern a regular expression of Java": java_pattern,
    "what if a pattern matches nothing": lambda player: player.rows(subscribePattern="no-such-topic-.*"),
    "may names of topics have spaces around them": spaces,
    "are single partitions assigned": assigned,
    "what if a topic does not exist": lambda player: player.rows("no-such-topic"),
    "may topics be given in two ways": two_ways,
    "must topics be given": lambda player: player.rows(),
    "must brokers be given": no_broker,
    "how many tasks has a read": tasks,
    "are records of aborted transactions read": aborted,
    "may the group be named": simple(1, kafka__group__id="named", groupIdPrefix="prefix"),
    "may auto.offset.reset be set": simple(1, kafka__auto__offset__reset="latest"),
    "may deserializers be set": simple(1, kafka__value__deserializer="any"),
    "may settings of the consumer be set": simple(1, kafka__max__poll__records="7", kafka__fetch__min__bytes="1"),
    "may the connector's own numbers be set": simple(1, fetchOffset__numRetries="2", fetchOffset__retryIntervalMs="5",
                                                     kafkaConsumer__pollTimeoutMs="9000"),
    "is a misspelt option noticed": simple(1, startingOffset="latest"),
    "is failOnDataLoss checked": simple(1, failOnDataLoss="perhaps"),
}  # fmt: skip
