"""Plays one question after another to a data source of Spark: Spark's own Kafka connector, or ours.

A case is a function of a `Player` that returns an answer as JSON holds it. It gets topics of its own, so the cases run
in any order. An error is an answer, too: `{"refuses": sentence}`. This module runs in the environment of the connector
as well, which has no pytest.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Answer = Any
Case = Callable[["Player"], Answer]
SHOWN = 200
UNTIL_CHANGED_TRIES = 2_000
CAUSE = r"[\w.]+(?:Exception|Error|Lost|Unreachable): (.+)"
NOISE = r"^\[[A-Z_.]+\] |SQLSTATE: \w+|127\.0\.0\.1:\d+|[0-9a-f]{8}-[0-9a-f-]{27}"


class Player:
    """One data source, by the name of its format. `folder` is for checkpoints; each read has the options `always`."""

    def __init__(self, spark: "SparkSession", source: str, bootstrap: str, folder: Path, **always: str):
        self.spark, self.source, self.bootstrap, self.folder, self.always = spark, source, bootstrap, folder, always
        self.case = ""
        self._numbers = itertools.count(1)

    def play(self, name: str, case: Case) -> Answer:
        self.case = name
        return self._answer(lambda: case(self))

    def _answer(self, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except Exception as error:
            return {"refuses": sentence_of(str(error))}

    def topic(self, partitions: int = 2, name: str = "", records: bool = True, **configs: str) -> str:
        """A topic of this case; the first of its two partitions has v0 to v4 of the times 1000 to 1004, the second v5
        to v7 of the times 2000 to 2002."""
        topic = f"beside-{re.sub('[^a-z]+', '-', self.case.lower())[:100]}{name}"
        with Admin(self.bootstrap) as admin:
            settings = {"retention.ms": "-1", **{key.replace("_", "."): value for key, value in configs.items()}}
            admin.create_topic(topic, partitions=partitions, replication_factor=1, configs=settings)
        if records:
            self.write(topic, 0, range(5))
            if partitions > 1:
                self.write(topic, 1, range(5, 8), 1_995)
        return topic

    def write(self, topic: str, partition: int, numbers: Sequence[int], first_ms: int = 1_000) -> None:
        with Producer(self.bootstrap) as producer:
            for n in numbers:
                producer.send(topic, b"v%d" % n, b"k%d" % n, partition=partition, timestamp_ms=first_ms + n)

    def create_again(self, topic: str, partitions: int = 1) -> None:
        with Admin(self.bootstrap) as admin:
            admin.delete_topic(topic)
            for _ in range(UNTIL_CHANGED_TRIES):
                if topic not in admin.list_topics():
                    break
            admin.create_topic(topic, partitions=partitions, replication_factor=1, configs={"retention.ms": "-1"})

    def delete_records(self, topic: str, before: int) -> None:
        with Admin(self.bootstrap) as admin:
            admin.delete_records({TopicPartition(topic, 0): before})

    def frame(self, **options: str) -> "DataFrame":
        given = {"kafka.bootstrap.servers": self.bootstrap, **dotted({**self.always, **options})}
        return self.spark.read.format(self.source).options(**given).load()

    def rows(self, topic: str = "", **options: str) -> Answer:
        """The rows of a batch read as `partition:offset value`, in order."""
        if topic:
            options["subscribe"] = topic
        found = self.frame(**options).selectExpr("partition", "offset", "CAST(value AS STRING) AS value").collect()
        return [f"{row['partition']}:{row['offset']} {row['value']}" for row in sorted(found)]

    def each(self, **asks: Callable[[], Answer]) -> Answer:
        """Several answers of one case."""
        return {name: self._answer(ask) for name, ask in asks.items()}

    def run(self, name: str = "query", *, dies: bool = False, **options: str) -> Answer:
        """Run the stream with this name over all that is there, and return the values of each micro-batch that has
        some. `dies`: its first batch fails after it was read."""
        batches: dict[int, list[str]] = {}

        def keep(frame: "DataFrame", number: int) -> None:
            batches[number] = sorted(row[0] for row in frame.selectExpr("CAST(value AS STRING)").collect())
            if dies:
                raise RuntimeError("the query dies")

        given = {"kafka.bootstrap.servers": self.bootstrap, **dotted({**self.always, **options})}
        stream = self.spark.readStream.format(self.source).options(**given).load()
        writer = stream.writeStream.foreachBatch(keep).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.checkpoint(name))).start()
        try:
            query.awaitTermination()
        except Exception as error:
            if not dies or "the query dies" not in str(error):
                raise
        finally:
            query.stop()
        return [batch for _, batch in sorted(batches.items()) if batch]

    def checkpoint(self, name: str) -> Path:
        return self.folder / re.sub("[^a-z]+", "-", f"{self.case}-{name}")

    def save(self, columns: str, mode: str = "append", **options: str) -> None:
        """Write a row of these expressions, or several separated by a bar."""
        frame = self.spark.sql(" UNION ALL ".join(f"SELECT {row}" for row in columns.split("|")))
        writer = frame.coalesce(1).write.format(self.source)
        if mode:
            writer = writer.mode(mode)
        writer.options(**{"kafka.bootstrap.servers": self.bootstrap, **dotted(options)}).save()


def dotted(options: Mapping[str, str]) -> dict[str, str]:
    """Options whose names have two underscores for a dot."""
    return {name.replace("__", "."): value for name, value in options.items()}


def sentence_of(text: str) -> str:
    """What the last cause of an error says, in short and without what differs from run to run."""
    said = re.findall(CAUSE, text) or [text.partition("JVM stacktrace")[0]]
    return re.sub(r"\s+", " ", re.sub(NOISE, "", said[-1])).strip()[:SHOWN]
