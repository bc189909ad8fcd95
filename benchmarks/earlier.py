"""The source of an earlier revision, so that its broker can run beside today's.

The compiled columns are copied where their sources are the same, else compiled anew.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
COLUMNS = Path("src/moldau/records/columns")


@contextlib.contextmanager
def source_of(revision: str) -> Iterator[Path]:
    """A folder to put on PYTHONPATH: that of a source tree if `revision` names its folder, else one made from git."""
    if Path(revision, "src").is_dir():
        yield Path(revision, "src").absolute()
        return
    with tempfile.TemporaryDirectory(prefix="moldau-earlier-") as name:
        folder = Path(name)
        packed = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        _compile(folder)
        yield folder / "src"


def _compile(folder: Path) -> None:
    if _sources(folder) == _sources(ROOT):
        for compiled in (ROOT / COLUMNS).glob("*.so"):
            shutil.copy2(compiled, folder / COLUMNS)
    else:
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _sources(folder: Path) -> dict[str, bytes]:
    files = [*(folder / COLUMNS).glob("*.py"), *(folder / COLUMNS).glob("*.pxd")]
    return {file.name: file.read_bytes() for file in files}
