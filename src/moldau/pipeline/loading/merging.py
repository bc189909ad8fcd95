"""The driver's part of `--upsert`: one commit replaces the rows whose keys were loaded, and moves the offsets on.

Copy-on-write, by the `_key` columns of the whole table: files with a row that is replaced or deleted are written anew
without it, and the files of the tasks come beside them. Nothing of it counts before the commit, and the commit is made
only if the newest version is still the one whose rows were compared; otherwise the comparison is made again. So of two
loads at once, or of a load and a compaction, none undoes what the other did.

Memory holds the keys of one load, once, and `CHUNK_ROWS` keys of the table; rows pass in batches.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow
import pyarrow.compute as compute

from moldau.pipeline.loading.settings import Commit
from moldau.pipeline.loading.writing import ROW_GROUP_BYTES, Layout, OneFile
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.committing import (
    COMMIT_ATTEMPTS,
    Conflict,
    LeaderEpochs,
    LoadedTable,
    Offsets,
    check_offsets,
    flush_files,
    kept_numbers,
    refuse_changed_types,
    rows_key,
)
from moldau.pipeline.tables.data_file import DataFile, LiveFile, folder_of
from moldau.pipeline.tables.file_parts import FilePart, read_part
from moldau.pipeline.tables.newest import ORDER, identities, is_newer, newest, numbers, replaced
from moldau.pipeline.tables.own_partitions import is_partition
from moldau.pipeline.tables.storage import files_below

CHUNK_ROWS: Final = 1_000_000
FILE_BYTES: Final = 256 * 1024 * 1024
"""Rewritten files of one partition are put together up to this size in memory: a row that changes has its whole file
written anew, so larger ones would cost more than they save."""
KEY_BYTES_MAX: Final = 1024**3


class Staged(NamedTuple):
    """What the tasks of a load have written: files of rows, and files of tombstones."""

    files: Sequence[DataFile]
    tombstones: Sequence[DataFile]


class Merge(NamedTuple):
    """A commit to be made: files to add and to remove, and how many rows are put, and taken away."""

    added: Sequence[DataFile] = ()
    removed: Sequence[str] = ()
    put: int = 0
    taken: int = 0
    deleted: int = 0


class Incoming(NamedTuple):
    """The newest record of each key of a load: `key`, `ORDER`, `file` and `row`; the numbers of files go on with those
    of tombstones. `others` are the newest records in other partitions of these keys, which replace rows too."""

    rows: Any
    files: Sequence[DataFile]
    others: Any = None

    def deletes(self, rows: Any) -> Any:
        """Whether rows of `rows` are tombstones."""
        return compute.greater_equal(rows["file"], len(self.files))


def upsert(
    table: LoadedTable,
    load_id: str,
    staged: Staged,
    start: Offsets,
    end: Offsets,
    topic_ids: Mapping[str, int],
    compression: str,
    epochs: LeaderEpochs | None = None,
) -> Commit:
    """Put the staged rows, take the rows that they replace and that tombstones delete, and move the offsets of
    partitions from `start` to `end`: all of it or nothing. `topic_ids` and `epochs` are noted as by `commit`. Raises
    Conflict and TableError."""
    topic = next(iter(end)).topic
    incoming = _incoming(table, staged)
    merge, columns = Merge(), table.columns
    for attempt in range(COMMIT_ATTEMPTS):
        if attempt:
            table.refresh()
            version = table.version_of(load_id)
            if version is not None:  # the store had our commit, though it reported a failure
                return _done(topic, version, merge)
            refuse_changed_types(table, columns)
        if table.removed(topic, start) is not None:
            raise Conflict(
                f"Rows were removed from {table.name} meanwhile; nothing was changed, so run this load again."
            )
        check_offsets(table, start, end)
        merge = _merged(table, incoming, compression, f"merge-{load_id}-{attempt}")
        flush_files(table, merge.added)
        kept = kept_numbers(end, topic_ids, epochs) | {rows_key(topic): table.count() + merge.put - merge.taken}
        version = table.commit_once(load_id, merge.added, kept, removed=merge.removed)
        if version is not None:
            _forget(table, staged.tombstones)
            return _done(topic, version, merge)
    raise TableError(f"Other writers kept changing {table.name}, so this load changed nothing. Run it again.")


def _done(topic: str, version: int, merge: Merge) -> Commit:
    size = sum(file.bytes for file in merge.added)
    return Commit(topic, version, len(merge.added), merge.put, size, 0, merge.deleted)


def _incoming(table: LoadedTable, staged: Staged) -> Incoming:
    """The newest record of each key among the staged ones."""
    files = [*staged.files, *staged.tombstones]
    pieces, size = [], 0
    for number, file in enumerate(files):
        for piece in _keyed(table, _written(table, file, _key_columns(table)), number):
            pieces.append(piece)
            size += piece.nbytes
            if size > KEY_BYTES_MAX:
                raise TableError(
                    f"The keys of this load of {table.name} need more than {KEY_BYTES_MAX // 1024**3} GiB of memory: "
                    "load fewer records at a time, with --max-records."
                )
    if not pieces:
        return Incoming(None, staged.files)
    rows = pyarrow.Table.from_batches(pieces).combine_chunks()
    pieces.clear()  # or memory would hold every key once more
    places = newest(rows)
    others = rows.take(places.of_other_partitions).select(["key", "_partition", "_offset"])
    if len(places.of_keys) < rows.num_rows:
        rows = rows.take(places.of_keys).combine_chunks()
    return Incoming(rows, staged.files, others)


def _keyed(table: LoadedTable, batches: Iterable[Any], number: int) -> Iterator[Any]:
    """Batches of the columns of `Incoming.rows`, of the file with this number."""
    at = 0
    for batch in batches:
        columns = {"key": identities(batch, table.key_columns)} | {name: batch[name] for name in ORDER}
        columns["file"] = pyarrow.repeat(pyarrow.scalar(number, pyarrow.int32()), batch.num_rows)
        columns["row"] = numbers(at, batch.num_rows)
        at += batch.num_rows
        yield pyarrow.RecordBatch.from_pydict(columns)


class Compared(NamedTuple):
    """Which rows of which live files go, by the number of the file, which incoming rows lose against a row that stays,
    and how many rows tombstones delete."""

    gone: Mapping[int, Any]
    lost: Any
    deleted: int


def _compared(table: LoadedTable, live: Sequence[LiveFile], incoming: Incoming) -> Compared:
    """Compare the keys of all rows of the table with the incoming ones."""
    keys = incoming.rows["key"].combine_chunks()
    gone: dict[int, list[Any]] = {}
    lost: list[Any] = []
    deleted = 0
    for chunk in _chunks(table, live):
        places = compute.index_in(chunk["key"], value_set=keys)
        known, places = chunk.filter(places.is_valid()), places.drop_null()
        if not known.num_rows:
            continue
        mine = incoming.rows.take(places).combine_chunks().to_batches()[0]
        newer = compute.or_(is_newer(mine, known), replaced(known, incoming.others))
        lost.append(places.filter(compute.invert(newer)))
        deleted += compute.and_(newer, incoming.deletes(mine)).true_count
        taken = known.filter(newer)
        for number in compute.unique(taken["file"]).to_pylist():
            rows = taken.filter(compute.equal(taken["file"], number))["row"]
            gone.setdefault(number, []).append(rows)
    none = pyarrow.array([], pyarrow.int32())
    return Compared(
        {number: pyarrow.concat_arrays(rows) for number, rows in gone.items()},
        pyarrow.concat_arrays([none, *lost]),
        deleted,
    )


def _chunks(table: LoadedTable, live: Sequence[LiveFile]) -> Iterator[Any]:
    """The keys of the table, as `_keyed` has them, about `CHUNK_ROWS` at a time."""
    waiting: list[Any] = []
    rows = 0
    for number, file in enumerate(live):
        for batch in _keyed(table, table.rows_of(file, _named(table, _key_columns(table))), number):
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= CHUNK_ROWS:
                yield pyarrow.concat_batches(waiting)
                waiting, rows = [], 0
    if waiting:
        yield pyarrow.concat_batches(waiting)


def _merged(table: LoadedTable, incoming: Incoming, compression: str, stem: str) -> Merge:
    """Compare the newest version with what comes in, and write what has to be written anew."""
    if incoming.rows is None:
        return Merge()
    live = table.live_files()
    compared = _compared(table, live, incoming)
    rewriting, columns = Rewriting(table, compression, stem), table.file_columns.names
    added, put = [], 0
    for number, rows in _staying(incoming, compared.lost).items():
        file = incoming.files[number]
        put += len(rows)
        if len(rows) == file.records:
            added.append(file)
        else:
            rewriting.write(_written(table, file, columns), file.partition_values, rows)
    for number in sorted(compared.gone, key=lambda one: folder_of(live[one].partition_values)):
        old = live[number]
        if len(compared.gone[number]) < old.records:
            rewriting.write(
                table.rows_of(old, table.file_columns), old.partition_values, compared.gone[number], without=True
            )
    taken = sum(map(len, compared.gone.values()))
    removed = [live[number].path for number in compared.gone]
    return Merge([*added, *rewriting.finish()], removed, put, taken, compared.deleted)


def _staying(incoming: Incoming, lost: Any) -> dict[int, Any]:
    """The rows of each staged file that are put, by the number of the file."""
    places = numbers(0, incoming.rows.num_rows)
    put = compute.invert(
        compute.or_(incoming.deletes(incoming.rows), compute.is_in(places, lost.cast(pyarrow.int64())))
    )
    rows = incoming.rows.select(["file", "row"]).filter(put)
    staying = {}
    for number in sorted(compute.unique(rows["file"]).to_pylist()):
        staying[number] = rows.filter(compute.equal(rows["file"], number))["row"].combine_chunks()
    return staying


class Rewriting:
    """Writes files anew with some of their rows; those of one partition follow each other into one file, up to
    `FILE_BYTES`."""

    def __init__(self, table: LoadedTable, compression: str, stem: str):
        self._layout = Layout(table.where, table.file_columns, "none", "_timestamp", compression, table.table_format)
        self._stem = stem
        self._created = 0
        self._file: OneFile | None = None
        self._folder = ""
        self._done: list[DataFile] = []

    def write(
        self, batches: Iterable[Any], values: Mapping[str, str | None], rows: Any, *, without: bool = False
    ) -> None:
        """Write these rows of a file, by their numbers, or all `without` them. A partition's files come together."""
        at = 0
        for batch in batches:
            named = compute.is_in(numbers(at, batch.num_rows), value_set=rows)
            at += batch.num_rows
            kept = batch.filter(compute.invert(named) if without else named)
            if kept.num_rows:
                self._write(kept.cast(self._layout.columns), values)

    def finish(self) -> list[DataFile]:
        self._close()
        return self._done

    def _write(self, rows: Any, values: Mapping[str, str | None]) -> None:
        folder = folder_of(values)
        if self._file is not None and (folder != self._folder or self._file.bytes_added >= FILE_BYTES):
            self._close()
        if self._file is None:
            name = f"{self._stem}-{self._created}.parquet"
            self._file = OneFile(self._layout, f"{folder}/{name}" if folder else name, values)
            self._folder = folder
            self._created += 1
        self._file.add(rows)
        if self._file.rows_bytes >= ROW_GROUP_BYTES:
            self._file.write()

    def _close(self) -> None:
        if self._file is not None:
            self._done.append(self._file.close())
            self._file = None


def _written(table: LoadedTable, file: DataFile, columns: Sequence[str]) -> Iterator[Any]:
    """The rows of a file of a task, in their order."""
    known = is_partition(table.columns, dict(file.partition_values))
    return read_part(table.where, table.columns, FilePart(file.path, known), columns)


def _key_columns(table: LoadedTable) -> list[str]:
    return [*table.key_columns, *ORDER]


def _named(table: LoadedTable, names: Sequence[str]) -> pyarrow.Schema:
    return pyarrow.schema([table.columns.field(name) for name in names])


def _forget(table: LoadedTable, tombstones: Sequence[DataFile]) -> None:
    """Remove files that no version names; `vacuum` removes those that are left."""
    for file in tombstones:
        with contextlib.suppress(OSError):
            files_below(table.where).delete_file(file.path)
