"""`moldau pipeline widen`: columns of a Delta table get wider types, and its files are rewritten with them.

The rewritten files take the place of the others in one commit, which changes the schema too: readers see all of it or
nothing. A commit of a load or of another tool in between makes it fail; then only the files that came meanwhile are
rewritten, and it is tried again. A load whose files have the narrower types is refused by the change of the schema and
loads again (`committing.py`). Killed, it leaves files that no version names; `vacuum` removes them.
"""

import json
import urllib.parse
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow
import pyarrow.parquet as parquet

from moldau.pipeline.loading.writing import ROW_GROUP_BYTES, Layout, OneFile
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.data_file import DataFile, statistics
from moldau.pipeline.tables.file_parts import FilePart, read_part
from moldau.pipeline.tables.own_partitions import text_of
from moldau.pipeline.tables.storage import (
    Location,
    check_files,
    errors_in_a_sentence,
    files_below,
    sync_commit,
    sync_folders,
)
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.versions import at_version, columns_of
from moldau.pipeline.tables.widening import WIDENED, widened_schema

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema

WIDEN_ATTEMPTS = 20
READER_VERSION_MAX = 1


class Widened(NamedTuple):
    """The version that has the wider columns, None if nothing was to do, and the number of rewritten files."""

    version: int | None
    files: int


def widen(where: Location, changes: Mapping[str, str]) -> Widened:
    """Give columns the types in `changes`, by path (`place.lat`: `double`). Raises TableError; then the table is as it
    was."""
    from deltalake import Schema
    from deltalake.exceptions import CommitFailedError

    rewritten: dict[str, DataFile] = {}
    Table.open(where)  # removes a torn entry of the log
    for _ in range(WIDEN_ATTEMPTS):
        delta = at_version(where)
        _refuse_newer_readers(where, delta)
        before = json.loads(delta.schema().to_json())
        wanted = widened_schema(before, changes)
        if wanted == before:
            return Widened(None, 0)
        schema = Schema.from_json(json.dumps(wanted))
        listed = _listed(where, delta)
        for path in listed.keys() - rewritten.keys():
            rewritten[path] = _rewritten(where, delta, schema, path, listed[path])
        files = [rewritten[path] for path in sorted(listed)]
        with errors_in_a_sentence(where.uri):
            try:
                _commit(where, delta, schema, files, changes)
            except CommitFailedError:
                continue
            delta.update_incremental()
        return Widened(int(delta.version()), len(files))
    raise TableError(f"Other writers kept changing {where.uri}, so it was not widened. Run this again.")


def _refuse_newer_readers(where: Location, delta: "DeltaTable") -> None:
    version = delta.protocol().min_reader_version
    if version > READER_VERSION_MAX:
        raise TableError(
            f"{where.uri} needs readers of version {version} (deletion vectors, column mapping); only tables of "
            f"version {READER_VERSION_MAX}, as loads make them, can be widened."
        )


def _listed(where: Location, delta: "DeltaTable") -> dict[str, dict[str, str | None]]:
    """The path of each file, as the log has it, and its partition values."""
    with errors_in_a_sentence(where.uri):
        actions = pyarrow.table(delta.get_add_actions(flatten=True))
    names = list(delta.metadata().partition_columns)
    columns = [actions[f"partition.{name}"].to_pylist() for name in names]
    return {
        path: {name: text_of(column[at]) for name, column in zip(names, columns, strict=True)}
        for at, path in enumerate(actions["path"].to_pylist())
    }


def _rewritten(
    where: Location, delta: "DeltaTable", schema: "Schema", path: str, partition_values: Mapping[str, str | None]
) -> DataFile:
    """A file with the rows of another one, in their order, beside it; `path` is that of the log."""
    source = urllib.parse.unquote(path)
    there, wanted = columns_of(delta), pyarrow.schema(schema.to_arrow())
    names = [name for name in there.names if name not in partition_values]
    columns = pyarrow.schema([wanted.field(name) for name in names])
    folder, slash, _ = source.rpartition("/")
    made = f"{folder}{slash}part-widened-{uuid.uuid4().hex[:12]}.parquet"
    file = OneFile(Layout(where, columns, "none", "_timestamp", _codec(where, source)), made, partition_values)
    for batch in read_part(where, there, FilePart(source, None), names):
        file.add(batch.cast(columns))
        if file.rows_bytes >= ROW_GROUP_BYTES:
            file.write()
    return file.close()


def _codec(where: Location, source: str) -> str:
    """How a file is compressed, under the name with which one is written."""
    with errors_in_a_sentence(where.uri):
        about = parquet.read_metadata(source, filesystem=files_below(where))
    if not about.num_row_groups:
        return "lz4"
    name = str(about.row_group(0).column(0).compression).lower()
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(name, name)


def _commit(
    where: Location, delta: "DeltaTable", schema: "Schema", files: list[DataFile], changes: Mapping[str, str]
) -> None:
    """Replace all files of the version and its schema. Raises CommitFailedError if another commit came first."""
    from deltalake import CommitProperties, PostCommitHookProperties
    from deltalake.transaction import AddAction

    check_files(where, [file.path for file in files])
    sync_folders(where, {file.path.rpartition("/")[0] for file in files})
    said = " ".join(f"{path}={kind}" for path, kind in changes.items())
    delta.create_write_transaction(
        [
            AddAction(file.path, file.bytes, dict(file.partition_values), file.modified_ms, False, statistics(file))
            for file in files
        ],
        "overwrite",
        schema,
        list(delta.metadata().partition_columns),
        # A commit that was retried would keep files of the narrower type that another commit has added meanwhile.
        commit_properties=CommitProperties(custom_metadata={WIDENED: said}, max_commit_retries=0),
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
    )  # fmt: skip
    sync_commit(where, int(delta.version()))
