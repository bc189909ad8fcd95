"""Rules about our own source that no linter has: each takes parsed source and returns what is wrong, in sentences.

They read syntax trees and import nothing of what they judge, so that broken code is judged as well.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
DRAWERS = ("utils", "util", "helpers", "helper", "common", "base", "manager", "misc")
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error", "pytest." + "skip", "mark." + "skip")
RECORD_WORK = tuple(
    f"moldau.records.{name}"
    for name in (
        "batch.read_marker", "columns.refused", "columns.rows", "compression.decompress", "legacy.entries",
        "legacy.rows", "legacy.stream", "rows.iterate", "sections.section_of", "sections.sections",
    )
)  # fmt: skip
"""Calls that inflate a batch or make Python objects of its records."""

PURE_CORES = (
    "protocol",
    "records",
    "assignors",
    "cluster.state.change_messages",
    "cluster.state.image",
    "cluster.state.image_changes",
    "cluster.controlling.controller",
    "cluster.state.deletions",
    "cluster.state.departures",
    "cluster.state.elections",
    "cluster.state.eligibility",
    "cluster.state.isr_changes",
    "cluster.state.layout",
    "cluster.state.lease",
    "cluster.state.own_leaderships",
    "cluster.state.placement",
    "cluster.state.reading",
    "coordinators.classic",
    "coordinators.consumer",
    "coordinators.deadlines",
    "coordinators.decision",
    "coordinators.groups.messages",
    "coordinators.groups.records",
    "coordinators.groups.settings",
    "coordinators.groups.shard",
    "coordinators.offsets",
    "coordinators.replaying",
    "coordinators.transactions.records",
    "coordinators.transactions.shard",
    "coordinators.transactions.transaction",
    "files.legacy",
    "files.metadata_log",
    "handlers.mistimed",
    "log.epochs",
    "replication.closest",
    "replication.in_sync",
    "replication.leadership",
    "replication.offline_folders",
    "replication.quota",
    "replication.shortage",
)
IMPURE_MODULES = ("asyncio", "time", "random", "os", "socket", "threading", "secrets", "subprocess", "concurrent")
IMPURE_CALLS = ("open", "input", "print", "uuid1", "uuid4", "now", "today", "utcnow")
WAITING = (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)


@dataclass(frozen=True)
class Source:
    """One file; `name` is its module's dotted name, "" for a file that is no module of ours."""

    path: str
    text: str
    name: str = ""

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)


def read_all(root: Path, *folders: str) -> list[Source]:
    """Every Python file below the folders of `root`; those below `src` get the name they are imported by."""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts) if folder == "src" else ""
            found.append(Source(str(path.relative_to(root)), path.read_text(), name))
    return found


def is_pure(name: str) -> bool:
    below = name.removeprefix("moldau.")
    return any(below == core or below.startswith(f"{core}.") for core in PURE_CORES)


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything imported, `from a import b` as `a.b`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def too_long(source: Source) -> list[str]:
    """Files of more than 500 lines, functions of more than 60."""
    lines = source.text.count("\n")
    found = [f"{source.path} has {lines} lines"] if lines > FILE_LINES_MAX else []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                found.append(f"{source.path}:{node.lineno} {node.name} has {length} lines")
    return found


def at_the_top(tracked: Iterable[str]) -> set[str]:
    """The files and folders at the top of the tree, from the paths that git tracks."""
    return {path.split("/")[0] for path in tracked if path}


def impure(source: Source) -> list[str]:
    """What a pure core must not do: wait, or reach for the clock, chance, files, sockets, threads."""
    found = [
        f"{source.path}:{line} imports {name}"
        for line, name in imports(source)
        if name.partition(".")[0] in IMPURE_MODULES
    ]
    for node in ast.walk(source.tree):
        if isinstance(node, WAITING) or (isinstance(node, ast.comprehension) and node.is_async):
            found.append(f"{source.path}:{getattr(node, 'lineno', 0)} waits")
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in IMPURE_CALLS:
                found.append(f"{source.path}:{node.lineno} calls {called}")
    return found


def unfinished(source: Source) -> list[str]:
    """Words that say that something is missing, and tests that are left out."""
    return [
        f"{source.path}:{number} says {word}"
        for number, line in enumerate(source.text.splitlines(), 1)
        for word in UNFINISHED
        if word in line
    ]


def without_header(source: Source) -> list[str]:
    """Every module opens with what it holds, but for an empty `__init__.py`."""
    return [] if ast.get_docstring(source.tree) or not source.text.strip() else [f"{source.path} has no header"]


def drawer(source: Source) -> list[str]:
    """No module is named as a place where anything may lie."""
    parts = [part.strip("_") for part in Path(source.path).with_suffix("").parts]
    return [f"{source.path} is a drawer" for part in parts if part in DRAWERS]


def foreign_imports(source: Source, known: Mapping[str, str]) -> list[str]:
    """Third-party modules that no requirement brings. `known` maps a module's top name to what it belongs to."""
    return [
        f"{source.path}:{line} imports {name}" for line, name in imports(source) if name.partition(".")[0] not in known
    ]


def imports_of_tests(source: Source) -> list[str]:
    """Where a file that is not a test imports one: what both need belongs to `harness`."""
    return [
        f"{source.path}:{line} imports {name}"
        for line, name in imports(source)
        if name.partition(".")[0] == "tests" and not source.path.startswith("tests/")
    ]


def record_work(source: Source) -> list[str]:
    """Where a function of `RECORD_WORK` is imported, or used as an attribute of its module."""
    imported = list(imports(source))
    found = [f"{source.path}:{line} imports {name}" for line, name in imported if name in RECORD_WORK]
    modules = {name.rpartition(".")[2]: name for _, name in imported}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{modules.get(node.value.id)}.{node.attr}"
            if name in RECORD_WORK:
                found.append(f"{source.path}:{node.lineno} uses {name}")
    return found


def dead_modules(sources: list[Source], entry_points: tuple[str, ...]) -> list[str]:
    """Modules that nobody imports: no import, and no string that is the name or (in an f-string) its start."""
    used: dict[str, None] = dict.fromkeys(entry_points)
    prefixes: dict[str, None] = {}
    for source in sources:
        for _, name in imports(source):
            used[name] = used[name.rpartition(".")[0]] = None
        for node in ast.walk(source.tree):
            if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
                prefixes[str(node.values[0].value)] = None
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                used[node.value.partition(":")[0]] = None
    started = tuple(prefix for prefix in prefixes if prefix.startswith("moldau.") and prefix.endswith("."))
    return [
        f"{source.path} is imported by nobody"
        for source in sources
        if source.name not in used and not source.name.startswith(started) and not source.path.endswith("__init__.py")
    ]
