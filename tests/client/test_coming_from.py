"""docs/coming-from.md: its examples run, and every method and setting of ours that it names exists."""

import inspect
import re
from pathlib import Path

import pytest

import moldau
from moldau import aio, errors
from moldau.client.consuming.fetched.record import Record
from moldau.testing import Broker

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
OURS = "\n".join(re.findall(r"^\| .* \| (.*) \|$", PAGE.read_text(), re.MULTILINE))


def test_every_example_of_the_page_runs() -> None:
    assert len(EXAMPLES) == 3
    with Broker() as broker:
        for example in EXAMPLES:
            code = compile(example.replace("localhost:9092", broker.bootstrap_servers), str(PAGE), "exec")
            exec(code, {"__name__": "example"})


@pytest.mark.parametrize(
    ("variable", "kind"),
    [
        ("producer", moldau.Producer),
        ("consumer", moldau.Consumer),
        ("admin", moldau.Admin),
        ("record", Record),
        ("errors", errors),
        ("moldau", moldau),
        ("aio", aio),
    ],
)
def test_every_name_of_ours_in_the_tables_exists(variable: str, kind: object) -> None:
    named = set(re.findall(rf"\b{variable}\.(\w+)", OURS))
    assert named
    assert {name for name in named if not hasattr(kind, name)} == set()


def test_every_keyword_of_ours_in_the_tables_exists() -> None:
    faces = {"producer": moldau.Producer, "consumer": moldau.Consumer, "admin": moldau.Admin}
    for variable, method, arguments in re.findall(r"`(?:await \(?)*(\w+)\.(\w+)\(([^`]*)\)`", OURS):
        if variable in faces:
            known = inspect.signature(getattr(faces[variable], method)).parameters
            keywords = re.findall(r"(?<![\w(])(\w+)=", re.sub(r"\w+\([^)]*\)", "", arguments))
            assert {*keywords} <= {*known}, (variable, method)
