"""The columns of a table as Spark's: Delta writes a schema as Spark's own JSON."""

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from moldau.pipeline.edges import OptionError
from moldau.pipeline.table_source.options import TableOptions

if TYPE_CHECKING:
    from deltalake import DeltaTable

NULLABLE = ("nullable", "containsNull", "valueContainsNull")


def spark_schema(delta: "DeltaTable", options: TableOptions) -> StructType:
    """The columns that the options choose, in their order. All are nullable, as the batches that are read. Raises
    `OptionError`."""
    whole = StructType.fromJson(json.loads(delta.schema().to_json(), object_hook=_nullable))
    if options.columns is None:
        return whole
    known = {name.lower(): name for name in whole.names}
    for name in options.columns:
        if name.lower() not in known:
            raise OptionError(f"Option columns names {name!r}, which is not one of {', '.join(whole.names)}.")
    return StructType([whole[known[name.lower()]] for name in options.columns])


def check_table_schema(schema: StructType, delta: "DeltaTable", options: TableOptions) -> None:
    """Raise `OptionError` for a schema that is not a part of the table's. The table's may have grown since Spark asked
    for it."""
    whole = spark_schema(delta, TableOptions(options.where))
    there = {field.name: field.dataType.simpleString() for field in whole}
    for field in schema:
        if there.get(field.name) != field.dataType.simpleString():
            raise OptionError(
                f"The table {options.where.uri} has no column {field.name} of type {field.dataType.simpleString()}; "
                "leave out .schema(), and choose columns with the option columns."
            )


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    node |= {name: True for name in NULLABLE if name in node}
    return node | {"metadata": {}} if "metadata" in node else node
