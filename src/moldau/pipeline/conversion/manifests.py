"""Reads the manifests of a warehouse of format 1: which files it has, and the next offset of every partition.

    DIR/topic=flights/date=2013-01-01/part-....parquet    data files
    DIR/_moldau/manifest-000001.json ...                  one for each load, numbered from 1 without a gap
    DIR/_moldau/pending-LOAD.json                         the names of files of a load that died before its manifest

The files are those of all manifests together; `offsets` of the last one are cumulative. Nothing writes this format any
more.
"""

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from moldau.names import TopicPartition
from moldau.pipeline.tables.columns import TableError

FORMAT = 1
STATE = "_moldau"
MANIFEST_NAME = re.compile(r"manifest-(\d{6,})\.json")
PENDING_NAME = re.compile(r"pending-([0-9a-f]+)\.json")


class OldFile(NamedTuple):
    """A data file: its absolute path, topic and number of records."""

    path: Path
    topic: str
    records: int


class OldWarehouse(NamedTuple):
    """All that is in a warehouse of format 1; `leftovers` are files of loads that died."""

    files: list[OldFile]
    offsets: dict[TopicPartition, int]
    leftovers: list[Path]


def read(folder: Path) -> OldWarehouse:
    """Raises TableError, which names the file, if a manifest is missing, damaged or of another format."""
    state = folder / STATE
    names = sorted(path.name for path in state.iterdir()) if state.is_dir() else []
    numbers = sorted(int(match[1]) for name in names if (match := MANIFEST_NAME.fullmatch(name)))
    files: list[OldFile] = []
    offsets: dict[TopicPartition, int] = {}
    loads = set()
    for expected, number in enumerate(numbers, 1):
        path = state / f"manifest-{expected:06d}.json"
        if number != expected:
            raise TableError(f"{path} is missing; restore it from a backup.")
        tree = _tree(path, number)
        try:
            loads.add(str(tree["load_id"]))
            files += [OldFile(_inside(folder, one["path"]), one["topic"], int(one["records"])) for one in tree["files"]]
            offsets = {
                TopicPartition(topic, int(partition)): int(offset)
                for topic, partitions in tree["offsets"].items()
                for partition, offset in partitions.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TableError(f"{path} is not a manifest of a warehouse; restore it from a backup.") from None
    leftovers = [
        _inside(folder, name)
        for file in names
        if (match := PENDING_NAME.fullmatch(file)) and match[1] not in loads
        for name in _pending(state / file)
    ]
    return OldWarehouse(files, offsets, leftovers)


def _tree(path: Path, number: int) -> dict[str, Any]:
    try:
        tree: Any = json.loads(path.read_bytes())
        if tree["format"] != FORMAT:
            raise TableError(f"{path} has format {tree['format']}; this command reads format {FORMAT}.")
        if tree["number"] != number:
            raise TableError(f"{path} says it is manifest {tree['number']}; restore the right one from a backup.")
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TableError(f"{path} is not a manifest of a warehouse; restore it from a backup.") from None
    assert isinstance(tree, dict)
    return tree


def _pending(path: Path) -> list[str]:
    try:
        names: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        names = None
    if not isinstance(names, list):
        raise TableError(f"{path} is damaged; files of that load may lie among the data.")
    return [str(name) for name in names]


def _inside(folder: Path, relative: str) -> Path:
    parts = PurePosixPath(relative).parts
    if len(parts) != 3 or ".." in parts or not parts[0].startswith("topic="):
        raise TableError(f"{relative!r} is not a path inside the warehouse.")
    return folder.joinpath(*parts)
