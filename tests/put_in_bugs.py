"""The bugs that are put in on purpose (tests with the marker `bug`), and the tier that catches each.

usage: python -m tests.put_in_bugs           print the table
       python -m tests.put_in_bugs --write   put it into tests/README.md
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "tests" / "README.md"
TABLE = re.compile(r"(?<=<!-- bugs put in on purpose -->\n).*?(?=<!-- end of bugs -->)", re.DOTALL)
MARKED = re.compile(r"\bmark\.bug\b")
LINE = "put in:\t"


def pytest_collection_finish(session: pytest.Session) -> None:
    """A line for each bug, when this module is a plugin of `pytest --collect-only`."""
    from tests.conftest import tier_of

    for item in session.items:
        print(f"{LINE}{item.nodeid}\t{tier_of(item).name.lower()}")


def collected() -> Iterator[tuple[str, str, str]]:
    """(file, bug, tier) of each; a test of a single bug is named after what it finds."""
    files = [path for path in sorted(ROOT.glob("tests/**/test_*.py")) if MARKED.search(path.read_text())]
    options = ["-p", "tests.put_in_bugs", "-p", "no:cacheprovider", "--collect-only", "-qq", "-m", "bug"]
    command = [sys.executable, "-m", "pytest", *options, *(str(path.relative_to(ROOT)) for path in files)]
    every = {name: value for name, value in os.environ.items() if name != "MOLDAU_TIER"}
    done = subprocess.run(command, cwd=ROOT, env=every, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in done.stdout.splitlines():
        if line.startswith(LINE):
            nodeid, tier = line.removeprefix(LINE).split("\t")
            file, _, test = nodeid.partition("::")
            name, _, parameter = test.partition("[")
            bug = parameter.removesuffix("]") or name.removeprefix("test_").replace("_", " ")
            yield file.removeprefix("tests/"), bug, tier


def table() -> str:
    rows = [f"| `{file}` | {bug} | {tier} |" for file, bug, tier in sorted(collected())]
    return "\n".join(["| found by | bug | tier |", "|---|---|---|", *rows]) + "\n"


def main() -> int:
    if "--write" not in sys.argv:
        print(table(), end="")
        return 0
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
