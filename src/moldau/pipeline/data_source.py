# ruff: noqa: N802 (Spark names the methods)
"""The Spark data source `moldau`: topics as rows, read and written, in batch and as a stream, with the columns and
options of Spark's Kafka connector; with the option `table` a Delta table, read in batch.

`DefaultSource` of `pyspark_moldau` is this class, which is how Spark finds it by name. `source` reads, `sink` writes,
`table_source` reads tables; these two are imported when they are used, since each of Spark's Python processes imports
this module.
"""

import sys

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from moldau.pipeline.options import OptionError, read_options
from moldau.pipeline.sentences import in_a_sentence
from moldau.pipeline.source.batch import BatchReader, FilteringBatchReader
from moldau.pipeline.source.schema import check_schema, schema_of
from moldau.pipeline.source.stream import StreamReader
from moldau.pipeline.spark_versions import planned_with_filters


class MoldauSource(DataSource):
    """The data source behind `format("moldau")`; it refuses a wrong option with one sentence."""

    @classmethod
    def name(cls) -> str:
        return "moldau"

    def schema(self) -> StructType:
        with in_a_sentence():
            if self._reads_table:
                from moldau.pipeline.table_source.batch import schema_of_table
                from moldau.pipeline.table_source.options import read_table_options

                return schema_of_table(read_table_options(self.options))
            return schema_of(read_options(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        filtering = planned_with_filters(sys.modules.get("__main__"), sys.modules)
        with in_a_sentence():
            if self._reads_table:
                from moldau.pipeline.table_source.batch import FilteringTableReader, TableReader
                from moldau.pipeline.table_source.options import read_table_options

                of_table = read_table_options(self.options)
                return (FilteringTableReader if filtering and of_table.filter_pushdown else TableReader)(
                    of_table, schema
                )
            options = read_options(self.options)
            check_schema(schema, options)
            return (FilteringBatchReader if filtering and options.filter_pushdown else BatchReader)(options)

    @property
    def _reads_table(self) -> bool:
        return "table" in self.options or "path" in self.options

    def streamReader(self, schema: StructType) -> StreamReader:
        if self._reads_table:
            raise OptionError("A table is read in batch: use spark.read, or stream the topic itself.")
        options = read_options(self.options)
        check_schema(schema, options)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from moldau.pipeline.sink.batch import BatchWriter
        from moldau.pipeline.sink.options import read_sink_options

        with in_a_sentence():
            return BatchWriter(read_sink_options(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from moldau.pipeline.sink.options import read_sink_options
        from moldau.pipeline.sink.stream import StreamWriter

        with in_a_sentence():
            return StreamWriter(read_sink_options(self.options), schema)
