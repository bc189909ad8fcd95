"""What type checkers say of a user's program and of every example of the documents, in their strict modes; and that the
program does what they checked. The pages' own tests run the examples."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.pages import Module, modules
from harness.patience import stretched
from tests.client.typed import application
from tests.environments import node_with, python_with

PROGRAM = Path(application.__file__)
SOURCE = Path(__file__).parents[3] / "src"
PROJECT = SOURCE.parent / "pyproject.toml"
SECONDS_MAX = 100
ABSENT = ("aiokafka", "confluent_kafka", "faststream")
"""Packages that examples import and that are not installed here."""
UNTYPED = ("duckdb", "pandas", "pyarrow")
"""Packages that have no types of their own."""
_NO_STUBS = re.compile(rf"\b({'|'.join([*ABSENT, 'deltalake', 'duckdb', 'opentelemetry', 'polars'])})\b|pandas")
"""In its strict mode pyright wants to know every type, also of packages that do not say it."""


def run(command: list[str | Path], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=stretched(SECONDS_MAX))
    assert done.returncode == 0, done.stdout + done.stderr


def write(folder: Path, wanted: Callable[[Module], object] = lambda module: True) -> list[str]:
    """The program and the examples as files, one line number for each line of a page; returns their names."""
    programs = {PROGRAM.stem: PROGRAM.read_text()}
    programs |= {module.name: module.code for module in modules() if wanted(module)}
    for name, code in programs.items():
        (folder / f"{name}.py").write_text(code)
    return [f"{name}.py" for name in programs]


def test_the_program_runs() -> None:
    assert application.main() == 0


def test_the_examples_keep_the_line_numbers_of_their_pages() -> None:
    by_name = {module.name: module for module in modules()}
    assert len(by_name) > 30 and {"admin", "consumer", "spark"} < by_name.keys()
    assert any(name.startswith("readme_") for name in by_name)
    page = (SOURCE.parent / "docs" / "consumer.md").read_text().splitlines()
    code = by_name["consumer"].code.splitlines()
    assert [line for line in code if line] == [page[number] for number, line in enumerate(code) if line]
    assert by_name["spark"].uses_spark and not by_name["consumer"].uses_spark


@pytest.mark.check  # without what the stage `lint` has kept it goes through all of our source
def test_mypy_finds_nothing_in_its_strict_mode(tmp_path: Path) -> None:
    """With the settings and in the folder of the stage `lint`, so that what that one found of our source counts."""
    names = write(tmp_path)
    decorated = [module.name for module in modules() if "faststream" in module.code]
    [settings] = re.findall(r"^\[tool\.mypy\]$.*?(?=^\[tool\.(?!mypy))", PROJECT.read_text(), re.DOTALL | re.MULTILINE)
    more = (
        f"[[tool.mypy.overrides]]\nmodule = {[f'{name}.*' for name in (*ABSENT, *UNTYPED)]}\n"
        "ignore_missing_imports = true\n"
        f"[[tool.mypy.overrides]]\nmodule = {decorated}\ndisallow_untyped_decorators = false\n"
    )
    (tmp_path / "settings.toml").write_text(settings + more)
    files = [tmp_path / name for name in names]
    run([sys.executable, "-m", "mypy", "--config-file", tmp_path / "settings.toml", *files], PROJECT.parent)


@pytest.mark.check
@pytest.mark.timeout(450)
def test_pyright_finds_nothing_in_its_strict_mode(tmp_path: Path) -> None:
    """pyarrow has no types of its own; pyright needs its stubs to know what a table is."""
    node, packages = node_with("pyright@1.1.414")
    stubs = python_with("pyarrow-stubs==20.0.0.20260819", "pyarrow==26.0.1")
    [stubs_folder] = (stubs.parents[1] / "lib").glob("python*/site-packages")
    names = write(tmp_path, lambda module: not _NO_STUBS.search(module.code))
    settings = {"include": names, "typeCheckingMode": "strict", "extraPaths": [str(SOURCE), str(stubs_folder)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    run([node, packages / "pyright" / "index.js", "--pythonpath", sys.executable], tmp_path)
