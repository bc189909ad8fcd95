"""Folders that Apache Kafka wrote, packed as files in the tree, each with what Kafka said of what is in it.

`make referee VERSION=4.3.1 WRITE=1` writes them anew. What was said is kept as Python literals in the file `said`.
"""

import ast
import io
import lzma
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests import refereed

FOLDER = Path(__file__).parent / "recordings"
SAID = "said"


def recorded(name: str, folder: Path, make: Callable[[Path], tuple[Mapping[str, Path], Any]]) -> tuple[Path, Any]:
    """The folder with what was packed under this name, and what was said of it; if Kafka is to be asked, made anew:
    `make` returns the folders to be packed by their names, and what was said."""
    if refereed.asks():
        packed, said = make(folder)
        if refereed.writes():
            pack(FOLDER / f"{name}.tar.xz", packed, said)
        unpacked = folder / "packed"
        unpacked.mkdir()
        for inside, path in packed.items():
            (unpacked / inside).symlink_to(path)
        return unpacked, said
    with tarfile.open(FOLDER / f"{name}.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder, ast.literal_eval((folder / SAID).read_text())


def pack(path: Path, folders: Mapping[str, Path], said: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:xz", preset=9 | lzma.PRESET_EXTREME) as tar:
        for inside, folder in folders.items():
            tar.add(folder, inside)
        data = repr(said).encode()
        entry = tarfile.TarInfo(SAID)
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
