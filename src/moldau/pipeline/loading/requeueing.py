"""`moldau pipeline requeue`: decode rejected records again, and move those that pass to the topic's table.

There are two tables, so two commits (`tables/requeued.py`): first the topic's table gets the records, then the table of
rejected records loses them. What a record's place is, its rows say: a rejected record that the topic's table has is
moved, and is only taken out. So a requeue that died in between is finished by the next requeue, or by the next load
(`finish`), whatever happened to the tables meanwhile.

Records that the load of their offsets has not committed yet stay: the next load counts on finding them there.

It runs in one process, without Spark: file by file of rejected records, batch by batch. A file is replaced if one of
its records was moved, or is now rejected for another reason; the others stay.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from moldau.names import TopicPartition
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.sampling import BYTES_MAX, RECORDS_MAX
from moldau.pipeline.decoding.topic_decoder import TopicDecoder
from moldau.pipeline.loading.rejected import Rejections
from moldau.pipeline.loading.removed_rows import standing, standing_of_rejected
from moldau.pipeline.loading.writing import Layout, TableWriter
from moldau.pipeline.tables.columns import REJECTED, TableError, check_decoded, in_files, plain
from moldau.pipeline.tables.committing import Conflict, LoadedTable, LoadedWarehouse
from moldau.pipeline.tables.data_file import DataFile, LiveFile
from moldau.pipeline.tables.own_partitions import own_columns
from moldau.pipeline.tables.requeued import add_requeued, replace_rejected, requeues, unfinished
from moldau.pipeline.tables.storage import discard

ATTEMPTS: Final = 5
BEFORE: Final = ("_reason_before", "_rule_before")
"""Columns that go through the decoder with the records, which says what has changed."""
PLACE: Final = pa.schema([REJECTED.field(name) for name in ("_partition", "_offset")])
SAMPLED: Final = pa.schema([REJECTED.field("value"), *PLACE])
NewId = Callable[[], str]
LoadedOffsets = Mapping[TopicPartition, int]


class Requeued(NamedTuple):
    """How many rejected records were moved, are still rejected, wait for a load to commit their offsets, and were in
    the topic's table already; the version of that table, None if nothing was added."""

    topic: str
    moved: int = 0
    rejected: Rejections = Rejections()
    waiting: int = 0
    already: int = 0
    version: int | None = None
    notes: tuple[str, ...] = ()

    def to_tree(self) -> dict[str, Any]:
        """The result for programs."""
        return {
            "moved": self.moved,
            "rejected": self.rejected.records,
            "waiting": self.waiting,
            "already_moved": self.already,
            "version": self.version,
        }


class Tables(NamedTuple):
    """The tables of a topic, and the next offsets to load."""

    topic: str
    table: LoadedTable
    rejected: LoadedTable
    loaded: LoadedOffsets
    compression: str


class Pass(NamedTuple):
    """The result of reading all rejected records once: the files for both tables, and the files that they replace."""

    requeued: Requeued
    moved: tuple[DataFile, ...]
    gone: list[LiveFile]
    left: list[DataFile]


def requeue(
    warehouse: LoadedWarehouse,
    topic: str,
    decoding: Decoding,
    new_id: NewId,
    compression: str,
    *,
    dry_run: bool = False,
) -> Requeued:
    """Decode the rejected records of a topic again. With `dry_run` they are only counted. Raises MoldauError with one
    sentence; each record is then in one of the tables, or a requeue has died in between and the next one finishes."""
    warehouse.check()
    decoding.check()
    table, rejected = warehouse.table(topic), warehouse.rejected(topic)
    if table is None:
        raise TableError(f"The warehouse has no table of topic {topic}: load it first.")
    _refuse_other_kinds(table)
    if rejected is None:
        return Requeued(topic)
    _refuse_another_topic(table, rejected, topic)
    tables = Tables(topic, table, rejected, {}, compression)
    for _ in range(ATTEMPTS):
        tables = tables._replace(loaded=_loaded(tables))
        decoder = _decoder(tables, decoding)
        if dry_run:
            return _pass(tables, decoder, "", dry_run=True).requeued
        done = _pass(tables, decoder, new_id())
        requeued = done.requeued
        if done.moved:
            number = requeues(table, topic)
            columns = in_files(decoder.schema)
            table.add_columns(columns)
            version = add_requeued(table, topic, new_id(), done.moved, columns, tables.loaded, number)
            requeued = requeued._replace(version=version)
            if not _take_out(tables, done, new_id()):
                finish(tables, new_id)
            return requeued
        if not (done.gone or unfinished(table, rejected, topic)) or _take_out(tables, done, new_id()):
            return requeued
        rejected.refresh()
        table.refresh()
    raise Conflict(f"{rejected.name} changes all the time; run this requeue again.")


def _refuse_other_kinds(table: LoadedTable) -> None:
    """Raise TableError for a table whose rows a requeue cannot make."""
    if table.key_columns:
        why = "has one row per key (--upsert)"
    elif own_columns(table.partition_by):
        why = "is partitioned by columns of its own (--partition-by)"
    elif "_key" not in table.columns.names or not pa.types.is_binary(plain(table.columns.field("_key").type)):
        why = "has columns of decoded keys (--decode-key)"
    else:
        return
    raise TableError(f"{table.name} {why}, and a requeue cannot add to it yet: load its topic into a new table.")


def _refuse_another_topic(table: LoadedTable, rejected: LoadedTable, topic: str) -> None:
    """Raise TableError if the rejected records are of another topic of this name than the table's rows."""
    one, other = table.topic_id(topic), rejected.topic_id(topic)
    if one is not None and other is not None and one != other:
        raise TableError(
            f"{rejected.name} has rejected records of another topic {topic} than {table.name}: the topic was deleted "
            "and created again, so nothing was moved."
        )


def finish(tables: Tables, new_id: NewId) -> None:
    """End a requeue that died between its commits: take rejected records out that the topic's table has."""
    for _ in range(ATTEMPTS):
        tables.rejected.refresh()
        if _take_out(tables, _pass(tables, None, new_id()), new_id()):
            return
    raise Conflict(f"{tables.rejected.name} changes all the time; run this again.")


def _loaded(tables: Tables) -> dict[TopicPartition, int]:
    """The next offsets to load. Raises RowsRemoved if another tool removed rows from one of the tables: then nobody
    knows yet which records are to be there."""
    recorded = tables.table.all_offsets(tables.topic)
    standing_of_rejected(tables.rejected, tables.topic, list(tables.rejected.all_offsets(tables.topic)), "refuse")
    return dict(standing(tables.table, tables.topic, list(recorded), "refuse").offsets)


def _files(rejected: LoadedTable) -> list[LiveFile]:
    """The files of a table of rejected records. Raises TableError if rows of them were deleted: `records` counts those
    too."""
    files = rejected.live_files()
    if any(file.has_deleted_rows for file in files):
        raise TableError(
            f"{rejected.name} has delete files of another tool: run Spark's rewrite_data_files with it first."
        )
    return files


def _decoder(tables: Tables, decoding: Decoding) -> TopicDecoder:
    """The decoder of the rejected records. Raises ConfigError, RegistryError and TableError."""

    def sample() -> Iterator[Sampled]:
        records, left = 0, BYTES_MAX
        for file in _files(tables.rejected):
            for batch in tables.rejected.rows_of(file, SAMPLED):
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    if row[0] is None or records >= RECORDS_MAX or left <= 0:
                        continue
                    records, left = records + 1, left - len(row[0])
                    yield Sampled(*row)
                if records >= RECORDS_MAX or left <= 0:
                    return

    known = pa.schema([field.with_type(plain(field.type)) for field in tables.table.columns])
    decoder = decoder_of(tables.topic, decoding, sample, known)
    assert decoder is not None, "a requeue decodes"
    check_decoded(decoder.schema)
    tables.table.lacking(in_files(decoder.schema))
    return decoder


def _pass(tables: Tables, decoder: TopicDecoder | None, load_id: str, *, dry_run: bool = False) -> Pass:
    """Read all rejected records; without a decoder only those that the topic's table has are told from the others."""
    topic, table, rejected, _, compression = tables
    writer = None
    if decoder is not None and not dry_run:
        columns = in_files(decoder.schema)
        where = Layout(table.where, columns, table.partition_by, decoder.event_time, compression, table.table_format)
        writer = TableWriter(where, f"requeue-{load_id}")
    requeued = Requeued(topic, notes=() if decoder is None else decoder.notes)
    gone: list[LiveFile] = []
    left: list[DataFile] = []
    for number, file in enumerate(_files(rejected)):
        layout = Layout(rejected.where, REJECTED, "none", "_timestamp", compression, rejected.table_format)
        kept = None if dry_run else TableWriter(layout, f"requeue-{load_id}-{number}")
        changed = False
        there = _moved_before(tables, file)
        for batch in rejected.rows_of(file, REJECTED):
            rows = _sorted(batch, tables, there, decoder)
            changed |= rows.changed
            requeued = requeued._replace(
                moved=requeued.moved + rows.good.num_rows if rows.good is not None else requeued.moved,
                rejected=requeued.rejected.and_also(rows.bad),
                waiting=requeued.waiting + rows.waiting,
                already=requeued.already + rows.already,
            )
            if writer is not None and rows.good is not None:
                writer.add(rows.good)
            if kept is not None:
                kept.add(rows.stay)
        files = () if kept is None else kept.finish()
        if changed:
            gone.append(file)
            left += files
        else:
            discard(rejected.where, [one.path for one in files])
    return Pass(requeued, () if writer is None else writer.finish(), gone, left)


def _take_out(tables: Tables, done: Pass, load_id: str) -> bool:
    """The second commit. False if the rejected records were rewritten meanwhile. Raises RowsRemoved if the topic's
    table has lost rows since they were looked for there."""
    tables.table.refresh()
    standing(tables.table, tables.topic, list(tables.loaded), "refuse")
    tables.rejected.add_columns(pa.schema([field.with_nullable(True) for field in REJECTED]))
    number = requeues(tables.table, tables.topic)
    return replace_rejected(tables.rejected, tables.topic, load_id, done.gone, done.left, number)


class Sorted(NamedTuple):
    """A batch of rejected records: those that pass, decoded; those that stay, and whether they differ from the batch;
    why records are rejected, how many wait, and how many the topic's table has."""

    good: Any
    stay: Any
    changed: bool
    bad: Rejections
    waiting: int
    already: int


def _sorted(batch: Any, tables: Tables, there: Mapping[int, Any], decoder: TopicDecoder | None) -> Sorted:
    loaded = pa.repeat(False, batch.num_rows)
    already = loaded
    for tp, end in tables.loaded.items():
        ours = pc.fill_null(pc.equal(batch.column("_partition"), tp.partition), False)
        if pc.any(ours).as_py():
            below = pc.and_(ours, pc.fill_null(pc.less(batch.column("_offset"), end), False))
            loaded = pc.or_(loaded, below)
            if tp.partition in there:
                moved = pc.is_in(batch.column("_offset"), value_set=there[tp.partition])
                already = pc.or_(already, pc.and_(below, moved))
    waits = batch.filter(pc.invert(loaded))
    known = pc.sum(already.cast(pa.int64())).as_py() or 0
    again = batch.filter(pc.and_(loaded, pc.invert(already)))
    if decoder is None:
        return Sorted(None, batch.filter(pc.invert(already)), known > 0, Rejections(), waits.num_rows, known)
    given = again.select(in_files().names)
    for name, before in zip(BEFORE, ("reason", "rule"), strict=True):
        given = given.append_column(name, again.column(before))
    good, bad = decoder.decode(given)
    topics = pa.repeat(tables.topic, bad.num_rows)
    stay = pa.concat_batches([waits, bad.append_column("_topic", topics).select(REJECTED.names)])
    same = all(bad.column(old).equals(bad.column(new)) for old, new in zip(BEFORE, ("reason", "rule"), strict=True))
    changed = not same or known > 0 or good.num_rows > 0
    columns = good.select(in_files(decoder.schema).names)
    return Sorted(columns, stay, changed, Rejections.of(bad), waits.num_rows, known)


def _moved_before(tables: Tables, file: LiveFile) -> dict[int, Any]:
    """By partition, the offsets of a file's records that the topic's table has, of those below its next offset."""
    wanted: dict[int, Any] = {}
    places = pa.Table.from_batches(tables.rejected.rows_of(file, PLACE), PLACE)
    for tp, end in tables.loaded.items():
        ours = pc.and_(pc.equal(places["_partition"], tp.partition), pc.less(places["_offset"], end))
        offsets = places["_offset"].filter(ours)
        edges = pc.min_max(offsets).as_py()
        if edges["min"] is None:
            continue
        batches = [
            batch.filter(pc.is_in(batch, value_set=offsets.combine_chunks()))
            for batch in tables.table.offset_batches(tp.partition, edges["min"], edges["max"] + 1)
        ]
        wanted[tp.partition] = pa.chunked_array(batches, pa.int64()).combine_chunks()
    return wanted
