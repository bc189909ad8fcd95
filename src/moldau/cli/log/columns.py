"""The records of log files as one Arrow or Parquet file: the columns that Spark's Kafka source has.

Control records are left out, as a reader leaves them out. Records go through a piece at a time; what cannot be read is
named and passed over. pyarrow is an extra, so it is imported when it is needed.
"""

import importlib.util
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from moldau.errors import ConfigError, KafkaError
from moldau.files.inspection import reading
from moldau.files.inspection.kinds import FileKind, file_name_of
from moldau.files.legacy import Damaged, LogEntry
from moldau.log.folders.folder_names import partition_of
from moldau.names import TopicPartition, how_to_install
from moldau.records.batch import MAGIC
from moldau.runtime import Disk

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES: Final = 16 << 20
ROWS_AT_ONCE: Final = 50_000
Say = Callable[[str], None]


def write_columns(disk: Disk, files: Iterable[Path], target: Path, *, parquet: bool, say: Say) -> int:
    """Write the records of all log files among these; returns how many. `say` is told what cannot be read.

    Raises `ConfigError` without pyarrow, `OSError`.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise ConfigError(f"columns need pyarrow: {how_to_install('arrow')}")
    from moldau.records.arrow import SCHEMA

    count = 0
    with _writer(target, SCHEMA, parquet) as writer:
        for path in files:
            name = file_name_of(path.name)
            if name is None or name.kind is not FileKind.LOG:
                continue
            for batch in _record_batches(disk, path, say):
                writer.write_batch(batch)
                count += batch.num_rows
    return count


def topic_of(path: Path) -> TopicPartition:
    """By the folder's name; a folder whose name is not a partition's counts as a topic without a number."""
    folder = path.absolute().parent.name
    return partition_of(folder) or TopicPartition(folder, -1)


def _writer(target: Path, schema: "pa.Schema", parquet: bool) -> Any:
    if parquet:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(target, schema)
    import pyarrow as pa

    return pa.ipc.new_file(target, schema)


def _record_batches(disk: Disk, path: Path, say: Say) -> Iterator["pa.RecordBatch"]:
    tp = topic_of(path)
    with reading.opened(disk, path) as file:
        for newer, entries in _pieces(reading.entries(file, file.size()), path, say):
            try:
                if newer:
                    yield from _newer(entries, tp)
                else:
                    yield from _older(entries, tp)
            except (KafkaError, OverflowError) as wrong:
                say(f"{path}: {wrong}")


def _pieces(entries: Iterator[LogEntry], path: Path, say: Say) -> Iterator[tuple[bool, list[LogEntry]]]:
    """Sound entries in order, those of format 2 apart from older ones, a piece of some megabytes at a time."""
    piece: list[LogEntry] = []
    size = 0
    try:
        for entry in entries:
            if not entry.crc_ok:
                say(f"{path}: at position {entry.position} the checksum is wrong")
                continue
            newer = entry.magic == MAGIC
            if piece and (size + entry.size > PIECE_BYTES or newer != (piece[0].magic == MAGIC)):
                yield piece[0].magic == MAGIC, piece
                piece, size = [], 0
            piece.append(entry)
            size += entry.size
    except Damaged as damaged:
        if not damaged.zeros:
            say(f"{path}: {damaged}")
    if piece:
        yield piece[0].magic == MAGIC, piece


def _newer(entries: list[LogEntry], tp: TopicPartition) -> Iterator["pa.RecordBatch"]:
    from moldau.records.arrow import to_record_batches

    data = b"".join(entry.data for entry in entries)
    yield from to_record_batches(data, tp.topic, tp.partition, -(1 << 63), check_crcs=False)


def _older(entries: list[LogEntry], tp: TopicPartition) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa

    from moldau.records.arrow import SCHEMA, US_PER_MS

    rows: list[dict[str, Any]] = []
    for entry in entries:
        for record in reading.records(entry):
            rows.append(
                {
                    "key": record.key,
                    "value": record.value,
                    "topic": tp.topic,
                    "partition": tp.partition,
                    "offset": record.offset,
                    "timestamp": record.timestamp_ms * US_PER_MS,
                    "timestampType": record.timestamp_type,
                    "headers": None,
                }
            )
            if len(rows) >= ROWS_AT_ONCE:
                yield pa.RecordBatch.from_pylist(rows, SCHEMA)
                rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, SCHEMA)
