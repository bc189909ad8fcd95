"""One Delta table: which offsets it has, and the one atomic step that adds files and moves the offsets on.

A commit is one entry of the table's log, made by the `deltalake` package under a version that must not exist. It holds
the added files and an application transaction `moldau/TOPIC/PARTITION` for each loaded partition, whose version is the
next offset to load. Delta refuses a commit if another one has moved an application transaction of it since the table
was read, so two loads of the same offsets cannot both win. A file that no commit names is not in the table, whoever
wrote it.
"""

import logging
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow
import pyarrow.compute as compute

from moldau.names import TopicPartition
from moldau.pipeline.tables import delta_log
from moldau.pipeline.tables.columns import (
    PARTITION_COLUMNS,
    WITH_STATISTICS,
    TableError,
    TableGone,
    check_structs,
    missing,
    names_of_partitions,
)
from moldau.pipeline.tables.committing import (
    COMMIT_ATTEMPTS,
    LOAD_ID,
    RECORDS,
    Offsets,
    commit,
    offset_key,
    refuse_changed_types,
    rows_key,
    topic_key,
)
from moldau.pipeline.tables.data_file import DataFile, LiveFile, TableFormat, statistics
from moldau.pipeline.tables.file_parts import FilePart, read_part
from moldau.pipeline.tables.own_partitions import text_of
from moldau.pipeline.tables.removals import Removed
from moldau.pipeline.tables.storage import (
    Location,
    entry_marks,
    errors_in_a_sentence,
    remove_torn_entry,
    sync_commit,
)
from moldau.pipeline.tables.widening import refuse_wider

if TYPE_CHECKING:
    from deltalake import DeltaTable

logger = logging.getLogger(__name__)

CHECKPOINT_INTERVAL = 20
PARTITIONS_MAX = 100_000
PARTITIONS_GAP = 32
"""So many partitions in a row may have no record between two that have some."""
KEY_COLUMNS = "moldau.keyColumns"
"""The table property of a table with one row per key: the columns of the key, separated by commas."""


class Listed(NamedTuple):
    """A data file in the log of a table; `path` is relative to the table."""

    path: str
    bytes: int
    records: int
    modified_ms: int


class Table:
    """A table that exists, as it was when it was opened or refreshed last."""

    table_format: TableFormat = "delta"

    def __init__(self, where: Location, delta: "DeltaTable"):
        self.where = where
        self._delta = delta
        self._checked: int | None = None
        self._looked_at: int | None = None
        self._entry = entry_marks(where, self.version)

    @staticmethod
    def exists(where: Location) -> bool:
        from deltalake import DeltaTable

        if not where.may_have_something():
            return False
        with errors_in_a_sentence(where.uri):
            return DeltaTable.is_deltatable(where.uri, dict(where.options) or None)

    @classmethod
    def open(cls, where: Location) -> "Table | None":
        """The table at a place, or None if there is none. A torn newest entry of its log is removed."""
        if not cls.exists(where):
            return None
        try:
            return cls(where, opened(where))
        except TableError:
            if not remove_torn_entry(where):
                raise
        return cls.open(where)

    @classmethod
    def create(
        cls, where: Location, columns: pyarrow.Schema, partition_by: Sequence[str], key_columns: Sequence[str] = ()
    ) -> "Table":
        """Open a table, or create it with these columns, partition columns among them. Safe beside another one who
        creates it. With `key_columns` it is to have one row per key."""
        from deltalake import DeltaTable, Schema

        check_structs(columns)
        configuration = {
            "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
            "delta.dataSkippingStatsColumns": ",".join(name for name in WITH_STATISTICS if name in columns.names),
        }
        if key_columns:
            configuration[KEY_COLUMNS] = ",".join(key_columns)
        with errors_in_a_sentence(where.uri):
            if where.is_local:
                where.path.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                where.uri, Schema.from_arrow(columns), mode="ignore", partition_by=list(partition_by),
                configuration=configuration, storage_options=dict(where.options) or None, raise_if_key_not_exists=False,
            )  # fmt: skip
            sync_commit(where, 0)
        return cls(where, opened(where))

    def refresh(self) -> None:
        """See what was committed since. Raises TableError if another table has taken the place of this one."""
        if entry_marks(self.where, self.version) != self._entry:
            self._refuse_another()
        try:
            with errors_in_a_sentence(self.where.uri):
                self._delta.update_incremental()
        except TableError:
            self._refuse_another()
            raise
        self._entry = entry_marks(self.where, self.version)

    def _refuse_another(self) -> None:
        """Raise TableError if the table is gone, or if there is one of another id: their versions do not go on from
        those that were read."""
        if not Table.exists(self.where) or opened(self.where).metadata().id != self._delta.metadata().id:
            raise TableGone(self.name)

    @property
    def name(self) -> str:
        return self.where.uri

    @property
    def version(self) -> int:
        return int(self._delta.version())

    @property
    def columns(self) -> pyarrow.Schema:
        """The columns of the table, partition columns among them."""
        return pyarrow.schema(self._delta.schema().to_arrow())

    @property
    def partition_columns(self) -> list[str]:
        return list(self._delta.metadata().partition_columns)

    @property
    def partition_by(self) -> str:
        """As `--partition-by` names it."""
        for name in PARTITION_COLUMNS:
            if names_of_partitions(name) == self.partition_columns:
                return name
        return ",".join(self.partition_columns)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the key of a table that has one row per key (`--upsert`); none if it has all records."""
        kept = self._delta.metadata().configuration.get(KEY_COLUMNS)
        return tuple(kept.split(",")) if kept else ()

    def offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offset to load, for those of the partitions that were ever loaded."""
        with errors_in_a_sentence(self.where.uri):
            offsets = {tp: self._delta.transaction_version(offset_key(tp)) for tp in partitions}
        return {tp: int(offset) for tp, offset in offsets.items() if offset is not None}

    def all_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """The next offset to load of every partition that was ever loaded.

        deltalake lists no application transactions, so each is asked for: up to the greatest partition that has a row
        (`PARTITIONS_MAX` at most), and then until `PARTITIONS_GAP` of them are missing."""
        actions = pyarrow.table(self._delta.get_add_actions(flatten=True))
        name = "max._partition"
        greatest = compute.max(actions[name]).as_py() if name in actions.column_names else None
        last = min(greatest or 0, PARTITIONS_MAX)
        offsets: dict[TopicPartition, int] = {}
        number = missing_now = 0
        while number <= last or missing_now < PARTITIONS_GAP:
            tp = TopicPartition(topic, number)
            there = self.offsets([tp])
            offsets |= there
            number, missing_now = number + 1, 0 if there else missing_now + 1
        return offsets

    def topic_id(self, topic: str) -> int | None:
        """The id of the topic that the rows are from (`short_id`); None if no load has noted it."""
        return self.number(topic_key(topic))

    def rows(self, topic: str) -> int | None:
        """The number of rows that the table has at least, as the last load noted it; None if none has."""
        return self.number(rows_key(topic))

    def number(self, name: str) -> int | None:
        """A number that commits keep under this name, as application transactions."""
        with errors_in_a_sentence(self.where.uri):
            value = self._delta.transaction_version(name)
        return None if value is None else int(value)

    def count(self) -> int:
        """The number of rows, from the description of the files."""
        records = [file.records for file in self.files()]
        if all(one is not None for one in records):
            return sum(records)
        with errors_in_a_sentence(self.where.uri):
            return int(self.dataset().count_rows())

    def removed(self, topic: str, recorded: Offsets) -> Removed | None:
        """Which rows below the `recorded` offsets other tools have removed since the last load, or since this was asked
        last and nothing was missing; None if none. Of a table with one row per key also: which they brought back."""
        self._looked_at = self.version
        if self._checked == self.version:
            return None
        by_partition = {tp.partition: at for tp, at in recorded.items()}
        window = delta_log.since(self.where, self._checked, self.version)
        loss = delta_log.removed(self.where, window, by_partition, bool(self.key_columns))
        if loss is None and not window.whole:
            at_least = self.rows(topic)
            if at_least is not None and self.count() < at_least:
                loss = Removed("an operation that the table's log no longer has", None)
        if loss is None:
            self._checked = self.version
        return loss

    def offsets_in(self, partition: int, start: int, end: int) -> list[int]:
        """The offsets of a partition that have a row, from `start` to before `end`."""
        return [offset for batch in self.offset_batches(partition, start, end) for offset in batch.to_pylist()]

    def last_offset(self, partition: int, start: int, end: int) -> int | None:
        """The greatest of these offsets that has a row."""
        return max((compute.max(batch).as_py() for batch in self.offset_batches(partition, start, end)), default=None)

    def offset_batches(self, partition: int, start: int, end: int) -> Iterator[Any]:
        """As `offsets_in`, as Arrow arrays."""
        from pyarrow.dataset import field

        wanted = (field("_partition") == partition) & (field("_offset") >= start) & (field("_offset") < end)
        with errors_in_a_sentence(self.where.uri):
            for batch in self.dataset().to_batches(columns=["_offset"], filter=wanted):
                if batch.num_rows:
                    yield batch["_offset"]

    def dataset(self) -> Any:
        """The rows as a `pyarrow.dataset.Dataset`, which skips files by their statistics."""
        return self._delta.to_pyarrow_dataset()

    def files(self) -> list[Listed]:
        """Every data file, as the table's log describes it."""
        listed = pyarrow.table(self._delta.get_add_actions(flatten=True))
        columns = [listed[name].to_pylist() for name in ("path", "size_bytes", "num_records", "modification_time")]
        return [Listed(urllib.parse.unquote(path), *file) for path, *file in zip(*columns, strict=True)]

    def live_files(self) -> list[LiveFile]:
        """The data files of this version, with what a commit that replaces some of them needs."""
        with errors_in_a_sentence(self.where.uri):
            listed = pyarrow.table(self._delta.get_add_actions(flatten=True))
            fragments = {one.path: one for one in self.dataset().get_fragments()}
            names = self.partition_columns
            files = []
            for action in listed.to_pylist():
                path = urllib.parse.unquote(action["path"])
                values = {name: text_of(action[f"partition.{name}"]) for name in names}
                fragment = fragments[path]
                records = action["num_records"]
                records = fragment.count_rows() if records is None else records
                files.append(LiveFile(path, records, values, fragment.partition_expression))
        return files

    @property
    def file_columns(self) -> pyarrow.Schema:
        """The columns that data files have."""
        return pyarrow.schema([field for field in self.columns if field.name not in self.partition_columns])

    def rows_of(self, file: LiveFile, columns: pyarrow.Schema) -> Iterator[Any]:
        """The rows of a file in their order, in batches; columns that it does not have are null."""
        known = pyarrow.schema([*columns, *(one for one in self.columns if one.name not in columns.names)])
        yield from read_part(self.where, known, FilePart(file.path, file.source), columns.names)

    def lacking(self, files: pyarrow.Schema) -> list[pyarrow.Field]:
        """The columns of `files` that are to be added first, and those with new fields inside of structs. Raises
        TableError, also if one is to be widened: the files of a Delta table have to be rewritten for that."""
        check_structs(files)
        there = self.columns
        fields = missing(there, files, self.where.uri)
        refuse_wider(self.where, there, fields)
        return fields

    def add_columns(self, files: pyarrow.Schema) -> None:
        """Add those columns of `files` that the table lacks, in a commit of their own; all are nullable. Raises
        TableError if a column would change its type."""
        from deltalake import Schema
        from deltalake.exceptions import CommitFailedError, SchemaMismatchError

        before = self.columns
        for _ in range(COMMIT_ATTEMPTS):
            new = self.lacking(files)
            if not new:
                return
            with errors_in_a_sentence(self.where.uri):
                try:
                    self._delta.alter.add_columns(list(Schema.from_arrow(pyarrow.schema(new)).fields))
                except (CommitFailedError, SchemaMismatchError):
                    pass  # another load has changed the columns: look again
            self.refresh()
            refuse_changed_types(self, before)
        raise TableError(f"{self.where.uri} changes its columns all the time; run this load again.")

    def commit(
        self,
        load_id: str,
        files: Sequence[DataFile],
        start: Offsets,
        end: Offsets,
        topic_ids: Mapping[str, int] | None = None,
    ) -> int:
        """As `committing.commit`."""
        return commit(self, load_id, files, start, end, topic_ids)

    def commit_once(
        self,
        load_id: str,
        files: Sequence[DataFile],
        kept: Mapping[str, int],
        removed: Sequence[str] | None = None,
        about: Mapping[str, int] = {},
    ) -> int | None:
        """As `LoadedTable` says; the numbers are application transactions."""
        from deltalake.exceptions import CommitFailedError

        with errors_in_a_sentence(self.where.uri):
            try:
                self._write(load_id, files, kept, removed, about)
            except CommitFailedError:
                return None
        return self._committed(load_id)

    def _committed(self, load_id: str) -> int:
        """The version of a commit that was just made."""
        before, looked_at = self.version, self._looked_at
        self.refresh()
        version = self.version if self.version == before + 1 else self.version_of(load_id)
        assert version is not None, "a commit stays in the history for days"
        self._checked = version if before == looked_at and version == before + 1 else looked_at
        sync_commit(self.where, version)
        if version % CHECKPOINT_INTERVAL == 0:
            self._checkpoint()
        return version

    def _checkpoint(self) -> None:
        """Write a checkpoint and remove old entries of the log, after the entry of the commit is on disk. The commit
        stands even if this fails; the next one catches up."""
        try:
            with errors_in_a_sentence(self.where.uri):
                self._delta.create_checkpoint()
                self._delta.cleanup_metadata()
        except TableError as error:
            logger.warning("No checkpoint was written: %s", error)

    def _write(
        self,
        load_id: str,
        files: Sequence[DataFile],
        kept: Mapping[str, int],
        removed: Sequence[str] | None,
        noted: Mapping[str, int],
    ) -> None:
        from deltalake import CommitProperties, PostCommitHookProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        actions: list[AddAction | RemoveAction] = [
            AddAction(file.path, file.bytes, dict(file.partition_values), file.modified_ms, True, statistics(file))
            for file in files
        ]
        about: dict[str, Any] = {LOAD_ID: load_id, RECORDS: sum(file.records for file in files), **noted}
        if self._looked_at is not None:
            about[delta_log.SEEN] = self._looked_at
        if removed is not None:
            now_ms = time.time_ns() // 1_000_000
            actions += [RemoveAction(path, True, now_ms) for path in removed]
            about["isBlindAppend"] = False  # so that other tools' commits look at our files
        properties = CommitProperties(
            custom_metadata=about,
            app_transactions=[Transaction(name, number) for name, number in kept.items()],
            # deltalake sees no conflict with a compaction of a file that goes: so any other commit is one
            max_commit_retries=None if removed is None else 0,
        )
        self._delta.create_write_transaction(
            actions,
            "append",
            self._delta.schema(),
            self.partition_columns,
            commit_properties=properties,
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )

    def version_of(self, load_id: str) -> int | None:
        """The version that a load has committed recently, if it has."""
        entries: list[dict[str, Any]] = self._delta.history(4 * COMMIT_ATTEMPTS)
        return next((int(entry["version"]) for entry in entries if entry.get(LOAD_ID) == load_id), None)


def opened(where: Location) -> "DeltaTable":
    """The newest version of a table. Raises TableError."""
    from deltalake import DeltaTable

    with errors_in_a_sentence(where.uri):
        return DeltaTable(where.uri, storage_options=dict(where.options) or None)
