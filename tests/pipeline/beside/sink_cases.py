"""What a job that moves here from Spark's Kafka connector asks of the sink."""

from typing import Any

import moldau
from tests.pipeline.beside.playing import Answer, Case, Player

HEADERS = "array(named_struct('key', 'h', 'value', CAST('1' AS BINARY)), named_struct('key', 'n', 'value', NULL))"


def written(player: Player, topic: str, *columns: str) -> Answer:
    """These columns of the records of a topic, sorted: rows without a key go to any partition."""
    rows = moldau.read_table(topic, player.bootstrap).to_pylist()
    return sorted(([_plain(row[name]) for name in columns or ("key", "value")] for row in rows), key=str)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [[header["key"], _plain(header["value"])] for header in value]
    return value


def saved(columns: str, *read: str, mode: str = "append", option: bool = True, **options: str) -> Case:
    """Write rows of these expressions to one topic, and return these columns of what is there then."""

    def case(player: Player) -> Answer:
        topic = player.topic(3, records=False)
        given = {**options, "topic": topic} if option else options
        player.save(columns.replace("TOPIC", topic), mode, **given)
        return written(player, topic, *read)

    return case


def streamed(player: Player) -> Answer:
    source, target = player.topic(1, "x"), player.topic(1, "y", records=False)
    given = {"kafka.bootstrap.servers": player.bootstrap, "subscribe": source, "startingOffsets": "earliest"}
    stream = player.spark.readStream.format(player.source).options(**given).load().select("key", "value")
    writer = stream.writeStream.format(player.source).option("kafka.bootstrap.servers", player.bootstrap)
    writer = writer.option("topic", target).option("checkpointLocation", str(player.checkpoint("copy")))
    for _ in range(2):
        writer.trigger(availableNow=True).start().awaitTermination()
    return written(player, target)


def time_of_a_row(player: Player) -> Answer:
    topic = player.topic(1, records=False)
    player.save("'v' AS value, timestamp_millis(1000) AS timestamp", topic=topic)
    (at,) = moldau.read_table(topic, player.bootstrap).column("timestamp").to_pylist()
    return "1000 ms" if at.timestamp() == 1 else "when it was written"


KEYED = "|".join(f"'k{n}' AS key, 'v{n}' AS value" for n in range(12))
CASES: dict[str, Case] = {
    "what does the sink write": saved("'k' AS key, 'v' AS value|NULL AS key, 'w' AS value"),
    "does the sink take bytes": saved("CAST('k' AS BINARY) AS key, CAST('v' AS BINARY) AS value"),
    "may a value be null": saved("'k' AS key, CAST(NULL AS STRING) AS value"),
    "must there be a column value": saved("'k' AS key"),
    "may a value be a number": saved("5 AS value"),
    "which partition has a key": saved(KEYED, "partition", "key"),
    "does the column partition decide": saved("'v' AS value, 2 AS partition|'w' AS value, 0 AS partition",
                                              "partition", "value"),
    "may a partition be a bigint": saved("'v' AS value, 2L AS partition"),
    "does the column topic decide": saved("'v' AS value, 'TOPIC' AS topic", option=False),
    "does the option topic win over the column": saved("'v' AS value, 'another' AS topic"),
    "must a topic be given": saved("'v' AS value", option=False),
    "may the column topic be null": saved("'v' AS value, CAST(NULL AS STRING) AS topic", option=False),
    "are headers written": saved(f"'v' AS value, {HEADERS} AS headers", "value", "headers"),
    "are headers written with includeHeaders": saved(f"'v' AS value, {HEADERS} AS headers", "value", "headers",
                                                     includeHeaders="true"),
    "may headers be a map": saved("'v' AS value, map('h', '1') AS headers"),
    "are other columns ignored": saved("'v' AS value, 1 AS other"),
    "what is the time of a row with a column timestamp": time_of_a_row,
    "may a write have no mode": saved("'v' AS value", mode=""),
    "may a write overwrite": saved("'v' AS value", mode="overwrite"),
    "may a write ignore": saved("'v' AS value", mode="ignore"),
    "may acks be all": saved("'v' AS value", kafka__acks="all"),
    "may acks be 1": saved("'v' AS value", kafka__acks="1"),
    "may settings of the producer be set": saved("'v' AS value", kafka__linger__ms="1", kafka__compression__type="lz4"),
    "may serializers be set": saved("'v' AS value", kafka__value__serializer="any"),
    "is a stream written": streamed,
}  # fmt: skip
