"""What is built for an installation: wheels with and without a compiler, and the source package.

The compiler here is asked not to optimise, which takes a tenth of the time; `make machines` builds with the real flags.
These tests belong to `make check`: a build takes seconds of processor time.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from moldau.records.columns import COMPILED
from tests.environments import python_with
from tests.packaging.building import FEW, ROOT, TRANSLATED, built, checkout, compiled_files, compiler, few_columns

pytestmark = pytest.mark.check
CIBUILDWHEEL = "cibuildwheel==4.3.5"


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


def said_by(wheel: Path, folder: Path) -> str:
    """What the package says of itself when it is unpacked there."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    program = "from moldau.cli.version import version; print(version())"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, '.'); {program}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def test_without_a_compiler_a_whole_wheel_is_built_whose_columns_run_interpreted(sources: Path, tmp_path: Path) -> None:
    wheel = built("wheel", sources, CC="/bin/false", LDSHARED="/bin/false")
    assert compiled_files(wheel) == []
    assert said_by(wheel, tmp_path / "unpacked").endswith("(columns interpreted)")
    written = {path.relative_to(sources / "src") for path in (sources / "src").rglob("*") if path.is_file()}
    held = {path.relative_to(tmp_path / "unpacked") for path in (tmp_path / "unpacked").rglob("*")}
    made = {path for path in written if "__pycache__" in path.parts or path.parts[0].endswith(".egg-info")}
    assert written - made <= held, "pages, styles and others that are not Python need package-data in pyproject.toml"


def test_one_file_that_does_not_compile_leaves_none_compiled(sources: Path, tmp_path: Path) -> None:
    wheel = built("wheel", sources, **compiler(tmp_path, refuses="hashing.c"))
    assert compiled_files(wheel) == []
    assert said_by(wheel, tmp_path / "unpacked").endswith("(columns interpreted)")


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
    assert {"deploy/Containerfile", "deploy/moldau.service"} <= held
    assert [name for name in held if name.startswith("tests")] == []
    wheel = built("wheel", unpacked, MOLDAU_INTERPRETED="1")
    assert wheel.name.endswith("-py3-none-any.whl")


def identifiers(platform: str) -> set[str]:
    """The wheels that cibuildwheel would make for a platform by our settings."""
    command = [python_with(CIBUILDWHEEL), "-m", "cibuildwheel", "--platform", platform, "--archs", "all"]
    done = subprocess.run(
        [*command, "--print-build-identifiers"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_wheels_for_linux_with_glibc_and_musl_and_for_macos_are_asked_for() -> None:
    pythons = [f"cp3{minor}" for minor in range(11, 16)]
    linux, macos = identifiers("linux"), identifiers("macos")
    for kind in ("manylinux", "musllinux"):
        assert {f"{one}-{kind}_{machine}" for one in pythons for machine in ("x86_64", "aarch64")} <= linux
    assert {f"{one}-macosx_{machine}" for one in pythons for machine in ("x86_64", "arm64")} <= macos


def test_a_wheel_whose_columns_are_not_compiled_fails_the_test_of_its_build(sources: Path, tmp_path: Path) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        command = tomllib.load(file)["tool"]["cibuildwheel"]["test-command"]
    with zipfile.ZipFile(built("wheel", sources, MOLDAU_INTERPRETED="1")) as wheel:
        wheel.extractall(tmp_path)
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.defpath}"}
    here = subprocess.run(command, shell=True, cwd="/", env=environment, check=False).returncode
    assert here == int(not COMPILED)
    unpacked = {**environment, "PYTHONPATH": str(tmp_path)}
    assert subprocess.run(command, shell=True, cwd="/", env=unpacked, check=False).returncode == 1
