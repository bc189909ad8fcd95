"""Every bug that is put in on purpose is in the table of tests/README.md, and `make check` catches most of them."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.put_in_bugs import MARKED, PAGE, ROOT, TABLE, table

REPLACES = re.compile(r"\b(?:replaced|assert_found)\(")


def called(tree: ast.AST) -> Iterator[str]:
    """The names of what is called in it, without the objects they belong to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def expects_a_failure(source: str) -> bool:
    """Whether a block of the source replaces production code, and something in it or around it must raise."""
    tree = ast.parse(source)
    blocks = (node for node in ast.walk(tree) if isinstance(node, ast.With | ast.AsyncWith))
    return "assert_found" in called(tree) or any({"replaced", "raises"} <= {*called(block)} for block in blocks)


@pytest.mark.parametrize(
    ("source", "expects"),
    [
        ("with replaced(x), pytest.raises(AssertionError):\n  run()", True),
        ("with replaced(x):\n  with pytest.raises(AssertionError):\n    run()", True),
        ("with (\n  bugs.replaced(x),\n  raises(AssertionError),\n):\n  run()", True),
        ("assert_found(x, run)", True),
        ("with replaced(x):\n  run()\nwith pytest.raises(AssertionError):\n  run()", False),
    ],
)
def test_every_form_of_replacing_and_expecting_is_seen(source: str, expects: bool) -> None:
    assert expects_a_failure(source) is expects


@pytest.mark.check  # it collects the marked tests in a process of its own
def test_the_table_is_that_of_the_tests_and_most_bugs_are_caught_before_the_long_tier() -> None:
    kept = TABLE.search(PAGE.read_text())
    assert kept and kept[0] == table(), "write it anew: python -m tests.put_in_bugs --write"
    tiers = Counter(line.rsplit("|", 2)[1].strip() for line in kept[0].splitlines()[2:])
    assert tiers["test"] + tiers["check"] >= 0.6 * tiers.total() > 100
    assert tiers["test"] >= 20


def test_who_replaces_production_code_and_expects_a_failure_is_marked() -> None:
    unmarked = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.glob("tests/**/test_*.py"))
        if REPLACES.search(text := path.read_text()) and not MARKED.search(text) and expects_a_failure(text)
    ]
    assert unmarked == ["tests/test_replacing.py"], "this one tests `replaced` itself"
