"""What tests of packages share: a checkout as git would make it, and what pip would build of it."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "constraints.txt")
TRANSLATED = ROOT / "build" / "cython"
COLUMNS = "src/moldau/records/columns"
FEW = ("layouts", "plain_batches", "seeking")
"""The shortest of its files."""
MADE = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info", "compiled_from")


def checkout(folder: Path) -> Path:
    """The files of this project that a package is built from, in a folder as git would make it."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=MADE)
    for name in ("docs", "deploy"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "tests").mkdir()
    shutil.copy(__file__, folder / "tests")
    for file in (*FILES, *(path.name for path in ROOT.glob("*.md"))):
        shutil.copy2(ROOT / file, folder)
    return folder


def few_columns(sources: Path) -> Path:
    """Leaves only `FEW` of the files that are compiled: two builds of all take half a minute of processor time, and
    `make setup` and `make machines` build all of them."""
    for path in (sources / COLUMNS).glob("[a-z]*.py"):
        if path.stem not in FEW:
            path.unlink()
    return sources


def built(kind: str, sources: Path, **environment: str) -> Path:
    """The file that pip or `python -m build` would make of these sources: "wheel" or "sdist"."""
    hook = f"from setuptools import build_meta; print(build_meta.build_{kind}('dist'))"
    settings = {name: value for name, value in os.environ.items() if name != "MOLDAU_INTERPRETED"} | environment
    done = subprocess.run([sys.executable, "-c", hook], cwd=sources, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return sources / "dist" / done.stdout.splitlines()[-1]


def compiled_files(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as file:
        return [name for name in file.namelist() if name.endswith(".so")]


def compiler(folder: Path, refuses: str = "") -> Mapping[str, str]:
    """Settings that name a compiler which optimises nothing; or one that fails for files with `refuses` in their names,
    and takes all others for empty ones, since nothing of them is kept."""
    program = folder / "compiler"
    run = 'exec cc "$@" -O0'
    if refuses:
        refusal = f'case "$*" in *{refuses}*) echo "error: it is refused" >&2; exit 1;; esac'
        run = f'{refusal}\nwhile [ "$1" != -o ]; do shift; done\nexec cc -c -x c /dev/null -o "$2"'
    program.write_text(f"#!/bin/sh\n{run}\n")
    program.chmod(0o755)
    return {"CC": str(program), "LDSHARED": f"{program} -shared"}
