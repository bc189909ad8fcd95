# ruff: noqa: N802 (Spark names the methods)
"""The Spark data source `moldau`: topics as rows, in batch and as a stream, with the schema of Spark's Kafka
connector.

`DefaultSource` of `pyspark_moldau` is this class, which is how Spark finds it by name. One Spark partition for each
topic partition (more with minPartitions); records arrive as Arrow batches, never as Python rows.
"""

from collections.abc import MutableMapping

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from moldau.pipeline.options import EARLIEST, LATEST, Edge, OptionError, read_options
from moldau.pipeline.source.batch import BatchReader
from moldau.pipeline.source.schema import SCHEMA
from moldau.pipeline.source.stream import StreamReader


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


def _check_schema(schema: StructType) -> None:
    if schema.simpleString() != SCHEMA.simpleString():
        raise OptionError(f"The moldau source has the fixed schema {SCHEMA.simpleString()}; leave out .schema().")
