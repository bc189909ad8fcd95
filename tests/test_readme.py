"""`tests/README.md` has a line for every folder of tests, and for no other; the first example of README.md runs."""

import re
from pathlib import Path

import pytest

from moldau.testing import Broker

TESTS = Path(__file__).parent
CELLS = 5


def lines() -> dict[str, list[str]]:
    rows = re.findall(r"^\| `(\w+)`(?: \*\*q\*\*)?(.*)\|$", (TESTS / "README.md").read_text(), re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split(" | ")] for name, rest in rows}


def test_every_folder_has_its_line() -> None:
    folders = sorted({path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")})
    assert sorted(lines()) == folders


def test_a_line_says_promise_cost_replay_and_remedy() -> None:
    assert {name: cells for name, cells in lines().items() if len(cells) != CELLS or not all(cells[1:])} == {}


def test_the_example_that_the_readme_opens_with_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"^```python\n(.*?)^```$", (TESTS.parent / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    with Broker() as broker:
        exec(compile(found[1].replace("localhost:9092", broker.bootstrap_servers), "README.md", "exec"), {})
    assert capsys.readouterr().out == "b'Praha' b'ahoj' 0\n"
