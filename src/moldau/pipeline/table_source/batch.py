# ruff: noqa: N802 (Spark names the methods)
"""A batch read of a version of a table: planned on the driver, where filters leave out files, and read in the tasks."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from moldau.pipeline.sentences import in_a_sentence
from moldau.pipeline.table_source.filters import expression
from moldau.pipeline.table_source.options import TableOptions
from moldau.pipeline.table_source.schema import check_table_schema, spark_schema
from moldau.pipeline.tables.file_parts import FilePart, read_part
from moldau.pipeline.tables.versions import at_version, columns_of, portions

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.datasource import Filter


class FilesPartition(InputPartition):
    """What one Spark task reads."""

    def __init__(self, parts: list[FilePart]):
        super().__init__(parts)
        self.parts = parts


class TableReader(DataSourceReader):
    """Reads the version that was the newest when the read was planned, or the one that the options name."""

    def __init__(self, options: TableOptions, schema: StructType):
        delta = at_version(options.where, options.version, options.time)
        check_table_schema(schema, delta, options)
        self._options = options
        self._version = delta.version()
        self._columns = columns_of(delta)
        self._names = schema.names
        self._wanted: Any = None

    def partitions(self) -> list[InputPartition]:
        where = self._options.where
        with in_a_sentence():
            delta = at_version(where, self._version)
            return [
                FilesPartition(parts) for parts in portions(where, delta, self._wanted, self._options.partitions_min)
            ]

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        if not isinstance(partition, FilesPartition):
            return  # Spark passes one empty partition if the plan was empty
        with in_a_sentence():
            for part in partition.parts:
                yield from read_part(self._options.where, self._columns, part, self._names, self._wanted)

    def _filter(self, filters: "Iterable[Filter]") -> None:
        self._wanted = expression(filters, self._columns)


class FilteringTableReader(TableReader):
    """A read that is given Spark's filters; Spark applies them all again."""

    def pushFilters(self, filters: list["Filter"]) -> Iterable["Filter"]:
        self._filter(filters)
        return filters


def schema_of_table(options: TableOptions) -> StructType:
    """The columns of the table as Spark's. Raises TableError and `OptionError`."""
    return spark_schema(at_version(options.where, options.version, options.time), options)
