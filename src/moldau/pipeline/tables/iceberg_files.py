"""The data files of an Iceberg table: their rows, and how a transaction replaces some of them.

pyiceberg reads a list of structs that is null as an empty one, so rows that are written anew would change. Therefore
Arrow itself reads a file if its columns are columns of the table by name. pyiceberg reads the others: files with delete
files, and files from before a column was renamed or dropped.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet as parquet

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Transaction
    from pyiceberg.table import Table as PyIcebergTable

BATCH_ROWS = 16_384
FIELD_ID = b"PARQUET:field_id"


def rows(table: "PyIcebergTable", task: "FileScanTask", columns: pyarrow.Schema) -> Iterator[Any]:
    """The rows of a file in their order, in batches of these columns, null where it does not have one."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow

    known = schema_to_pyarrow(table.schema())
    partitions = [table.schema().find_column_name(field.source_id) for field in table.spec().fields]
    with table.io.new_input(task.file.file_path).open() as stream:
        file = parquet.ParquetFile(stream)
        there = file.schema_arrow
        if not task.delete_files and _is_part(there, known) and all(name in there.names for name in partitions):
            names = [name for name in columns.names if name in there.names]
            for batch in file.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
                yield _in_columns(batch, columns)
            return
    names = [name for name in columns.names if name in known.names]
    scan = ArrowScan(table.metadata, table.io, table.schema().select(*names), AlwaysTrue())
    for batch in scan.to_record_batches([task]):
        yield _in_columns(batch, columns)


def _is_part(fields: Any, of: Any) -> bool:
    """Whether each field of a file is a field of the table by its name, and by its id if it has one."""
    for field in fields:
        at = of.get_field_index(field.name)
        if at < 0:
            return False
        other = of.field(at)
        number = (field.metadata or {}).get(FIELD_ID)
        if number is not None and number != (other.metadata or {}).get(FIELD_ID):
            return False
        if not _is_part_inside(field.type, other.type):
            return False
    return True


def _is_part_inside(kind: pyarrow.DataType, of: pyarrow.DataType) -> bool:
    types = pyarrow.types
    if types.is_struct(kind) and types.is_struct(of):
        return _is_part(kind.fields, of)
    if types.is_map(kind) and types.is_map(of):
        return _is_part_inside(kind.key_type, of.key_type) and _is_part_inside(kind.item_type, of.item_type)
    if hasattr(kind, "value_type") and hasattr(of, "value_type"):
        return _is_part_inside(kind.value_type, of.value_type)
    return not types.is_nested(kind)


def _in_columns(batch: Any, columns: pyarrow.Schema) -> Any:
    made = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pyarrow.nulls(batch.num_rows, field.type)
        for field in columns
    ]
    return pyarrow.RecordBatch.from_arrays(made, schema=columns)


def replace(
    table: "PyIcebergTable",
    prepared: "Transaction",
    removed: Collection[str],
    paths: Sequence[str],
    about: Mapping[str, str],
) -> None:
    """Have a transaction remove files by their paths, and add those with the given paths."""
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import parquet_files_to_data_files

    if prepared.table_metadata.name_mapping() is None:
        mapping = prepared.table_metadata.schema().name_mapping.model_dump_json()
        prepared.set_properties({"schema.name-mapping.default": mapping})
    gone = [task.file for task in table.scan().plan_files() if task.file.file_path in removed]
    with prepared.update_snapshot(snapshot_properties=dict(about)).overwrite() as snapshot:
        snapshot.delete_by_predicate(AlwaysTrue())  # the manifests to look into; what goes is named below
        for file in gone:
            snapshot.delete_data_file(file)
        for file in parquet_files_to_data_files(table.io, prepared.table_metadata, iter(paths)):
            snapshot.append_data_file(file)
