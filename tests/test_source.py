"""The source is under test too: pure cores, lengths, headers, dead modules, requirements (rules: `source_rules.py`).

Each rule is also fed a bad sample, so that one that stopped looking is noticed.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import source_rules as rules
from tests.source_rules import Source

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.together("source")  # which is parsed once
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OURS = rules.read_all(ROOT, "src")
EVERYTHING = [*OURS, *rules.read_all(ROOT, "tests", "tools", "benchmarks", "harness")]
ENTRY_POINTS = (
    "moldau.cli.main",
    "moldau.simulation.world",  # the worlds of tests are made of it
    "moldau.testing.plugin",  # pytest loads it
    "pyspark_moldau",
    *(one.name for one in OURS if one.name.endswith("__main__")),
)

MODULES_OF = {
    "opentelemetry-proto": "opentelemetry",
    "protobuf": "google",
    "google-re2": "re2",
    "jsonschema-rs": "jsonschema_rs",
    "prometheus-client": "prometheus_client",
}
"""Where a distribution's module has another name than the distribution."""


def listed(problems: list[str]) -> str:
    return "\n".join(problems)


def test_files_and_functions_are_short() -> None:
    assert not (found := [problem for source in EVERYTHING for problem in rules.too_long(source)]), listed(found)


def test_no_folder_is_crowded() -> None:
    assert not (found := rules.crowded(OURS)), listed(found)


def test_pure_cores_neither_wait_nor_reach_out() -> None:
    pure = [source for source in OURS if rules.is_pure(source.name)]
    assert pure
    assert not (found := [problem for source in pure for problem in rules.impure(source)]), listed(found)


def test_the_import_contracts_name_every_pure_core() -> None:
    contracts = {contract["id"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
    assert sorted(contracts["pure-cores"]["source_modules"]) == sorted(f"*.{core}" for core in rules.PURE_CORES)


def test_nothing_says_that_it_is_unfinished() -> None:
    assert not (found := [problem for source in EVERYTHING for problem in rules.unfinished(source)]), listed(found)


def test_every_module_opens_with_a_header() -> None:
    assert not (found := [problem for source in OURS for problem in rules.without_header(source)]), listed(found)


def test_no_module_is_a_drawer() -> None:
    assert not (found := [problem for source in EVERYTHING for problem in rules.drawer(source)]), listed(found)


def test_every_module_is_imported_by_someone() -> None:
    assert not (found := rules.dead_modules(OURS, ENTRY_POINTS)), listed(found)


def test_production_imports_only_what_the_install_brings() -> None:
    project = PROJECT["project"]
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name not in ("test", "dev")}
    known = dict.fromkeys([*sys.stdlib_module_names, "moldau", "pyspark_moldau", "cython"], "")
    for requirement in [*project["dependencies"], *(need for needs in extras.values() for need in needs)]:
        name = re.split(r"[^\w.-]", requirement)[0]
        known[MODULES_OF.get(name, name)] = requirement
    installed = [source for source in OURS if source.name != "moldau.testing.plugin"]  # pytest itself loads that one
    assert not (found := [problem for source in installed for problem in rules.foreign_imports(source, known)]), listed(
        found
    )


def test_the_page_about_installation_names_every_extra() -> None:
    page = (ROOT / "docs" / "installation.md").read_text()
    named = re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)))
    assert set(PROJECT["project"]["optional-dependencies"]) - {"test", "dev", "site"} <= set(named)


def test_only_tests_import_tests() -> None:
    assert not (found := [problem for source in EVERYTHING for problem in rules.imports_of_tests(source)]), listed(
        found
    )
    assert rules.imports_of_tests(sample("from tests.brokers import Broker", "benchmarks/load.py"))


KNOWN_AT_THE_TOP = {
    ".ci", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile",
    "README.md", "SECURITY.md", "benchmarks", "constraints.txt", "deploy", "docs", "findings", "harness",
    "pyproject.toml", "setup.py", "src", "tests", "tools",
}  # fmt: skip


def test_git_tracks_nothing_unknown_at_the_top() -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return  # these files are not a clone
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = rules.at_the_top(tracked.split("\0"))
    assert not (unknown := found - KNOWN_AT_THE_TOP), f"junk, or to be added to the list: {sorted(unknown)}"
    assert not (gone := KNOWN_AT_THE_TOP - found), f"known, but no longer there: {sorted(gone)}"


def test_a_folder_that_a_test_wrote_into_the_tree_is_noticed() -> None:
    junk = "Location(uri='w', options={})/flights/_delta_log/0.json"
    assert rules.at_the_top(["README.md", "src/moldau/names.py", junk, ""]) - KNOWN_AT_THE_TOP == {junk.split("/")[0]}


SAME_IDEA = {
    "Broker": "the broker, and `moldau.testing`'s, which runs it in a test's process and whose name is public",
    "Clock": "the port for time, and `moldau.testing`'s implementation of it, whose name is public",
    "Cluster": "a cluster, as one of its brokers takes part in it, and `moldau.testing`'s, whose name is public",
    "EpochEnd": "a leader's answer to OffsetForLeaderEpoch, where it is given and where it is taken",
    "ListedGroup": "Kafka's name for a group in ListGroups: as coordinators know it, and as a message",
    "NewTopic": "a topic to create, as an admin client asks for it, and as the controller decides on it",
    "Record": "a record that was read: the consumer's (public), and that of `records`, which knows no topic",
    "TransactionState": "Kafka's name for a transaction's state: the coordinator's enum, and the messages that list it",
}
"""Class names that two modules share, because they are one idea at both ends and neither may import the other."""
SAME_IDEA_MAX = 8


def test_a_class_name_stands_for_one_thing() -> None:
    found = rules.names_of_two(OURS)
    unknown = [problem for name, problem in found.items() if name not in SAME_IDEA]
    assert not unknown, listed(unknown)
    assert found.keys() == SAME_IDEA.keys(), "a reason that nobody needs any more"
    assert len(SAME_IDEA) <= SAME_IDEA_MAX


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("class Route:\n    pass", "@dataclass\nclass Route(Base):\n    pass"),
        ("class Route(NamedTuple):\n    hops: int", "Route: TypeAlias = tuple[int, ...]"),
        ("Route = NewType('Route', int)", "class Route:\n    pass"),
        ("class Route:\n    pass", "Route = dict[str, int]"),
        ("class Route:\n    pass", "Route = int | None"),
        ("class Route:\n    pass", "Route = cython.struct(hops=cython.int)"),
    ],
)
def test_a_class_name_of_two_modules_is_caught(one: str, other: str) -> None:
    sources = [sample(one, "src/moldau/net/a.py"), sample(other, "src/moldau/client/b.py")]
    assert list(rules.names_of_two(sources)) == ["Route"]
    message = sample("class Route:\n    pass", f"{rules.ONE_FILE_PER_API}/routes.py")
    assert list(rules.names_of_two([*sources[:1], message])) == ["Route"]
    assert rules.names_of_two(sources[:1]) == rules.names_of_two([message, message]) == {}


@pytest.mark.parametrize(
    "other",
    [
        "Route = TypeVar('Route')",
        "Route = Annotated[str, Option('--route')]",
        "class _Route:\n    pass",
        "class Path:\n    class Route:\n        pass",
        "def f():\n    class Route:\n        pass",
    ],
)
def test_a_name_that_no_other_module_can_import_as_a_type_is_not_complained_about(other: str) -> None:
    sources = [sample("class Route:\n    pass", "src/moldau/net/a.py"), sample(other, "src/moldau/client/b.py")]
    assert rules.names_of_two(sources) == {}


NOT_IN_THE_BROKER = ("records", "cli", "client", "demo", "pipeline", "simulation", "files")
RECORD_WORK_ALLOWED = {
    "moldau.coordinators.replaying": "a batch that a coordinator wrote, of at most 512 KB or one record",
    "moldau.log.compaction.compactor": "in the executor, a step of about an I/O buffer at a time",
    "moldau.log.recovering.recovery": "before the broker serves, in the executor; one record of at most 1 KiB",
    "moldau.log.producers.rebuilding": "markers alone: before the broker serves, or in a truncation; one record each",
    "moldau.log.replicated": "markers alone: one record of at most 1 KiB each",
    "moldau.log.times": "at most 64 KiB on the loop, else in the executor; no objects",
    "moldau.replication.telemetry.inflating": "what a client pushed: in the executor, one at a time, at most 64 MiB",
}
"""Modules of a broker that look into records one by one, or inflate, and why that is bounded, as in
docs/performance-design.md. Another one needs a reason there and here."""


def test_a_broker_looks_into_records_only_where_that_is_bounded() -> None:
    found = {
        source.name: problems
        for source in OURS
        if not source.name.removeprefix("moldau.").startswith(NOT_IN_THE_BROKER)
        and source.name.startswith("moldau.")
        and (problems := rules.record_work(source))
    }
    unknown = [problem for name, problems in found.items() if name not in RECORD_WORK_ALLOWED for problem in problems]
    assert not unknown, listed(unknown)
    assert found.keys() == RECORD_WORK_ALLOWED.keys(), "a reason that nobody needs any more"
    page = (ROOT / "docs" / "performance-design.md").read_text()
    assert all(f"`{name.removeprefix('moldau.').replace('.', '/')}`" in page for name in RECORD_WORK_ALLOWED)


@pytest.mark.parametrize(
    "text",
    [
        "from moldau.records.rows import iterate\nfor record in iterate(b''): ...",
        "from moldau.records import columns\nmake = columns.rows",
        "from moldau.records import compression\ncompression.decompress(1, b'', 9)",
        "def f():\n    from moldau.records.sections import section_of\n    return partial(section_of, b'')",
    ],
)
def test_a_look_into_records_is_caught(text: str) -> None:
    assert rules.record_work(sample(text))


def test_columns_of_another_kind_are_not_complained_about() -> None:
    assert rules.record_work(sample("def f(table):\n    return table.rows, [row for row in table]")) == []


APART = ("moldau.cli", "moldau.demo", "moldau.pipeline", "pyspark_moldau")
"""Programs of their own, which no test of an application runs with a stopped clock."""


def test_what_waits_in_an_application_s_process_asks_a_clock_that_its_tests_do_not_stop() -> None:
    stopped = re.compile(r"\btime\.monotonic\w*\(|from time import")
    apart = tuple(f"{name}." for name in APART)  # with the dot: moldau.client is not of moldau.cli
    asked = [source.name for source in OURS if not f"{source.name}.".startswith(apart) and stopped.search(source.text)]
    assert asked == []  # moldau.monotonic has that clock


def test_who_stops_a_task_does_not_hide_that_it_was_cancelled_itself() -> None:
    hides = re.compile(r"suppress\(asyncio\.CancelledError\):\n +await ")
    found = [source.path for source in OURS if hides.search(source.text)]
    assert found == ["src/moldau/cli/until_signal.py"]  # it is the outermost one; others call moldau.tasks.ended


def test_links_between_our_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    assert links
    assert not (found := [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]), found


def sample(text: str, path: str = "src/moldau/protocol/sample.py") -> Source:
    return Source(path, text, path.removeprefix("src/").removesuffix(".py").replace("/", "."))


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio",
        "import os.path",
        "from time import monotonic",
        "def f():\n    import random",
        "import concurrent.futures",
        "async def f(): ...",
        "async def f(x):\n    await x",
        "from datetime import datetime\ndatetime.now()",
        "import uuid\nuuid.uuid4()",
        "open('x')",
    ],
)
def test_an_impure_core_is_caught(text: str) -> None:
    assert rules.impure(sample(text))


def test_pure_code_is_not_complained_about() -> None:
    text = "import struct\nfrom uuid import UUID\n\ndef f(now_ms: int) -> UUID:\n    return UUID(int=now_ms)\n"
    assert rules.impure(sample(text)) == []


def test_a_long_file_and_a_long_function_are_caught() -> None:
    assert rules.too_long(sample("x = 1\n" * 441))
    assert rules.too_long(sample("def f():\n" + "    x = 1\n" * 60))
    assert rules.too_long(sample("class A:\n  async def f():\n" + "    x = 1\n" * 60))
    assert rules.too_long(sample("def f():\n" + "    x = 1\n" * 59)) == []


def test_a_crowded_folder_is_caught() -> None:
    files = [sample("", f"src/moldau/log/{number}.py") for number in range(26)]
    assert rules.crowded(files)
    assert rules.crowded(files[1:]) == []
    assert rules.crowded([sample("", f"{rules.ONE_FILE_PER_API}/{number}.py") for number in range(26)]) == []


@pytest.mark.parametrize("word", rules.UNFINISHED)
def test_an_unfinished_place_is_caught(word: str) -> None:
    assert rules.unfinished(sample(f"x = 1  # {word}"))


def test_a_module_without_header_and_a_drawer_are_caught() -> None:
    assert rules.without_header(sample("import struct"))
    assert rules.drawer(sample("", "src/moldau/utils.py"))
    assert rules.drawer(sample("", "src/moldau/common/x.py"))
    assert rules.drawer(sample("", "src/moldau/log/segment.py")) == []


def test_a_dead_module_is_caught_and_a_live_one_is_not() -> None:
    dead = sample("", "src/moldau/log/dead.py")
    by_import = sample("", "src/moldau/log/live.py")
    by_name = sample("", "src/moldau/cli/topics/commands.py")
    by_prefix = sample("", "src/moldau/protocol/messages/fetch.py")
    user = sample(
        "from moldau.log import live\nX = 'moldau.cli.topics.commands:command'\nY = f'moldau.protocol.messages.{X}'",
        "src/moldau/user.py",
    )
    found = rules.dead_modules([dead, by_import, by_name, by_prefix, user], ("moldau.user",))
    assert found == ["src/moldau/log/dead.py is imported by nobody"]


def test_an_import_that_no_requirement_brings_is_caught() -> None:
    known = {"struct": "", "crc32c": "crc32c>=2.7"}
    assert rules.foreign_imports(sample("import struct, crc32c"), known) == []
    assert rules.foreign_imports(sample("def f():\n    from kio.schema import x"), known)
