"""The tables of log lines in the documents and the lines that the source writes are the same."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "moldau"
DOCS = ROOT / "docs"
OF_A_CLUSTER = ("cluster", "metadata_store", "peers", "replication", "zookeeper", "handlers/between_brokers")
LOUD = ("warning", "error", "exception", "critical")
LOGGERS = re.compile(r"(?:^|\.)_?(?:logger|notices)$")
IN_OTHER_WORDS = frozenset({"%s", "%s: %s", "%s-%d: %s"})
"""Their sentence is written elsewhere, as that of an exception."""
ROW = re.compile(r"^\| (`.*?) \|", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")


def rows(page: str) -> list[list[str]]:
    """The lines that the tables of a page name, each as the parts that it has in this order."""
    found = []
    for cell in ROW.findall((DOCS / page).read_text()):
        for line in re.split(r"`, (?=`)", cell):
            parts = CODE.findall(line if line.endswith("`") else f"{line}`")
            if parts:
                found.append(parts)
    return found


def is_in(parts: list[str], text: str) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def logged(folders: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Where lines at WARNING and above are logged, and their texts."""
    for path in sorted(path for folder in folders for path in (SOURCE / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in LOUD:
                continue
            logger = LOGGERS.search(ast.unparse(call.func.value))
            if logger is None:
                continue
            text = call.args[1 if logger[0].endswith("notices") else 0]
            where = f"{path.relative_to(SOURCE)}:{call.lineno}"
            for value in [text] if isinstance(text, ast.Constant) else _assigned(tree, text):
                yield where, str(value.value)


def _assigned(tree: ast.Module, name: ast.expr) -> list[ast.Constant]:
    """The texts that a variable has in this file."""
    assert isinstance(name, ast.Name), ast.unparse(name)
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == name.id for target in node.targets)
    ]
    return [value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]


def test_every_line_of_a_cluster_at_warning_and_above_is_explained() -> None:
    known = [*rows("cluster-log-lines.md"), *rows("log-lines.md")]
    texts = [(where, text) for where, text in logged(OF_A_CLUSTER) if text not in IN_OTHER_WORDS]
    assert len(texts) > 50
    assert [one for one in texts if not any(is_in(parts, one[1]) for parts in known)] == []


def test_a_line_that_changed_is_noticed() -> None:
    assert is_in(["a", "c"], "a b c")
    assert not is_in(["c", "a"], "a b c")
    assert not any(is_in(parts, "broker 3 left without a word") for parts in rows("cluster-log-lines.md"))
