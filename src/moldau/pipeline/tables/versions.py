"""Reads one version of a table in portions: which files a filter leaves, and the batches of one portion.

The files come from the table's log, so files that no version names are not read. A filter leaves out files by their
partition values and statistics before they are opened, then row groups, then rows. The portions are picklable.
"""

import datetime
import urllib.parse
from typing import TYPE_CHECKING, Any

import pyarrow

from moldau.pipeline.tables.columns import TableError, plain
from moldau.pipeline.tables.file_parts import FilePart
from moldau.pipeline.tables.storage import Location, errors_in_a_sentence
from moldau.pipeline.tables.table import Table, opened

if TYPE_CHECKING:
    from deltalake import DeltaTable

PORTION_BYTES = 32 * 1024 * 1024
"""As much as a row group of a load has before it is compressed."""
OPENING_BYTES = 4 * 1024 * 1024
"""What opening a file costs, in bytes that could be read meanwhile."""
PORTIONS_MAX = 10_000


def at_version(where: Location, version: int | None = None, time: datetime.datetime | None = None) -> "DeltaTable":
    """A version of a table, the newest at a time, or the newest. Raises TableError if there is none."""
    if not Table.exists(where):
        raise TableError(f"{where.uri} is not a Delta table.")
    delta = opened(where)
    if time is not None:
        version = _version_at(where, delta, time)
    if version is not None and version > delta.version():
        raise TableError(f"{where.uri} has no version {version}: its newest is {delta.version()}.")
    if version is not None:
        with errors_in_a_sentence(f"Version {version} of {where.uri}"):
            delta.load_as_version(version)
    return delta


def columns_of(delta: "DeltaTable") -> pyarrow.Schema:
    """The columns of a version, partition columns among them, all nullable."""
    there = pyarrow.schema(delta.schema().to_arrow())
    return pyarrow.schema([(field.name, plain(field.type)) for field in there])


def portions(where: Location, delta: "DeltaTable", wanted: Any = None, at_least: int = 1) -> list[list[FilePart]]:
    """The parts of files with rows that may pass the filter `wanted` (None: all), put together to about
    `PORTION_BYTES` each; smaller ones if that makes fewer than `at_least` of them."""
    with errors_in_a_sentence(where.uri):
        actions = pyarrow.table(delta.get_add_actions(flatten=True)).select(["path", "size_bytes"])
        dataset = delta.to_pyarrow_dataset()
        files = {one.path: one.partition_expression for one in dataset.get_fragments(wanted)}
    known_sizes = {urllib.parse.unquote(one["path"]): one["size_bytes"] for one in actions.to_pylist()}
    sizes = {path: int(known_sizes.get(path, PORTION_BYTES)) + OPENING_BYTES for path in files}
    total = sum(sizes.values())
    each = max(1, min(PORTION_BYTES, total // max(1, at_least)), total // PORTIONS_MAX)
    packed: list[list[FilePart]] = []
    room = 0
    for path in sorted(files, key=lambda one: (-sizes[one], one)):
        parts = -(-sizes[path] // each) if sizes[path] - OPENING_BYTES > each else 1
        for number in range(parts):
            if sizes[path] // parts > room:
                packed.append([])
                room = each
            room -= sizes[path] // parts
            packed[-1].append(FilePart(path, files[path], number, parts))
    return packed


def _version_at(where: Location, delta: "DeltaTable", time: datetime.datetime) -> int:
    """The newest version at a time, by the times that the history shows."""
    from moldau.pipeline.tables.maintenance import history

    asked_ms = time.timestamp() * 1000
    versions = history(where)
    before = [one.version for one in versions if one.timestamp_ms <= asked_ms]
    if not before:
        raise TableError(f"{where.uri} has no version of {time.isoformat()}: its log begins later.")
    if versions[0].timestamp_ms < asked_ms and before[0] == delta.version():
        newest = datetime.datetime.fromtimestamp(versions[0].timestamp_ms / 1000, datetime.UTC)
        raise TableError(
            f"{time.isoformat()} is later than the newest version of {where.uri}, which is of {newest.isoformat()}."
        )
    return max(before)
