"""Where our answer is another one than the connector's: what ours is, and why. docs/coming-from-spark.md has each."""

from typing import NamedTuple

from tests.pipeline.beside.playing import Answer


class Difference(NamedTuple):
    """Our answer, of which a sentence may be the beginning, and the reason."""

    ours: Answer
    reason: str


FIRST_FIVE = ["0:0 v0", "0:1 v1", "0:2 v2", "0:3 v3", "0:4 v4"]
NO_LOSS_UNTOLD = "records that are lost are never skipped in silence, and new ones are read"

DIFFERENCES = {
    "which columns has a read": Difference(
        [["key", "binary"], ["value", "binary"], ["topic", "string"], ["partition", "int"], ["offset", "bigint"],
         ["timestamp", "timestamp"], ["timestampType", "int"], ["headers", "array<struct<key:string,value:binary>>"]],
        "headers belong to a record; includeHeaders=false leaves them out",
    ),
    "what if startingOffsets are beyond the end of the log": Difference(
        {"strict": {"refuses": "Option startingOffsets names offset 9 of "}, "lenient": []},
        "failOnDataLoss=false is what a job sets that goes on without lost records: it reads none, with a warning",
    ),
    "must a pattern match the whole name": Difference(
        {"short": FIRST_FIVE, "both": ["0:0 v0", "0:0 v20", *FIRST_FIVE[1:]]},
        "a pattern matches the whole name, as in Kafka's own consumer: clicks does not read clicks-test",
    ),
    "is a pattern a regular expression of Java": Difference(
        {"refuses": "Option subscribePattern is not a regular expression: bad escape"},
        "patterns are those of Python, which lack some classes of Java; no pattern is read as another one",
    ),
    "are single partitions assigned": Difference(
        {"one": ["1:0 v5", "1:1 v6", "1:2 v7"], "unknown": {"refuses": "Topic beside-are-single-partitions-assigned "}},
        "a partition that does not exist is a mistake",
    ),
    "how many tasks has a read": Difference(
        {"plain": 2, "at_least_four": 5, "of_two_records": 5},
        "maxRecordsPerPartition cuts the tasks of a batch read, too",
    ),
    "are records of aborted transactions read": Difference(
        {"plain": [*FIRST_FIVE, "0:7 committed"], "committed": [*FIRST_FIVE, "0:7 committed"]},
        "what was never committed is no result; isolation.level=read_uncommitted reads it",
    ),
    "is a misspelt option noticed": Difference(
        {"refuses": "The moldau source has no option 'startingoffset'; did you mean startingOffsets."},
        "an option without an effect is a mistake",
    ),
    "how large are batches with maxOffsetsPerTrigger": Difference(
        [3, 3, 2], "a batch has as many offsets as the option allows, where the connector rounds down by partition"
    ),
    "what if the topic of a stream is created again with fewer records": Difference(
        {"strict": {"refuses": "Topic beside-what-if-the-topic-of-a-stream-is-created-again-with-fewer-records was de"},
         "lenient": [["v10", "v11", "v12"]]},
        NO_LOSS_UNTOLD,
    ),
    "what if the topic of a stream is created again with more records": Difference(
        {"strict": {"refuses": "Topic beside-what-if-the-topic-of-a-stream-is-created-again-with-more-records was del"},
         "lenient": [[f"v{n}" for n in range(10, 18)]]},
        NO_LOSS_UNTOLD,
    ),
    "what if a topic of a stream is deleted": Difference(
        {"strict": {"refuses": "No topic has this name: beside-what-if-a-topic-of-a-stream-is-deletedx."},
         "lenient": [["v5"]]},
        "with failOnDataLoss=false a stream goes on with the topics that are left",
    ),
    "what is the time of a row with a column timestamp": Difference(
        "1000 ms", "a copy of a topic keeps the times of its records; leave the column out to have the time of writing"
    ),
    "may a write have no mode": Difference(
        {"refuses": 'The data source "moldau" cannot be written in the "ErrorIfExists" mode. Please use either the'},
        "Spark asks a source in Python for a mode: say append",
    ),
    "may acks be 1": Difference(
        {"refuses": "Option kafka.acks cannot be set for the sink: transactions need acks=all."},
        "the rows of a task are a transaction",
    ),
}  # fmt: skip
