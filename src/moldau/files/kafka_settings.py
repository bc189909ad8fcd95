"""Reads the settings of topics, and the leftovers, from the metadata log of Kafka's controllers.

    __cluster_metadata-0/
        00000000000000000123-0000000001.checkpoint    the newest snapshot; its name has its end offset and epoch
        00000000000000000000.log                      the changes since
Both files hold record batches. A log may end in the middle of a batch, as after a crash. Any other damage is a
`StorageError`, because incomplete settings (of retention, say) could delete records.
"""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from moldau.errors import ProtocolViolation, StorageError
from moldau.files.inspection import reading
from moldau.files.inspection.kinds import FileKind, file_name_of
from moldau.files.kafka_leftovers import InForce, in_force
from moldau.files.legacy import Damaged
from moldau.files.metadata_log import (
    TOPIC_RESOURCE,
    AbortTransactionRecord,
    BeginTransactionRecord,
    Change,
    ConfigRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
    TopicRecord,
    read_change,
)
from moldau.records.batch import MAGIC, read_header
from moldau.runtime import Disk

FOLDER: Final = "__cluster_metadata-0"
_SNAPSHOT = re.compile(r"([0-9]{20})-[0-9]{10}\.checkpoint", re.ASCII)
TopicSettings = dict[str, dict[str, str]]


class FinalMetadata(NamedTuple):
    """The metadata in force at the end of Kafka's metadata log: each topic's own settings, and all other entries."""

    settings: TopicSettings
    others: list[InForce]


def read_metadata(disk: Disk, folder: Path) -> FinalMetadata:
    """Read a folder `__cluster_metadata-0`. Raises `StorageError`, `OSError`."""
    names = disk.list(folder)
    snapshots = sorted(match[0] for match in map(_SNAPSHOT.fullmatch, names) if match)
    start = 0
    changes: list[Change] = []
    if snapshots:
        start = int(snapshots[-1].partition("-")[0])
        changes += _changes(disk, folder / snapshots[-1], 0, may_end_early=False)
    logs = [name for name in names if (said := file_name_of(name)) and said.kind is FileKind.LOG and not said.leftover]
    for name in sorted(logs):
        changes += _changes(disk, folder / name, start, may_end_early=True)
    settled = _settled(changes)
    return FinalMetadata(_applied(settled), in_force(settled))


def _changes(disk: Disk, path: Path, start: int, *, may_end_early: bool) -> Iterator[Change]:
    """The changes in the records from offset `start` on, for the kinds of records that are read here."""
    try:
        with reading.opened(disk, path) as file:
            for entry in reading.entries(file, file.size()):
                if not entry.crc_ok or entry.magic != MAGIC:
                    raise Damaged(entry.position, "the checksum of a batch is wrong")
                header = read_header(entry.data)
                if header.is_control or header.last_offset < start:
                    continue
                for record in reading.records(entry):
                    change = read_change(record.value or b"")
                    if change.record is not None and record.offset >= start:
                        yield change
    except Damaged as damaged:
        if not (may_end_early and damaged.at_end):
            raise StorageError(f"the settings of topics cannot be read from {path}: {damaged}") from damaged
    except ProtocolViolation as wrong:
        raise StorageError(f"the settings of topics cannot be read from {path}: {wrong}") from wrong


def _applied(records: list[object]) -> TopicSettings:
    names: dict[uuid.UUID, str] = {}
    settings: TopicSettings = {}
    for record in records:
        if isinstance(record, TopicRecord):
            names[record.topic_id] = record.name
        elif isinstance(record, RemoveTopicRecord):
            settings.pop(names.pop(record.topic_id, ""), None)
        elif isinstance(record, ConfigRecord) and record.resource_type == TOPIC_RESOURCE:
            own = settings.setdefault(record.resource_name, {})
            if record.value is None:
                own.pop(record.name, None)
            else:
                own[record.name] = record.value
    return {name: own for name, own in settings.items() if own}


def _settled(changes: list[Change]) -> list[object]:
    """The records without those of aborted or unfinished transactions of the controller."""
    settled: list[object] = []
    begun = -1
    for change in changes:
        if isinstance(change.record, BeginTransactionRecord):
            begun = len(settled)
        elif isinstance(change.record, EndTransactionRecord):
            begun = -1
        elif isinstance(change.record, AbortTransactionRecord):
            del settled[begun if begun >= 0 else len(settled) :]
            begun = -1
        else:
            settled.append(change.record)
    return settled[:begun] if begun >= 0 else settled
