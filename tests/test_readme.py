"""`tests/README.md` has every folder of tests once in each of its tables; the first example of README.md runs."""

import re
from pathlib import Path

import pytest

from moldau.testing import Broker

TESTS = Path(__file__).parent


def rows(heading: str) -> list[list[str]]:
    """The cells of the lines about folders in the tables below a heading, the folder's name first."""
    section = (TESTS / "README.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `(\w+)`(?: \*\*q\*\*)? \| (.*) \|$", section, re.MULTILINE)
    return [[name, *(cell.strip() for cell in rest.split(" | "))] for name, rest in found]


def folders() -> list[str]:
    return sorted({path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")})


@pytest.mark.parametrize(("heading", "cells"), [("The folders", 4), ("When a test fails", 3)])
def test_every_folder_has_its_promise_and_its_remedy_once(heading: str, cells: int) -> None:
    assert sorted(name for name, *_ in rows(heading)) == folders()
    assert [row for row in rows(heading) if len(row) != cells or not all(row)] == []


def test_what_the_later_tiers_add_is_about_folders_that_exist() -> None:
    added = rows("What the later tiers add")
    assert len(added) > 10 and {name for name, *_ in added} <= {*folders()}
    assert [row for row in added if len(row) != 3 or not all(row)] == []


def test_the_example_that_the_readme_opens_with_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"^```python\n(.*?)^```$", (TESTS.parent / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    with Broker() as broker:
        exec(compile(found[1].replace("localhost:9092", broker.bootstrap_servers), "README.md", "exec"), {})
    assert capsys.readouterr().out == "b'Praha' b'ahoj' 0\n"
