"""The data files of a Delta table of rejected records, and how a commit takes them out."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow

from moldau.pipeline.tables.columns import REJECTED
from moldau.pipeline.tables.storage import Location, errors_in_a_sentence

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import RemoveAction

    from moldau.pipeline.tables.committing import RejectedFile

BATCH_ROWS = 16_384


class DeltaFile(NamedTuple):
    """A file in the log of a table; `fragment` is that of a `pyarrow.dataset`."""

    path: str
    records: int
    bytes: int
    fragment: Any
    where: str

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """Its rows in batches of these columns, null where the file does not have one. Raises TableError."""
        schema = pyarrow.schema([REJECTED.field(name) for name in names])
        with errors_in_a_sentence(self.where):
            scanner = self.fragment.scanner(
                schema=schema, batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1, use_threads=False
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield batch.cast(schema)


def rejected_files(where: Location, delta: "DeltaTable") -> list[DeltaFile]:
    """The files of the version that was read last."""
    with errors_in_a_sentence(where.uri):
        fragments = {fragment.path: fragment for fragment in delta.to_pyarrow_dataset().get_fragments()}
        listed = pyarrow.table(delta.get_add_actions(flatten=True))
        columns = [listed[name].to_pylist() for name in ("path", "num_records", "size_bytes")]
        return [
            DeltaFile(path, fragments[path].count_rows() if rows is None else rows, size, fragments[path], where.uri)
            for path, rows, size in zip(*columns, strict=True)
        ]


def removals(gone: "Sequence[RejectedFile]") -> "list[RemoveAction]":
    """The actions of a commit."""
    from deltalake.transaction import RemoveAction

    now_ms = time.time_ns() // 1_000_000
    return [RemoveAction(file.path, True, now_ms, file.bytes, {}) for file in gone if isinstance(file, DeltaFile)]
