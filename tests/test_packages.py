"""What is built for an installation: wheels with and without a compiler, and the source package.

The compiler here is asked not to optimise, which takes a tenth of the time; `make machines` builds with the real flags.
Tests that need one belong to `make check`.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "constraints.txt")
TRANSLATED = ROOT / "build" / "cython"
COLUMNS = "src/moldau/records/columns"
FEW = ("layouts", "plain_batches", "seeking")
"""The shortest of its files."""
MADE = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info", "compiled_from")


def checkout(folder: Path) -> Path:
    """The files of this project that a package is built from, in a folder as git would make it."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=MADE)
    shutil.copytree(ROOT / "docs", folder / "docs")
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


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which Cython has written its C files already: most of the time of a build without optimising. Those
    that `make setup` wrote are taken; Cython writes anew what is older than its source."""
    sources = checkout(tmp_path_factory.mktemp("packages") / "sources")
    if TRANSLATED.exists():
        shutil.copytree(TRANSLATED, sources / "build" / "cython")
    built("wheel", sources, CC="/bin/false")
    shutil.rmtree(sources / "dist")
    return sources


@pytest.fixture
def sources(translated: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copytree(translated, tmp_path / "sources"))


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


def said_by(wheel: Path, folder: Path) -> str:
    """What the package says of itself when it is unpacked there."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    program = "from moldau.cli.version import version; print(version())"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, '.'); {program}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


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


def test_without_a_compiler_a_wheel_is_built_whose_columns_run_interpreted(sources: Path, tmp_path: Path) -> None:
    wheel = built("wheel", sources, CC="/bin/false", LDSHARED="/bin/false")
    assert compiled_files(wheel) == []
    assert said_by(wheel, tmp_path / "unpacked").endswith("(columns interpreted)")


@pytest.mark.check
def test_one_file_that_does_not_compile_leaves_none_compiled(sources: Path, tmp_path: Path) -> None:
    wheel = built("wheel", sources, **compiler(tmp_path, refuses="hashing.c"))
    assert compiled_files(wheel) == []
    assert said_by(wheel, tmp_path / "unpacked").endswith("(columns interpreted)")


@pytest.mark.check
def test_wheels_of_the_same_sources_are_equal_wherever_and_whenever_they_are_built(tmp_path: Path) -> None:
    with_compiler, sources = compiler(tmp_path), few_columns(checkout(tmp_path / "sources"))
    one = built("wheel", sources, **with_compiler)
    other_sources = few_columns(checkout(tmp_path / "another" / "folder"))
    an_hour_ago = time.time() - 3600
    for path in other_sources.rglob("*"):
        os.utime(path, (an_hour_ago, an_hour_ago))
    other = built("wheel", other_sources, **with_compiler)
    assert sorted(Path(name).name.partition(".")[0] for name in compiled_files(one)) == sorted(FEW)
    assert one.read_bytes() == other.read_bytes()


def test_the_source_package_has_the_documents_and_what_builds_it_but_no_tests(sources: Path, tmp_path: Path) -> None:
    package = built("sdist", sources, MOLDAU_INTERPRETED="1")
    with tarfile.open(package) as file:
        file.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    held = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert {"CHANGELOG.md", "ARCHITECTURE.md", "docs/spark.md", "src/moldau/records/columns/python_api.pxd"} <= held
    assert [name for name in held if name.startswith("tests")] == []
    wheel = built("wheel", unpacked, MOLDAU_INTERPRETED="1")
    assert wheel.name.endswith("-py3-none-any.whl")
