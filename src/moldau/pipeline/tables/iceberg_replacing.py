"""The data files of an Iceberg table of rejected records, and how a transaction takes them out and adds others."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow
import pyarrow.parquet as parquet

from moldau.pipeline.tables.columns import REJECTED, TableError

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable
    from pyiceberg.table import Transaction

    from moldau.pipeline.tables.committing import RejectedFile

BATCH_ROWS = 16_384


class IcebergFile(NamedTuple):
    """A file of a table; `file` is pyiceberg's description of it."""

    path: str
    records: int
    file: Any
    io: Any

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Its rows in batches of these columns, null where the file does not have one. Raises TableError.

        Arrow reads the file itself: pyiceberg makes empty lists of null ones."""
        schema = pyarrow.schema([REJECTED.field(name) for name in names])
        try:
            with self.io.new_input(self.path).open() as stream:
                reader = parquet.ParquetFile(stream)
                there = [name for name in names if name in reader.schema_arrow.names]
                for batch in reader.iter_batches(BATCH_ROWS, columns=there, use_threads=False):
                    columns = [
                        batch.column(field.name).cast(field.type)
                        if field.name in there
                        else pyarrow.nulls(batch.num_rows, field.type)
                        for field in schema
                    ]
                    yield pyarrow.RecordBatch.from_arrays(columns, schema=schema)
        except (OSError, pyarrow.ArrowException) as error:
            raise TableError(f"{self.path} cannot be read: {str(error).splitlines()[0].rstrip('.')}.") from None


def rejected_files(table: "PyIcebergTable", name: str) -> list[IcebergFile]:
    """The files of the snapshot that was read last. Raises TableError if rows of them are deleted."""
    tasks = list(table.scan().plan_files()) if table.current_snapshot() else []
    if any(task.delete_files for task in tasks):
        raise TableError(f"{name} has delete files of another tool: run Spark's rewrite_data_files with it first.")
    return [IcebergFile(task.file.file_path, task.file.record_count, task.file, table.io) for task in tasks]


def replace(
    prepared: "Transaction", gone: "Sequence[RejectedFile]", paths: Sequence[str], about: Mapping[str, str]
) -> None:
    """Have a transaction take out these files and add those with the given paths."""
    from pyiceberg.io.pyarrow import parquet_files_to_data_files

    table = prepared._table
    with prepared.update_snapshot(dict(about)).overwrite() as snapshot:
        for one in gone:
            assert isinstance(one, IcebergFile)
            snapshot.delete_data_file(one.file)
        for file in parquet_files_to_data_files(table.io, prepared.table_metadata, iter(paths)):
            snapshot.append_data_file(file)
