"""Rules about our own source that no linter has: each takes parsed source and returns what is wrong, in sentences.

They read syntax trees and import nothing of what they judge, so that broken code is judged as well.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

FILE_LINES_MAX = 440
FUNCTION_LINES_MAX = 60
FOLDER_FILES_MAX = 25
ONE_FILE_PER_API = "src/moldau/protocol/messages"
"""The one folder that may have more: its files are rows of a table."""
DRAWERS = ("utils", "util", "helpers", "helper", "common", "base", "manager", "misc")
UNFINISHED = ("TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error", "pytest." + "skip", "mark." + "skip")
RECORD_WORK = tuple(
    f"moldau.records.{name}"
    for name in (
        "batch.read_control", "batch.read_marker", "columns.refused", "columns.rows", "compression.decompress",
        "legacy.entries", "legacy.rows", "legacy.stream", "rows.iterate", "sections.section_of", "sections.sections",
    )
)  # fmt: skip
"""Calls that inflate a batch or make Python objects of its records."""

PURE_CORES = (
    "protocol",
    "records",
    "net.durations",
    "log.traffic",
    "log.folders.advice",
    "metrics.exporter_names",
    "metrics.families",
    "metrics.jmx_names",
    "metrics.kminion_names",
    "metrics.own_names",
    "metrics.snapshot",
    "assignors",
    "cluster.state.acls",
    "cluster.state.change_messages",
    "cluster.state.image",
    "cluster.state.image_changes",
    "cli.cluster.moving.balancing",
    "cli.cluster.moving.cluster_layout",
    "cli.cluster.moving.replacing",
    "cli.cluster.moving.shown_plan",
    "cli.doctor.checks",
    "cli.doctor.redacting",
    "client.consuming.groups.zookeeper.group_reading",
    "client.consuming.groups.zookeeper.registered_members",
    "client.consuming.groups.zookeeper.sharing",
    "client.registry.json_texts",
    "client.registry.proto",
    "client.zookeeper.group_names",
    "client.zookeeper.registered_brokers",
    "client.zookeeper.registered_topics",
    "cluster.controlling.controller",
    "cluster.state.move_throttles",
    "cluster.controlling.reassigning",
    "console.search.avro_values",
    "console.search.exporting",
    "console.search.json_paths",
    "console.search.masking",
    "console.search.matching",
    "console.search.outgoing",
    "console.search.records",
    "console.search.rounds",
    "console.search.wanted",
    "console.web.attempts",
    "console.web.events",
    "console.web.guards",
    "console.web.paths",
    "console.asking.topic_rows",
    "cluster.users.credentials",
    "cluster.users.tokens",
    "cluster.state.deletions",
    "cluster.state.departures",
    "cluster.state.documents",
    "cluster.state.elections",
    "cluster.state.eligibility",
    "cluster.state.isr_changes",
    "cluster.state.layout",
    "cluster.state.lease",
    "cluster.state.own_leaderships",
    "cluster.state.placement",
    "cluster.state.reading",
    "cluster.state.reassignment",
    "cluster.state.registrations",
    "coordinators.append_errors",
    "coordinators.batching",
    "coordinators.classic",
    "coordinators.consumer",
    "coordinators.deadlines",
    "coordinators.decision",
    "coordinators.groups.messages",
    "coordinators.groups.records",
    "coordinators.groups.settings",
    "coordinators.groups.shard",
    "coordinators.offsets",
    "coordinators.partitioning",
    "coordinators.replaying",
    "coordinators.transactions.records",
    "coordinators.transactions.shard",
    "coordinators.transactions.transaction",
    "files.legacy",
    "files.metadata_log",
    "mirror.copies",
    "mirror.foreign.copy_positions",
    "mirror.foreign.group_checkpoints",
    "mirror.foreign.mirror_records",
    "mirror.foreign.offset_syncs",
    "mirror.foreign.policy",
    "mirror.foreign.remote_acls",
    "mirror.foreign.remote_topics",
    "mirror.counters",
    "mirror.latency",
    "mirror.source_session",
    "mirror.planning",
    "handlers.producing.mistimed",
    "handlers.telemetry.instances",
    "handlers.telemetry.subscribing",
    "config.client_metrics",
    "config.expressions",
    "log.epochs",
    "rates",
    "registry.access_rules",
    "registry.api",
    "registry.avro",
    "registry.contexts",
    "registry.decisions",
    "registry.http_messages",
    "registry.json_schema",
    "registry.kinds",
    "registry.levels",
    "registry.protobuf",
    "registry.reading",
    "registry.refusals",
    "registry.resolving",
    "registry.scopes",
    "registry.state",
    "registry.texts",
    "registry.topic_records",
    "replication.closest",
    "replication.in_sync",
    "replication.leader_session",
    "replication.leadership",
    "replication.unserved",
    "replication.quota",
    "replication.shortage",
    "cluster.state.quotas",
    "security.quotas.buckets",
    "security.quotas.client_use",
    "security.quotas.entities",
    "security.quotas.sensors",
    "security.rules",
    "security.selecting",
    "transport.distinguished_names",
    "transport.principals",
    "transport.sasl",
)
IMPURE_MODULES = ("asyncio", "time", "random", "os", "socket", "threading", "secrets", "subprocess", "concurrent")
IMPURE_CALLS = ("open", "input", "print", "uuid1", "uuid4", "now", "today", "utcnow")
WAITING = (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)
NOTED = frozenset(
    (
        *WAITING, ast.Import, ast.ImportFrom, ast.Call, ast.Attribute, ast.Expr, ast.Constant, ast.JoinedStr,
        ast.comprehension, ast.FunctionDef,
    )
)  # fmt: skip
"""The kinds of nodes that the rules look at; three of five are others."""


@dataclass
class Facts:
    """What the rules need of a syntax tree: one walk finds it, and the tree is not kept."""

    has_header: bool
    imports: list[tuple[int, str]] = field(default_factory=list)
    """Line and dotted name of everything imported, `from a import b` as `a.b`."""
    functions: list[tuple[int, str, int]] = field(default_factory=list)
    """Line, name and number of lines."""
    waits: list[int] = field(default_factory=list)
    calls: list[tuple[int, str]] = field(default_factory=list)
    attributes: list[tuple[int, str, str]] = field(default_factory=list)
    """Line, variable and attribute of each `variable.attribute`."""
    names_after_dots: set[str] = field(default_factory=set)
    strings: list[str] = field(default_factory=list)
    docstrings: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    """The text that an f-string begins with."""
    classes: list[tuple[int, str]] = field(default_factory=list)
    """Line and name of the module's public classes; a `NewType` is one, too."""
    aliases: list[tuple[int, str]] = field(default_factory=list)
    """Line and name of its public aliases of types, Cython's structs among them; no type variables, no options of the
    command line."""

    def note_type(self, node: ast.stmt) -> None:
        match node:
            case ast.ClassDef(name=name):
                found = self.classes
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                found = self.aliases
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="NewType"))):
                found = self.classes
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_type(name, value):
                found = self.aliases
            case _:
                return
        if not name.startswith("_"):
            found.append((node.lineno, name))

    def note(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                self.imports += [(node.lineno, alias.name) for alias in node.names]
            case ast.ImportFrom(module=str() as module, level=0):
                self.imports += [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
                self.calls.append((node.lineno, name))
            case ast.Attribute(value=value):
                self.names_after_dots.add(node.attr)
                if isinstance(value, ast.Name):
                    self.attributes.append((node.lineno, value.id, node.attr))
            case ast.Expr(value=ast.Constant(value=str() as text)):
                self.docstrings.append(text)
            case ast.Constant(value=str() as text):
                self.strings.append(text)
            case ast.JoinedStr(values=[ast.Constant(value=str() as text), *_]):
                self.prefixes.append(text)
            case ast.comprehension(is_async=1):
                self.waits.append(node.target.lineno)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                self.functions.append((node.lineno, node.name, length))
        if isinstance(node, WAITING):
            self.waits.append(node.lineno)


def _is_type(name: str, value: ast.expr) -> bool:
    """Whether a name is bound to an expression that is a type: `dict[str, int]`, `A | B`, `cython.struct(...)`."""
    if not name[0].isupper() or name.isupper():
        return False
    match value:
        case ast.Subscript(value=ast.Name(id=generic)):
            return generic != "Annotated"
        case ast.BinOp(op=ast.BitOr()):
            return True
        case ast.Call(func=ast.Attribute(attr="struct")):
            return True
    return False


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of these kinds, in any order, in half the time of `ast.walk`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if type(node) in NOTED:
            yield node
        for name in node._fields:
            if name != "ctx":
                value = getattr(node, name, None)
                if type(value) is list:
                    waiting += [one for one in value if isinstance(one, ast.AST)]
                elif isinstance(value, ast.AST):
                    waiting.append(value)


@dataclass(frozen=True)
class Source:
    """One file; `name` is its module's dotted name, "" for a file that is no module of ours."""

    path: str
    text: str
    name: str = ""

    @cached_property
    def facts(self) -> Facts:
        tree = ast.parse(self.text, self.path)
        facts = Facts(bool(ast.get_docstring(tree)))
        for found in nodes(tree):
            facts.note(found)
        for node in tree.body:
            facts.note_type(node)
        return facts


def read_all(root: Path, *folders: str) -> list[Source]:
    """Every Python file below the folders of `root`; those below `src` get the name they are imported by."""
    return [source for folder in folders for source in _read(root, folder)]


@cache
def _read(root: Path, folder: str) -> list[Source]:
    """Read once, so that each file is parsed once."""
    found = []
    for path in sorted((root / folder).rglob("*.py")):
        parts = path.relative_to(root / folder).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts) if folder == "src" else ""
        found.append(Source(str(path.relative_to(root)), path.read_text(), name))
    return found


def is_pure(name: str) -> bool:
    below = name.removeprefix("moldau.")
    return any(below == core or below.startswith(f"{core}.") for core in PURE_CORES)


def too_long(source: Source) -> list[str]:
    """Files of more than 440 lines, functions of more than 60."""
    lines = source.text.count("\n")
    found = [f"{source.path} has {lines} lines"] if lines > FILE_LINES_MAX else []
    return found + [
        f"{source.path}:{line} {name} has {length} lines"
        for line, name, length in source.facts.functions
        if length > FUNCTION_LINES_MAX
    ]


def crowded(sources: Iterable[Source]) -> list[str]:
    """Folders with more than 25 files of code, which nobody can survey."""
    counts = Counter(str(Path(source.path).parent) for source in sources)
    return [
        f"{folder} has {count} files"
        for folder, count in counts.items()
        if count > FOLDER_FILES_MAX and folder != ONE_FILE_PER_API
    ]


def at_the_top(tracked: Iterable[str]) -> set[str]:
    """The files and folders at the top of the tree, from the paths that git tracks."""
    return {path.split("/")[0] for path in tracked if path}


def impure(source: Source) -> list[str]:
    """What a pure core must not do: wait, or reach for the clock, chance, files, sockets, threads."""
    facts = source.facts
    return [
        *(f"{source.path}:{line} imports {name}" for line, name in facts.imports if top(name) in IMPURE_MODULES),
        *(f"{source.path}:{line} waits" for line in facts.waits),
        *(f"{source.path}:{line} calls {name}" for line, name in facts.calls if name in IMPURE_CALLS),
    ]


def top(name: str) -> str:
    return name.partition(".")[0]


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
    return [] if source.facts.has_header or not source.text.strip() else [f"{source.path} has no header"]


def drawer(source: Source) -> list[str]:
    """No module is named as a place where anything may lie."""
    parts = [part.strip("_") for part in Path(source.path).with_suffix("").parts]
    return [f"{source.path} is a drawer" for part in parts if part in DRAWERS]


def foreign_imports(source: Source, known: Mapping[str, str]) -> list[str]:
    """Third-party modules that no requirement brings. `known` maps a module's top name to what it belongs to."""
    return [f"{source.path}:{line} imports {name}" for line, name in source.facts.imports if top(name) not in known]


def imports_of_tests(source: Source) -> list[str]:
    """Where a file that is not a test imports one: what both need belongs to `harness`."""
    if source.path.startswith("tests/"):
        return []
    return [f"{source.path}:{line} imports {name}" for line, name in source.facts.imports if top(name) == "tests"]


def names_of_two(sources: Iterable[Source]) -> dict[str, str]:
    """Public class names that another module gives to a class or an alias of its own, with the modules.

    `protocol/messages` has Kafka's names, one file per API: two files of it may share one, and an alias may have the
    name of a message that it is the hand-read form of. A class elsewhere may not.
    """
    classes: defaultdict[str, list[str]] = defaultdict(list)
    aliases: defaultdict[str, list[str]] = defaultdict(list)
    for source in sources:
        for line, name in source.facts.classes:
            classes[name].append(f"{source.path}:{line}")
        for line, name in source.facts.aliases:
            aliases[name].append(f"{source.path}:{line}")
    found = {}
    for name, places in classes.items():
        ours = [place for place in places if not place.startswith(f"{ONE_FILE_PER_API}/")]
        others = len(places) - 1 + len(aliases[name])
        if ours and others:
            found[name] = f"{name} is in {', '.join([*places, *aliases[name]])}"
    return found


def record_work(source: Source) -> list[str]:
    """Where a function of `RECORD_WORK` is imported, or used as an attribute of its module."""
    imported = source.facts.imports
    modules = {name.rpartition(".")[2]: name for _, name in imported}
    used = [(line, f"{modules.get(variable)}.{name}") for line, variable, name in source.facts.attributes]
    return [
        *(f"{source.path}:{line} imports {name}" for line, name in imported if name in RECORD_WORK),
        *(f"{source.path}:{line} uses {name}" for line, name in used if name in RECORD_WORK),
    ]


def dead_modules(sources: list[Source], entry_points: tuple[str, ...]) -> list[str]:
    """Modules that nobody imports: no import, and no string that is the name or (in an f-string) its start."""
    used: dict[str, None] = dict.fromkeys(entry_points)
    prefixes: dict[str, None] = {}
    for source in sources:
        for _, name in source.facts.imports:
            used[name] = used[name.rpartition(".")[0]] = None
        prefixes.update(dict.fromkeys(source.facts.prefixes))
        used.update(dict.fromkeys(text.partition(":")[0] for text in source.facts.strings))
    started = tuple(prefix for prefix in prefixes if prefix.startswith("moldau.") and prefix.endswith("."))
    return [
        f"{source.path} is imported by nobody"
        for source in sources
        if source.name not in used and not source.name.startswith(started) and not source.path.endswith("__init__.py")
    ]
