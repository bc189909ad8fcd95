"""Whether the compiled files of `columns` belong to the sources beside them, in a checkout.

`make setup` compiles them in place and notes the checksum of the sources. Files from another state of the sources fail
much later, in whatever calls them first. An installed package has no note: a wheel is built as one.
"""

import importlib.util
import zlib
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("columns")
NOTE: Final = "compiled_from"


def note(folder: Path = FOLDER) -> None:
    """Remember the sources that were compiled just now."""
    (folder / NOTE).write_text(str(_checksum(folder)))


def is_outdated(folder: Path = FOLDER) -> bool:
    """Whether the compiled files were made of other sources. False if that is not known."""
    try:
        noted = (folder / NOTE).stat().st_mtime
        if any(file.stat().st_mtime > noted for file in folder.glob("*.so")):  # compiled by something else since
            return False
        return (folder / NOTE).read_text() != str(_checksum(folder))
    except OSError:
        return False


def check() -> None:
    """Raises `ImportError` if outdated compiled files would be imported."""
    spec = importlib.util.find_spec("moldau.records.columns.scanning")
    if spec is not None and not str(spec.origin).endswith(".py") and is_outdated():
        raise ImportError("records/columns was compiled from other sources than those beside it: run `make setup`")


def _checksum(folder: Path) -> int:
    checksum = 0
    for file in sorted({*folder.glob("*.py"), *folder.glob("*.pxd")} - {folder / "__init__.py"}):
        checksum = zlib.crc32(file.read_bytes(), checksum)
    return checksum
