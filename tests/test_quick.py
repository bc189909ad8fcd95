"""`make quick` stays quick: its tests are of the folders listed here, and need nothing that takes long."""

import re
from pathlib import Path

from tests.source_rules import Source
from tools.quick import TESTS

ROOT = Path(__file__).parents[1]
ALLOWED = (
    "assignors", "cluster", "config", "coordinators", "handlers", "log", "metadata_store", "net", "peers",
    "protocol", "records", "replication", "requests", "security",
)  # fmt: skip
SLOW = (
    "harness.brokers",
    "harness.apache_kafka",
    "tests.environments",
    "tests.worlds",
    "tests.crash_points",
    "pyspark",
)
"""Broker processes, programs of other projects, worlds, Java."""


def files() -> list[Path]:
    return [path for name in TESTS for path in (sorted((ROOT / name).rglob("*.py")) or [ROOT / name])]


def test_its_tests_exist_and_are_of_the_folders_that_are_allowed() -> None:
    assert [name for name in TESTS if not (ROOT / name).exists()] == []
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in files() if path.parent != ROOT / "tests"}
    assert folders <= set(ALLOWED)


def test_its_tests_start_no_process_and_no_world() -> None:
    slow = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files()
        for _, name in Source(str(path), path.read_text()).facts.imports
        if name.startswith(SLOW)
    ]
    assert slow == []


def test_the_page_of_the_tests_marks_its_folders() -> None:
    marked = re.findall(r"^\| `(\w+)` \*\*q\*\*", (ROOT / "tests" / "README.md").read_text(), re.MULTILINE)
    assert sorted(marked) == sorted({path.relative_to(ROOT / "tests").parts[0] for path in files()} & set(ALLOWED))
