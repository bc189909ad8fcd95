"""What the documents name exists: files, folders and modules; the tree and the layers are those of the source."""

import fnmatch
import re
import tomllib
from pathlib import Path

import pytest

from moldau.cli.completing import WORDS
from moldau.net.limits import SEND_BUFFER_BYTES
from tests.source_rules import read_all
from tests.test_log_lines import is_in, rows
from tools import completion_words

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.together("source")  # which is parsed once
SOURCE = ROOT / "src" / "moldau"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
LINES_MAX, COLUMNS_MAX = 210, 120
PAGES = [path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "tests" / "README.md"] if path.exists()]
PROJECT_FOLDERS = ("src", "tests", "tools", "benchmarks", "docs", "harness")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w-]+(?:/[\w.*{},-]+)*/?")
MODULE = re.compile(r"moldau(?:\.\w+)+")


def package_folders() -> list[str]:
    return [path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()]


def project_files() -> list[str]:
    return [
        str(path.relative_to(ROOT))
        for folder in PROJECT_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if "__pycache__" not in path.parts
    ]


FILES = project_files()
PLACES = ("", "src/", "src/moldau/", "src/moldau/protocol/", "tests/", "docs/")
"""Where the paths in our texts begin."""
PATHS = frozenset(PROJECT_FOLDERS) | frozenset(
    path.removeprefix(place).removesuffix(".py") for path in FILES for place in PLACES if path.startswith(place)
)
OUR_FOLDERS = frozenset((*PROJECT_FOLDERS, *package_folders()))
NAMES = frozenset(path.rpartition("/")[2] for path in FILES)


def exists(path: str) -> bool:
    """Whether there is such a file or folder, with or without its suffix."""
    bare = path.rstrip("/").removesuffix(".py")
    return bare in PATHS or ("*" in bare and bool(fnmatch.filter(PATHS, bare)))


def missing(text: str) -> list[str]:
    """The paths and modules in inline code that do not exist. Paths of users' data begin with none of our folders."""
    found = []
    for code in CODE.findall(text):
        for word in code.split():
            if word.startswith("http") or "://" in word:
                continue
            if MODULE.fullmatch(word) and not is_module(word):
                found.append(word)
            first, slash, _ = word.partition("/")
            ours = slash and PATH.fullmatch(word) and first in OUR_FOLDERS
            if (ours and not exists(word)) or (not slash and re.fullmatch(r"\w+\.py", word) and word not in NAMES):
                found.append(word)
    return found


def is_module(name: str) -> bool:
    """Whether that is a module, or something in one."""
    path = ROOT / "src" / name.replace(".", "/")
    above = path.parent
    return any(place.is_dir() or place.with_suffix(".py").exists() for place in (path, above) if place != SOURCE.parent)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    if page.name != "CHANGELOG.md":
        assert missing(page.read_text()) == []


def test_files_and_modules_that_docstrings_name_exist() -> None:
    found = {
        source.path: names
        for source in read_all(ROOT, "src", "tests", "tools", "benchmarks", "harness")
        if source.path != "tests/test_documents.py"
        and (names := [name for text in source.facts.docstrings for name in missing(text)])
    }
    assert found == {}


def test_a_name_of_nothing_is_noticed() -> None:
    gone = "`net/gone.py`, `log/gone`, `gone_for_good.py` and `moldau.gone.module`"
    assert missing(gone) == ["net/gone.py", "log/gone", "gone_for_good.py", "moldau.gone.module"]
    assert (
        missing("`net/server.py`, `log/segment`, `server.py`, `moldau.net.server`, `data/events-3`, `/brokers`") == []
    )


def test_the_architecture_is_short() -> None:
    lines = ARCHITECTURE.read_text().splitlines()
    assert len(lines) <= LINES_MAX
    assert [line for line in lines if len(line) > COLUMNS_MAX] == []


def blocks() -> list[str]:
    """The code blocks of the architecture: the tree, then the layers."""
    return re.findall(r"^```\n(.*?)^```", ARCHITECTURE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_tree_names_what_is_in_the_package() -> None:
    named = re.findall(r"^  (\w+)(?:/|\.py)", blocks()[0], re.MULTILINE)
    here = [path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")] + package_folders()
    assert sorted(named) == sorted(here)


def test_the_tree_names_files_that_exist() -> None:
    folder, gone = "", []
    for line in blocks()[0].splitlines():
        if top := re.match(r"  (\w+)/", line):
            folder = top[1]
        below = SOURCE / folder
        gone += [
            f"{folder}/{name}"
            for name in re.findall(r"\b(\w+\.py)\b", line)
            if not any(below.rglob(name)) and not (SOURCE / name).exists()
        ]
    assert gone == []


def test_the_layers_are_those_that_are_executed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = {contract["id"]: contract for contract in project["tool"]["importlinter"]["contracts"]}
    executed = [re.findall(r"\w+", layer) for layer in contracts["layers"]["layers"]]
    assert [re.findall(r"\w+", line) for line in blocks()[1].splitlines()] == executed


@pytest.mark.parametrize("page", ["log-lines.md", "cluster-log-lines.md"])
def test_log_lines_that_operators_look_for_are_written(page: str) -> None:
    lines = [line for line in rows(page) if len(line) > 1 or " " in line[0]]
    texts = [text for source in read_all(ROOT, "src") for text in source.facts.strings]
    assert len(lines) > 10
    assert [line for line in lines if not any(is_in(line, text) for text in texts)] == []


def test_the_pages_have_the_size_of_the_send_buffer() -> None:
    settings, performance = ((ROOT / "docs" / name).read_text() for name in ("settings.md", "performance-design.md"))
    assert f"Where it is not set, {SEND_BUFFER_BYTES} is used" in settings
    assert f"a send buffer of {SEND_BUFFER_BYTES >> 10} KB" in performance


def test_the_words_that_a_shell_completes_are_those_of_the_commands() -> None:
    assert WORDS.read_text(encoding="utf-8") == completion_words.text(), "run `make docs`"
