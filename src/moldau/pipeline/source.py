# ruff: noqa: N802 (Spark names the methods)
"""The Spark data source `moldau`: topics as rows, in batch and as a stream, with the schema of Spark's Kafka
connector.

`DefaultSource` of `pyspark_moldau` is this class, which is how Spark finds it by name. One Spark partition for each
topic partition (more with minPartitions); records arrive as Arrow batches of at most `BATCH_ROWS` rows, never as
Python rows.

A stream's offset is `{topic: {partition: next offset}}`, kept by Spark in its checkpoint. Partitions that appear
later are read from their first record. With `Trigger.AvailableNow` the ends are fixed when the query starts. The
source commits nothing to Kafka.
"""

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from moldau.client.fetching import read_columns
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.pipeline.options import EARLIEST, LATEST, Edge, OptionError, Options, read_options
from moldau.pipeline.positions import (
    DataLost,
    Offsets,
    at_edge,
    earliest,
    latest,
    subscribed,
    waits_for_transaction,
    within_log,
)
from moldau.pipeline.ranges import OffsetRange, between, cut, ration

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 32_768
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", ArrayType(HEADER)),
    ]
)


class MoldauSource(DataSource):
    """The data source behind `spark.read.format("moldau")`; it refuses a wrong option with one sentence."""

    def __init__(self, options: MutableMapping[str, str]):
        super().__init__(options)
        self.read_options = read_options(options)

    @classmethod
    def name(cls) -> str:
        return "moldau"

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> "BatchReader":
        _check_schema(schema)
        options = self.read_options
        if options.offsets_per_trigger_max:
            raise OptionError("Option maxOffsetsPerTrigger is for streams; this is a batch read.")
        starting = options.starting or Edge(EARLIEST)
        if starting.timestamp_ms is None and (starting.default == LATEST or LATEST in dict(starting.offsets).values()):
            raise OptionError("A batch read cannot start at latest: it would read nothing.")
        return BatchReader(options, starting, options.ending or Edge(LATEST))

    def streamReader(self, schema: StructType) -> "StreamReader":
        _check_schema(schema)
        if self.read_options.ending:
            raise OptionError("Options endingOffsets and endingTimestamp are for batch reads; a stream has no end.")
        return StreamReader(self.read_options)


class RangePartition(InputPartition):
    """The offset range that one Spark task reads."""

    def __init__(self, part: OffsetRange):
        super().__init__(part)
        self.part = part


class BatchReader(DataSourceReader):
    """A batch read: plans on the driver between the start and end offsets, reads in the tasks."""

    def __init__(self, options: Options, starting: Edge, ending: Edge):
        self._options = options
        self._starting = starting
        self._ending = ending

    def partitions(self) -> list[InputPartition]:
        options = self._options
        partitions = subscribed(options.bootstrap_servers, options.subscription)
        first = earliest(options.bootstrap_servers, partitions)
        start = within_log(at_edge(options, self._starting, partitions, "starting"), first, options.fail_on_data_loss)
        end = _not_beyond_log(
            at_edge(options, self._ending, partitions, "ending"),
            latest(options.bootstrap_servers, partitions, options.isolation_level), options,
        )  # fmt: skip
        return _plan(between(start, end), options.partitions_min)

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return read_range(self._options, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: Spark requests the next end, then the ranges up to it. Spark keeps the positions; this object has no
    state."""

    def __init__(self, options: Options):
        self._options = options
        self._fixed_end: Offsets | None = None

    def initialOffset(self) -> dict[str, Any]:
        options = self._options
        partitions = subscribed(options.bootstrap_servers, options.subscription)
        return to_tree(at_edge(options, options.starting or Edge(LATEST), partitions, "starting"))

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.offsets_per_trigger_max
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._fixed_end = self._log_ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin = from_tree(start)
        end = self._log_ends() if self._fixed_end is None else dict(self._fixed_end)
        new = [tp for tp in sorted(end) if tp not in begin]
        begin.update(earliest(self._options.bootstrap_servers, new) if new else {})
        for tp, offset in begin.items():
            self._check_still_there(tp, offset, end)
        if isinstance(limit, ReadMaxRows):
            end = ration(begin, end, limit.max_rows)
        return to_tree({**begin, **end})

    def reportLatestOffset(self) -> dict[str, Any]:
        return to_tree(self._log_ends())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        options, begin, until = self._options, from_tree(start), from_tree(end)
        there = set(subscribed(options.bootstrap_servers, options.subscription))
        gone = [tp for tp in sorted(until) if tp not in there]
        for tp in gone:
            if until.pop(tp) > begin.get(tp, 0) and options.fail_on_data_loss:
                raise DataLost(f"Partition {tp.partition} of topic {tp.topic} is gone; {LOSS_HINT}.")
        first = earliest(options.bootstrap_servers, sorted(until))
        begin = {tp: begin.get(tp, first[tp]) for tp in until}
        return _plan(between(within_log(begin, first, options.fail_on_data_loss), until), options.partitions_min)

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        return read_range(self._options, partition)

    def _log_ends(self) -> Offsets:
        partitions = subscribed(self._options.bootstrap_servers, self._options.subscription)
        return latest(self._options.bootstrap_servers, partitions, self._options.isolation_level)

    def _check_still_there(self, tp: TopicPartition, offset: int, end: Offsets) -> None:
        """Raise `DataLost` if the partition is gone or ends before `offset`; without failOnDataLoss do nothing."""
        if tp in end and end[tp] >= offset:
            return
        if tp in end and waits_for_transaction(self._options.bootstrap_servers, tp, offset):
            end[tp] = offset
            return
        if self._options.fail_on_data_loss:
            what = f"ends at offset {end[tp]}, before {offset} which was already read" if tp in end else "is gone"
            raise DataLost(f"Partition {tp.partition} of topic {tp.topic} {what}; {LOSS_HINT}.")
        end[tp] = offset


LOSS_HINT = "set failOnDataLoss to false to continue with the remaining records"


def read_range(options: Options, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
    """One task's records. Offsets deleted since planning are an error with failOnDataLoss, else skipped."""
    if not isinstance(partition, RangePartition):
        return  # Spark passes one empty partition if the plan was empty
    part = partition.part
    position = part.start
    while True:
        try:
            for batch in read_columns(
                options.bootstrap_servers, part.topic, part.partition, position, part.end,
                isolation_level=options.isolation_level,
            ):  # fmt: skip
                for at in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(at, BATCH_ROWS)
                position = batch.column("offset")[-1].as_py() + 1
            return
        except KafkaError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
            first = earliest(options.bootstrap_servers, [part.topic_partition])
            start = within_log({part.topic_partition: position}, first, options.fail_on_data_loss)
            if start[part.topic_partition] == position:
                raise
            position = start[part.topic_partition]
            if position >= part.end:
                return


def to_tree(offsets: Offsets) -> dict[str, Any]:
    """Offsets as JSON: readable in the checkpoint, and valid as startingOffsets."""
    tree: dict[str, Any] = {}
    for tp in sorted(offsets):
        tree.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return tree


def from_tree(tree: dict[str, Any]) -> Offsets:
    return {TopicPartition(topic, int(p)): int(tree[topic][p]) for topic in tree for p in tree[topic]}


def _plan(ranges: list[OffsetRange], partitions_min: int) -> list[InputPartition]:
    if 0 < len(ranges) < partitions_min:
        ranges = cut(ranges, max(1, sum(part.size for part in ranges) // partitions_min))
    return [RangePartition(part) for part in ranges]


def _not_beyond_log(wanted: Offsets, ends: Offsets, options: Options) -> Offsets:
    for tp, offset in sorted(wanted.items()):
        if offset > ends[tp] and options.fail_on_data_loss:
            open_there = waits_for_transaction(options.bootstrap_servers, tp, offset)
            what = "a transaction is open from" if open_there else "the log ends at"
            raise OptionError(f"Option endingOffsets names offset {offset} of {tp}, but {what} {ends[tp]}.")
    return {tp: min(offset, ends[tp]) for tp, offset in wanted.items()}


def _check_schema(schema: StructType) -> None:
    if schema.simpleString() != SCHEMA.simpleString():
        raise OptionError(f"The moldau source has the fixed schema {SCHEMA.simpleString()}; leave out .schema().")
