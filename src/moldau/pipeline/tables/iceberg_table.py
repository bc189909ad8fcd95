"""One Iceberg table: which offsets it has, and the one atomic step that adds files and moves the offsets on.

The numbers of `committing` are table properties, because other tools' commits keep those, and the expiry of snapshots
too. A commit adds a snapshot, sets the properties and demands that the newest snapshot is still the one that was read;
the catalog does all of it or nothing, so of two loads of the same offsets one wins. A snapshot's id is its version.

pyiceberg (0.12; 0.11 failed) repeats a transaction by itself when another commit came first, with the properties that
it had read before: it would add the files of both loads. Therefore its transaction is only prepared here, and given to
the catalog once.
"""

import contextlib
import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.compute as compute

from moldau.errors import MoldauError
from moldau.names import TopicPartition
from moldau.pipeline.tables import iceberg_files, iceberg_lineage
from moldau.pipeline.tables.columns import PARTITION_COLUMNS, TableError, TableGone, missing, names_of_partitions, plain
from moldau.pipeline.tables.committing import (
    COMMIT_ATTEMPTS,
    LOAD_ID,
    RECORDS,
    Offsets,
    offset_key,
    rows_key,
    topic_key,
)
from moldau.pipeline.tables.data_file import DataFile, LiveFile, TableFormat, in_calendar
from moldau.pipeline.tables.own_partitions import text_of
from moldau.pipeline.tables.removals import Removed
from moldau.pipeline.tables.storage import Location, location, one_sentence

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

logger = logging.getLogger(__name__)

KEY_COLUMNS = "moldau/key-columns"
"""The property of a table with one row per key: the columns of the key, separated by commas."""
METRICS = "write.metadata.metrics"
SNAPSHOT = "moldau/snapshot"
"""The property with the id of the snapshot that the last load made."""


class IcebergTable:
    """A table that exists, as it was when it was opened or refreshed last."""

    table_format: TableFormat = "iceberg"

    def __init__(self, iceberg: "PyIcebergTable"):
        self._iceberg = iceberg
        self._checked: int | None = None
        self.name = ".".join(iceberg.name())
        self._folder = iceberg.properties.get("write.data.path") or f"{iceberg.location().rstrip('/')}/data"
        self.where: Location = location(self._folder, iceberg.io.properties, of_iceberg=True)

    def refresh(self) -> None:
        """See what was committed since. Raises TableError, also if another table has taken the place of this one."""
        from pyiceberg.exceptions import NoSuchTableError

        with iceberg_errors_in_a_sentence(self.name):
            try:
                self._iceberg.refresh()
            except NoSuchTableError:
                raise TableGone(self.name) from None
            except ValueError as error:
                raise TableGone(self.name) if "UUID does not match" in str(error) else error from None

    @property
    def version(self) -> int:
        """The id of the newest snapshot, 0 if there is none."""
        snapshot = self._iceberg.current_snapshot()
        return snapshot.snapshot_id if snapshot else 0

    @property
    def columns(self) -> pyarrow.Schema:
        """The columns of the table, partition columns among them."""
        with iceberg_errors_in_a_sentence(self.name):
            schema = self._iceberg.schema().as_arrow()
        return pyarrow.schema([(field.name, plain(field.type)) for field in schema])

    @property
    def partition_by(self) -> str:
        """As `--partition-by` names it. Raises TableError for a partitioning that no load makes."""
        from pyiceberg.transforms import IdentityTransform

        fields = self._iceberg.spec().fields
        schema = self._iceberg.schema()
        names = [schema.find_column_name(field.source_id) for field in fields]
        for partition_by in PARTITION_COLUMNS:
            if names == names_of_partitions(partition_by) and all(
                isinstance(field.transform, IdentityTransform) for field in fields
            ):
                return partition_by
        if all(isinstance(field.transform, IdentityTransform) for field in fields):
            return ",".join(map(str, names))
        raise TableError(
            f"{self.name} is partitioned by {', '.join(map(str, fields))}. Loads never partition this way, so a load "
            "did not create it."
        )

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the key of a table that has one row per key (`--upsert`); none if it has all records."""
        kept = self._iceberg.properties.get(KEY_COLUMNS)
        return tuple(kept.split(",")) if kept else ()

    @property
    def file_columns(self) -> pyarrow.Schema:
        """The columns that data files have."""
        return self.columns

    def live_files(self) -> list[LiveFile]:
        """The data files of this version."""
        spec, schema = self._iceberg.spec(), self._iceberg.schema()
        names = [str(schema.find_column_name(field.source_id)) for field in spec.fields]
        with iceberg_errors_in_a_sentence(self.name):
            files = []
            for task in self._iceberg.scan().plan_files() if self._iceberg.current_snapshot() else []:
                values = {name: text_of(task.file.partition[at]) for at, name in enumerate(names)}
                files.append(
                    LiveFile(task.file.file_path, task.file.record_count, values, task, bool(task.delete_files))
                )
            return files

    def rows_of(self, file: LiveFile, columns: pyarrow.Schema) -> Iterator[Any]:
        """The rows of a file in their order, in batches; columns that it does not have are null."""
        with iceberg_errors_in_a_sentence(self.name):
            yield from iceberg_files.rows(self._iceberg, file.source, columns)

    def offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offset to load, for those of the partitions that were ever loaded."""
        offsets = {tp: self.number(offset_key(tp)) for tp in partitions}
        return {tp: offset for tp, offset in offsets.items() if offset is not None}

    def all_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """The next offset to load of every partition that was ever loaded."""
        before = offset_key(TopicPartition(topic, 0)).removesuffix("0")
        numbers = [name.removeprefix(before) for name in self._iceberg.properties if name.startswith(before)]
        return self.offsets([TopicPartition(topic, int(one)) for one in numbers if one.isdecimal()])

    def topic_id(self, topic: str) -> int | None:
        """The id of the topic that the rows are from (`short_id`); None if no load has noted it."""
        return self.number(topic_key(topic))

    def rows(self, topic: str) -> int | None:
        """The number of rows that the table has at least, as the last load noted it; None if none has."""
        return self.number(rows_key(topic))

    def count(self) -> int:
        """The number of rows, from the summary of the newest snapshot."""
        with iceberg_errors_in_a_sentence(self.name):
            return iceberg_lineage.total(self._iceberg)

    def removed(self, topic: str, recorded: Offsets) -> Removed | None:
        """Which rows below the `recorded` offsets other tools have removed since the last load, or since this was asked
        last and nothing was missing; None if none."""
        if self._checked == self.version:
            return None
        with iceberg_errors_in_a_sentence(f"What happened to {self.name}"):
            last = self.number(SNAPSHOT)  # of another load, if its snapshot is newer than what was looked at here
            mark = (
                (last if self.key_columns else None)
                or self._checked
                or last
                or iceberg_lineage.newest_of_loads(self._iceberg)
            )
            by_partition = {tp.partition: at for tp, at in recorded.items()}
            loss = (
                iceberg_lineage.removed(self._iceberg, mark, by_partition, self.rows(topic), bool(self.key_columns))
                if mark
                else None
            )
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
        wanted = f"_partition = {partition} and _offset >= {start} and _offset < {end}"
        with iceberg_errors_in_a_sentence(self.name):
            for batch in self._iceberg.scan(wanted, selected_fields=("_offset",)).to_arrow_batch_reader():
                if batch.num_rows:
                    yield batch["_offset"]

    def lacking(self, files: pyarrow.Schema) -> list[pyarrow.Field]:
        """The columns of `files` that are to be added first, those with new fields inside of structs, and those to be
        widened, which is a change of metadata: readers promote the values of older files. Raises TableError."""
        kept = pyarrow.schema([(field.name, as_kept(field.type)) for field in files])
        return missing(self.columns, kept, self.name)

    def add_columns(self, files: pyarrow.Schema) -> None:
        """Add or widen those columns of `files`, in a commit of their own; new ones are nullable. Raises TableError if
        a column would change its type otherwise."""
        from pyiceberg.exceptions import CommitFailedException

        for _ in range(COMMIT_ATTEMPTS):
            new = self.lacking(files)
            if not new:
                return
            with iceberg_errors_in_a_sentence(self.name), contextlib.suppress(CommitFailedException):
                with self._iceberg.update_schema() as update:
                    update.union_by_name(pyarrow.schema(new))
            self.refresh()
        raise TableError(f"{self.name} changes its columns all the time; run this load again.")

    def commit_once(
        self,
        load_id: str,
        files: Sequence[DataFile],
        kept: Mapping[str, int],
        removed: Sequence[str] | None = None,
        about: Mapping[str, int] = {},
    ) -> int | None:
        """As `LoadedTable` says; the numbers are table properties. Also None if the catalog does not say whether our
        commit succeeded."""
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

        with iceberg_errors_in_a_sentence(self.name):
            try:
                self._write(load_id, files, kept, removed, about)
            except (CommitFailedException, CommitStateUnknownException):
                return None
        self._checked = self.version
        return self.version

    def version_of(self, load_id: str) -> int | None:
        """The snapshot that a load has committed recently, if it has."""
        for snapshot in reversed(self._iceberg.snapshots()):
            if snapshot.summary is not None and snapshot.summary.additional_properties.get(LOAD_ID) == load_id:
                return snapshot.snapshot_id
        return None

    def scan(self) -> Any:
        """The rows as a `pyiceberg.table.DataScan`."""
        return self._iceberg.scan()

    def _write(
        self,
        load_id: str,
        files: Sequence[DataFile],
        kept: Mapping[str, int],
        removed: Sequence[str] | None,
        noted: Mapping[str, int],
    ) -> None:
        from pyiceberg.table.update import AddSnapshotUpdate, AssertTableUUID

        about = {LOAD_ID: load_id, RECORDS: str(sum(file.records for file in files))}
        about |= {name: str(number) for name, number in noted.items()}
        prepared = self._newest_only(files).transaction()
        paths = [f"{self._folder}/{file.path}" for file in files]
        if removed:
            iceberg_files.replace(self._iceberg, prepared, set(removed), paths, about)
        else:
            prepared.add_files(paths, about, check_duplicate_files=False)
        [made] = [update.snapshot for update in prepared._updates if isinstance(update, AddSnapshotUpdate)]
        properties = {**kept, SNAPSHOT: made.snapshot_id}
        prepared.set_properties({name: str(number) for name, number in properties.items()})
        # Not `prepared.commit_transaction()`: unless the table's `commit.retry.num-retries` is 0, pyiceberg repeats an
        # append that another load has overtaken, with our stale offsets, and the records are in the table twice.
        same_table = AssertTableUUID(uuid=self._iceberg.metadata.table_uuid)
        self._iceberg._do_commit(prepared._updates, (*prepared._requirements, same_table))

    def _newest_only(self, files: Sequence[DataFile]) -> "PyIcebergTable":
        """The table without its older snapshots, which an append does not need: pyiceberg copies the metadata about 20
        times while it prepares one. And without bounds of `_timestamp`, if these files have times outside of the years
        1 to 9999: pyiceberg fails at them."""
        metadata, newest = self._iceberg.metadata, self._iceberg.current_snapshot()
        there = copy.copy(self._iceberg)
        changed: dict[str, Any] = {"snapshots": [newest] if newest else [], "snapshot_log": [], "metadata_log": []}
        times = [time_us for file in files for time_us in file.bounds.get("_timestamp", ())]
        if not all(in_calendar(time_us) for time_us in times):
            changed["properties"] = metadata.properties | {f"{METRICS}.column._timestamp": "counts"}
        there.metadata = metadata.model_copy(update=changed)
        return there

    def number(self, name: str) -> int | None:
        """A number that commits keep under this name, as table properties."""
        value = self._iceberg.properties.get(name)
        if value is not None and not value.isdecimal():
            raise TableError(f"{self.name} cannot be used: its property {name} is {value!r} and not a number.")
        return None if value is None else int(value)


def as_kept(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type as which Iceberg keeps one of Arrow: integers have 32 or 64 bits, and times microseconds."""
    types = pyarrow.types
    if types.is_struct(kind):
        return pyarrow.struct([(field.name, as_kept(field.type)) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        return pyarrow.list_(as_kept(kind.value_type))
    if types.is_map(kind):
        return pyarrow.map_(as_kept(kind.key_type), as_kept(kind.item_type))
    if types.is_int8(kind) or types.is_int16(kind):
        return pyarrow.int32()
    if types.is_timestamp(kind):
        return pyarrow.timestamp("us", kind.tz)
    return plain(kind)


@contextlib.contextmanager
def iceberg_errors_in_a_sentence(what: str) -> Iterator[None]:
    """Turn any error into one TableError; `what` is its subject. The errors of catalogs (SQL, HTTP, Hive, AWS) have no
    common class."""
    try:
        yield
    except MoldauError:
        raise
    except Exception as error:
        logger.debug("%s cannot be used", what, exc_info=True)
        raise TableError(f"{what} cannot be used: {one_sentence(str(error) or type(error).__name__)}.") from None
