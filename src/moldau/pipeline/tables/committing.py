"""How a load commits to a table of any format: exactly once, or not at all.

A load knows a table by `LoadedTable` and a warehouse by `LoadedWarehouse`. `table` and `warehouse` implement them for
Delta, `iceberg_table` and `iceberg_warehouse` for Iceberg. Both keep the same numbers in the commit that adds the
files: `moldau/TOPIC/PARTITION` is the next offset to load, `moldau/TOPIC/PARTITION/epoch` the leader epoch of the
record before it plus 1 (0: unknown), `moldau/TOPIC/topic-id` the id of the topic. A file that no commit names is not in
the table, whoever wrote it.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import pyarrow

from moldau.names import TopicPartition
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.data_file import DataFile, LiveFile, TableFormat, folder_of
from moldau.pipeline.tables.removals import Removed
from moldau.pipeline.tables.storage import Location, check_files, errors_in_a_sentence, sync_folders
from moldau.pipeline.wider_types import wider

COMMIT_ATTEMPTS: Final = 5
LOAD_ID: Final = "moldauLoad"
RECORDS: Final = "moldauRecords"
"""The keys under which a commit names its load and the number of its records, in the table's history."""

NO_EPOCH: Final = -1
Offsets = Mapping[TopicPartition, int]
LeaderEpochs = Mapping[TopicPartition, int]


class Conflict(TableError):
    """Another load has committed the same offsets first; nothing was added."""


class LoadedTable(Protocol):
    """A table that exists, as it was when it was opened or refreshed last. All methods raise TableError."""

    @property
    def where(self) -> Location:
        """The folder below which tasks write data files; their paths are relative to it."""

    @property
    def name(self) -> str:
        """How sentences name the table."""

    @property
    def columns(self) -> pyarrow.Schema:
        """The columns of the table, partition columns among them."""

    @property
    def partition_by(self) -> str:
        """As `--partition-by` names it."""

    @property
    def table_format(self) -> TableFormat:
        """How data files are written."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the key of a table that has one row per key (`--upsert`); none if it has all records."""

    def refresh(self) -> None:
        """See what was committed since."""

    def offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offset to load, for those of the partitions that were ever loaded."""

    def all_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """The next offset to load of every partition that was ever loaded."""

    def number(self, name: str) -> int | None:
        """A number that commits keep under this name."""

    def topic_id(self, topic: str) -> int | None:
        """The id of the topic that the rows are from (`short_id`); None if no load has noted it."""

    def offset_batches(self, partition: int, start: int, end: int) -> Iterator[Any]:
        """As `offsets_in`, as Arrow arrays."""

    def offsets_in(self, partition: int, start: int, end: int) -> list[int]:
        """The offsets of a partition that have a row, from `start` to before `end`."""

    def last_offset(self, partition: int, start: int, end: int) -> int | None:
        """The greatest of these offsets that has a row."""

    def removed(self, topic: str, recorded: Offsets) -> Removed | None:
        """Which rows below the `recorded` offsets other tools have removed since the last load, or since this was asked
        last and nothing was missing; None if none."""

    def rows(self, topic: str) -> int | None:
        """The number of rows that the table has at least, as the last load noted it; None if none has."""

    def count(self) -> int:
        """The number of rows, from the description of the files."""

    @property
    def file_columns(self) -> pyarrow.Schema:
        """The columns that data files have."""

    def live_files(self) -> list[LiveFile]:
        """The data files of this version."""

    def rows_of(self, file: LiveFile, columns: pyarrow.Schema) -> Iterator[Any]:
        """The rows of a file in their order, in batches; columns that it does not have are null."""

    def lacking(self, files: pyarrow.Schema) -> list[pyarrow.Field]:
        """The columns of `files` that are to be added first, those with new fields inside of structs, and those that
        are to be widened if the format can do that in a commit of metadata."""

    def add_columns(self, files: pyarrow.Schema) -> None:
        """Add or widen those columns that `lacking` returns, in a commit of their own; new ones are nullable."""

    def commit_once(
        self,
        load_id: str,
        files: Sequence[DataFile],
        kept: Mapping[str, int],
        removed: Sequence[str] | None = None,
        about: Mapping[str, int] = {},
    ) -> int | None:
        """Add the files and keep the numbers in one atomic step; None if another commit came first. Returns the
        version. Files that are `removed`, by their paths, are replaced in the version that was read, so any other
        commit comes first then, even if no file is removed. `about` is noted in the table's history."""

    def version_of(self, load_id: str) -> int | None:
        """The version that a load has committed recently, if it has."""


class LoadedWarehouse(Protocol):
    """Where the tables of topics, and those of their rejected records, are. All methods raise TableError."""

    def check(self) -> None:
        """Raise TableError if the warehouse cannot be loaded into."""

    def check_writable(self, topic: str, rejects: bool) -> None:
        """Raise TableError if the topic's table, or that of its rejected records where the load `rejects` some, is or
        would be in a local folder that this process may not write to. A table in an object store is not asked."""

    def table(self, topic: str) -> LoadedTable | None:
        """The table of a topic; None if nothing was ever loaded."""

    def create(
        self, topic: str, columns: pyarrow.Schema, partition_by: str, key_columns: Sequence[str] = ()
    ) -> LoadedTable:
        """Open the table of a topic, or create it. Safe beside another load that creates it."""

    def rejected(self, topic: str) -> LoadedTable | None:
        """The table of the rejected records of a topic; None if there is none yet."""

    def create_rejected(self, topic: str) -> LoadedTable:
        """Open the table of rejected records, or create it."""

    def place_of_rejected(self, topic: str) -> Location:
        """Where tasks write the rejected records of a topic, whose table may not exist yet."""


def commit(
    table: LoadedTable,
    load_id: str,
    files: Sequence[DataFile],
    start: Offsets,
    end: Offsets,
    topic_ids: Mapping[str, int] | None = None,
    epochs: LeaderEpochs | None = None,
    *,
    accepted: Removed | None = None,
) -> int:
    """Add the files and move the offsets of partitions from `start` to `end`: all of it or nothing. Returns the
    version that has it. Raises Conflict if the offsets are no longer at `start`; a partition that is not in `start`
    was never loaded. `topic_ids`, and the leader `epochs` of the records before `end`, are noted beside the offsets.
    The next load no longer speaks of an `accepted` removal."""
    flush_files(table, files)
    kept = kept_numbers(end, topic_ids or {}, epochs)
    topic, added = next(iter(end)).topic, sum(file.records for file in files)
    columns = table.columns
    for attempt in range(COMMIT_ATTEMPTS):
        if attempt:
            table.refresh()
            version = table.version_of(load_id)
            if version is not None:  # the store had our commit, though it reported a failure
                return version
            refuse_changed_types(table, columns)
            if table.removed(topic, start) != accepted:
                raise Conflict(
                    f"Rows were removed from {table.name} meanwhile; nothing was added to it, so run this load again."
                )
        check_offsets(table, start, end)
        rows = table.rows(topic) if accepted is None else None
        kept[rows_key(topic)] = (table.count() if rows is None else rows) + added
        version = table.commit_once(load_id, files, kept)
        if version is not None:
            return version
    raise TableError(f"Other writers kept changing {table.name}, so this load added nothing. Run it again.")


def refuse_changed_types(table: LoadedTable, before: pyarrow.Schema) -> None:
    """Raise Conflict if a column has another type than before: another one has widened it, and the files that are to
    be added have the narrower one, which readers of Delta refuse."""
    for field in table.columns:
        at = before.get_field_index(field.name)
        if at >= 0 and any(wider(field.name, before.field(at).type, field.type)):
            raise Conflict(
                f"Column {field.name} of {table.name} was widened meanwhile; nothing was added to the table, so run "
                "this load again."
            )


def flush_files(table: LoadedTable, files: Sequence[DataFile]) -> None:
    """Flush the names of files that are to be committed, whose contents are on disk. Raises TableError if one is
    gone."""
    with errors_in_a_sentence(table.where.uri):
        check_files(table.where, [file.path for file in files])
        sync_folders(table.where, {folder_of(file.partition_values) for file in files})


def kept_numbers(end: Offsets, topic_ids: Mapping[str, int], epochs: LeaderEpochs | None = None) -> dict[str, int]:
    """What a commit keeps beside the files: the next offsets, the ids of topics, and with `epochs` those of the records
    before the offsets."""
    kept = {offset_key(tp): offset for tp, offset in sorted(end.items())}
    if epochs is not None:
        kept |= {epoch_key(tp): epochs.get(tp, NO_EPOCH) + 1 for tp in sorted(end)}
    return kept | {topic_key(topic): number for topic, number in topic_ids.items()}


def epochs_of(table: LoadedTable, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The leader epochs that the last commit of each partition has noted, as far as they are known."""
    kept = {tp: table.number(epoch_key(tp)) for tp in partitions}
    return {tp: number - 1 for tp, number in kept.items() if number}


def check_offsets(table: LoadedTable, start: Offsets, end: Offsets) -> None:
    """Raise Conflict unless the offsets of the partitions in `end` are those in `start`."""
    there = table.offsets(list(end))
    if any(there.get(tp) != start.get(tp) for tp in end):
        raise Conflict(
            f"Another load has committed to {table.name} meanwhile; nothing was added to it, so run this load again."
        )


def offset_key(tp: TopicPartition) -> str:
    """The name under which a table keeps the next offset of a partition."""
    return f"moldau/{tp.topic}/{tp.partition}"


def epoch_key(tp: TopicPartition) -> str:
    """The name under which a table keeps the leader epoch of the last record that was loaded, plus 1."""
    return f"{offset_key(tp)}/epoch"


def topic_key(topic: str) -> str:
    """The name under which a table keeps the id of its topic."""
    return f"moldau/{topic}/topic-id"


def rows_key(topic: str) -> str:
    """The name under which a table keeps the number of rows that it has at least."""
    return f"moldau/{topic}/rows"


def short_id(topic_id: uuid.UUID) -> int:
    """The first 63 bits of a topic's id, as a table keeps it."""
    return topic_id.int >> 65
