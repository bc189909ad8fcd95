"""Reads the rows of a data file of a Delta table, or of a part of it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow

from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.storage import Location, errors_in_a_sentence, files_below

BATCH_ROWS = 32_768


class FilePart(NamedTuple):
    """Part `number` of `parts` of a data file, cut between row groups. `known` is what the table's log says about its
    rows: a `pyarrow.dataset.Expression` of partition values and statistics."""

    path: str
    known: Any
    number: int = 0
    parts: int = 1


def read_part(
    where: Location, columns: pyarrow.Schema, part: FilePart, names: Sequence[str], wanted: Any = None
) -> Iterator[Any]:
    """The rows of a part that pass the filter, in their order, as batches of the columns `names`. Columns that the file
    does not have are null. All rows of a file with views (below) come, so filter again. Raises TableError."""
    import pyarrow.dataset as dataset

    made = pyarrow.schema([columns.field(name) for name in names])
    with errors_in_a_sentence(where.uri):
        try:
            reader = dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us")
            file = reader.make_fragment(part.path, filesystem=files_below(where), partition_expression=part.known)
            if part.parts > 1:
                groups = [file.num_row_groups * at // part.parts for at in (part.number, part.number + 1)]
                if groups[0] == groups[1]:
                    return
                file = file.subset(row_group_ids=range(*groups))
            if wanted is not None and _has_views(file.physical_schema):
                wanted = None
            scanner = file.scanner(
                schema=columns, columns=list(names), filter=wanted, batch_size=BATCH_ROWS, batch_readahead=1,
                fragment_readahead=1, use_threads=False,
            )  # fmt: skip
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield batch.cast(made)
        except FileNotFoundError:
            raise TableError(
                f"{where.uri} has lost {part.path}: a vacuum removed it, and this version can no longer be read."
            ) from None


def _has_views(kinds: Iterable[pyarrow.Field]) -> bool:
    """Whether a file says that its text or bytes are views, as those of a `DELETE` by deltalake do: Arrow compares no
    views with a filter's values."""
    types = pyarrow.types
    return any(
        types.is_string_view(field.type)
        or types.is_binary_view(field.type)
        or (types.is_struct(field.type) and _has_views(field.type.fields))
        for field in kinds
    )
