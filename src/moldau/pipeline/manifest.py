"""The manifest of a load, as values and as JSON: its data files, and the next offset of every partition.

A manifest is one JSON object and never changes after it was written. Manifest N lists the files that load N added; the
warehouse consists of the files of all manifests. `offsets` are cumulative, so the next load starts from the last
manifest. docs/warehouse.md describes the format for other readers. Pure: no file is opened here.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from moldau.errors import MoldauError
from moldau.names import TopicPartition

FORMAT = 1


class WarehouseError(MoldauError):
    """The warehouse cannot be used as it is; the text is one sentence for the person who started the load."""


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of one partition and one event date (UTC). Times are milliseconds; `end_offset` is excluded."""

    path: str
    topic: str
    partition: int
    date: str
    start_offset: int
    end_offset: int
    records: int
    bytes: int
    timestamp_ms_min: int
    timestamp_ms_max: int


@dataclass(frozen=True)
class Manifest:
    """One load: the files it added, and the offsets from which the next load begins."""

    number: int
    load_id: str
    created_ms: int
    files: tuple[DataFile, ...]
    offsets: Mapping[TopicPartition, int]


def file_name(number: int) -> str:
    return f"manifest-{number:06d}.json"


def to_json(manifest: Manifest) -> bytes:
    """The manifest as bytes for the disk: UTF-8 with a line feed at the end."""
    offsets: dict[str, dict[str, int]] = {}
    for tp, offset in sorted(manifest.offsets.items()):
        offsets.setdefault(tp.topic, {})[str(tp.partition)] = offset
    tree = {
        "format": FORMAT,
        "number": manifest.number,
        "load_id": manifest.load_id,
        "created_ms": manifest.created_ms,
        "records": sum(file.records for file in manifest.files),
        "offsets": offsets,
        "files": [asdict(file) for file in manifest.files],
    }
    return json.dumps(tree, indent=1).encode() + b"\n"


def from_json(data: bytes, name: str) -> Manifest:
    """Parse a manifest. Raises `WarehouseError`, which names the file, if it is not a manifest or has a newer
    format."""
    try:
        tree: Any = json.loads(data)
        if tree["format"] != FORMAT:
            raise WarehouseError(f"{name} has format {tree['format']}; this version reads format {FORMAT}.")
        files = tuple(DataFile(**file) for file in tree["files"])
        offsets = {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in tree["offsets"].items()
            for partition, offset in partitions.items()
        }
        return Manifest(int(tree["number"]), str(tree["load_id"]), int(tree["created_ms"]), files, offsets)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise WarehouseError(f"{name} is not a manifest of a warehouse; restore it from a backup.") from None
