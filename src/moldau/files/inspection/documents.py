"""The contents of a file as documents: one flat dict for each batch, record, index entry or line.

Every document begins with its `type`. Byte strings stay byte strings; the writer formats them. A document of type
`problem` says why the rest of a file cannot be read or why a batch is damaged; a document of type `note` reports
something unusual but harmless. Documents are yielded one by one, so a file of any size takes the memory of one entry.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from moldau.files.inspection import control, reading
from moldau.files.inspection.kinds import FileKind, FileName, file_name_of
from moldau.files.legacy import Damaged, LogEntry
from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from moldau.log.producers import snapshots
from moldau.log.transaction_index import ENTRY as ABORTED_ENTRY
from moldau.log.transaction_index import AbortedTxn
from moldau.names import short_id
from moldau.records.batch import MAGIC, read_header
from moldau.records.compression import NAMES as CODECS
from moldau.records.rows import Record
from moldau.runtime import Disk, File

Document: TypeAlias = dict[str, Any]
Decoder: TypeAlias = Callable[[bytes | None, bytes | None], Document | None]
TIMESTAMP_TYPES: Final = {-1: None, 0: "create", 1: "append"}


def documents(
    disk: Disk, path: Path, *, with_records: bool = False, decoder: Decoder | None = None
) -> Iterator[Document]:
    """All documents of a file. `decoder` decodes the key and value of a record. Raises `OSError`."""
    name = file_name_of(path.name)
    if name is None:
        yield problem(path, "not a file of a log folder, judging by its name")
        return
    with reading.opened(disk, path) as file:
        size = file.size()
        yield {"type": "file", "path": str(path), "kind": name.kind.value, "size": size}
        try:
            if name.kind is FileKind.LOG:
                yield from _log(path, file, size, with_records, decoder)
            elif name.kind in _INDEXES:
                yield from _INDEXES[name.kind](path, file, size, name)
            else:
                yield from _small_file(disk, path, name, file, size)
        except (CorruptCheckpoint, ValueError, RecursionError) as wrong:
            yield problem(path, str(wrong).removeprefix(f"{path} "))


def problem(path: Path, message: str, position: int | None = None) -> Document:
    where = {} if position is None else {"position": position}
    return {"type": "problem", "path": str(path), **where, "message": message}


def _log(path: Path, file: File, size: int, with_records: bool, decoder: Decoder | None) -> Iterator[Document]:
    try:
        for entry in reading.entries(file, size):
            yield batch(entry)
            if not entry.crc_ok:
                yield problem(path, "the checksum is wrong", entry.position)
            elif with_records:
                try:
                    for stored in reading.records(entry):
                        yield record(entry, stored, decoder)
                except Damaged as damaged:
                    yield problem(path, damaged.what, damaged.position)
    except Damaged as damaged:
        if damaged.zeros:
            yield {"type": "note", "position": damaged.position, "message": damaged.what}
        else:
            yield problem(path, damaged.what, damaged.position)


def batch(entry: LogEntry) -> Document:
    """A batch of format 2, or a message or wrapper of an older format."""
    shown: Document = {"type": "batch", "position": entry.position, "size": entry.size, "magic": entry.magic}
    codec = CODECS[entry.codec] if entry.codec < len(CODECS) else f"unknown ({entry.codec})"
    if entry.magic != MAGIC:
        return shown | {
            "last_offset": entry.offset, "codec": codec, "timestamp_type": TIMESTAMP_TYPES[entry.timestamp_type],
            "max_timestamp_ms": entry.timestamp_ms, "crc": entry.crc, "valid": entry.crc_ok,
        }  # fmt: skip
    header = read_header(entry.data)
    return shown | {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "codec": codec,
        "timestamp_type": "append" if header.log_append_time else "create",
        "base_timestamp_ms": None if header.has_delete_horizon else header.base_timestamp,
        "max_timestamp_ms": header.max_timestamp,
        "delete_horizon_ms": header.base_timestamp if header.has_delete_horizon else None,
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
        "valid": entry.crc_ok,
    }


def record(entry: LogEntry, stored: Record, decoder: Decoder | None) -> Document:
    shown: Document = {
        "type": "record",
        "offset": stored.offset,
        "timestamp_ms": stored.timestamp_ms,
        "key": stored.key,
        "value": stored.value,
        "headers": list(stored.headers),
    }
    if entry.magic == MAGIC and read_header(entry.data).is_control:
        shown["control"] = control.decoded(stored.key, stored.value)
    elif decoder is not None:
        shown["decoded"] = decoder(stored.key, stored.value)
    return shown


def _offset_index(path: Path, file: File, size: int, name: FileName) -> Iterator[Document]:
    for at, (relative, position) in reading.index_entries(file, size, OFFSET_ENTRY):
        if not relative and not position:
            yield _zeros(at, size)
            break
        yield {"type": "offset_index_entry", "offset": name.offset + relative, "position": position}
    yield from _rest(path, size, OFFSET_ENTRY.size)


def _time_index(path: Path, file: File, size: int, name: FileName) -> Iterator[Document]:
    for at, (timestamp, relative) in reading.index_entries(file, size, TIME_ENTRY):
        if not timestamp and not relative and size > TIME_ENTRY.size:
            yield _zeros(at, size)
            break
        yield {"type": "time_index_entry", "timestamp_ms": timestamp, "offset": name.offset + relative}
    yield from _rest(path, size, TIME_ENTRY.size)


def _zeros(at: int, size: int) -> Document:
    return {"type": "note", "position": at, "message": f"{size - at} bytes of zeros follow: room for more entries"}


def _rest(path: Path, size: int, entry_size: int) -> Iterator[Document]:
    if size % entry_size:
        yield problem(path, f"the last {size % entry_size} bytes are not a complete entry", size - size % entry_size)


def _transaction_index(path: Path, file: File, size: int, name: FileName) -> Iterator[Document]:
    for _, fields in reading.index_entries(file, size, ABORTED_ENTRY):
        yield {"type": "aborted_transaction", "version": fields[0], **AbortedTxn(*fields[1:])._asdict()}
    yield from _rest(path, size, ABORTED_ENTRY.size)


_INDEXES: Final = {
    FileKind.OFFSET_INDEX: _offset_index,
    FileKind.TIME_INDEX: _time_index,
    FileKind.TRANSACTION_INDEX: _transaction_index,
}


def _small_file(disk: Disk, path: Path, name: FileName, file: File, size: int) -> Iterator[Document]:
    if name.kind is FileKind.SNAPSHOT:
        yield from _snapshot(path, file, size)
    elif name.kind is FileKind.LEADER_EPOCHS:
        for epoch, start in checkpoints.read_epochs(disk, path.parent):
            yield {"type": "leader_epoch", "epoch": epoch, "start_offset": start}
    elif name.kind is FileKind.OFFSETS:
        for tp, offset in checkpoints.read_offsets(disk, path).items():
            yield {"type": "partition_offset", "topic": tp.topic, "partition": tp.partition, "offset": offset}
    elif name.kind is FileKind.TOPIC_ID:
        topic_id = checkpoints.read_topic_id(disk, path.parent)
        text = short_id(topic_id) if topic_id else None
        yield {"type": "topic_id", "topic_id": text}
    elif name.kind is FileKind.PROPERTIES:
        for key, value in reading.properties(reading.text(disk, path) or "").items():
            yield {"type": "property", "name": key, "value": value}
    else:
        said = json.loads(reading.text(disk, path) or "null")
        yield {"type": "clean_stop", **(said if isinstance(said, dict) else {})}


def _snapshot(path: Path, file: File, size: int) -> Iterator[Document]:
    if size > checkpoints.FILE_BYTES_MAX:
        raise CorruptCheckpoint(f"the file has {size} bytes, too many for a producer snapshot")
    producers = snapshots.decode(file.read(size, 0))
    if producers is None:
        yield problem(path, "not a producer snapshot, or its checksum is wrong")
        return
    for producer_id, producer in producers:
        last = producer.batches[-1] if producer.batches else None
        yield {
            "type": "producer",
            "producer_id": producer_id,
            "producer_epoch": producer.epoch,
            "last_sequence": last.last_sequence if last else -1,
            "last_offset": last.last_offset if last else -1,
            "offset_delta": last.offset_delta if last else 0,
            "timestamp_ms": producer.last_timestamp,
            "coordinator_epoch": producer.coordinator_epoch,
            "transaction_start": producer.transaction_start,
        }
