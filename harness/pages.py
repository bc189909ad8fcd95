"""The Python examples and the commands of a page of the documents, for tests that run them."""

import re
from pathlib import Path
from typing import NamedTuple

_EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TERMINAL = re.compile(r"^```(?:console)?\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
DOCS = Path(__file__).parents[1] / "docs"


class Example(NamedTuple):
    """Code, and the number of the page's line that it begins at."""

    line: int
    code: str


def examples(page: str) -> list[Example]:
    """The examples of `docs/<page>`, or of README.md, in order."""
    text = (DOCS.parent if page == "README.md" else DOCS).joinpath(page).read_text()
    return [Example(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in _EXAMPLE.finditer(text)]


class ShownCommand(NamedTuple):
    """A command line, and what the page shows below it."""

    line: str
    output: str


def commands(page: str) -> list[ShownCommand]:
    """The commands of `docs/<page>`, in order."""
    found: list[ShownCommand] = []
    for block in _TERMINAL.findall((DOCS / page).read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            found.append(ShownCommand(line, output))
    return found


def run_examples(page: str) -> int:
    """Run them in one namespace, from top to bottom; a traceback names the page and its line. Returns their number."""
    space: dict[str, object] = {"__name__": "__main__"}
    found = examples(page)
    for line, code in found:
        exec(compile("\n" * (line - 1) + code, str(DOCS / page), "exec"), space)
    return len(found)


class Module(NamedTuple):
    """Examples as a type checker sees them: one file, whose lines have the numbers of the page's. `uses_spark`: the
    session `spark` is there before, as the page says."""

    name: str
    code: str
    uses_spark: bool


ONE_AFTER_ANOTHER = (
    "admin.md", "consumer.md", "consumer-groups.md", "schemas.md", "spark.md", "spark-write.md", "streams.md",
)  # fmt: skip
"""Pages whose examples go on where the earlier ones stopped; elsewhere each is a program of its own."""
_CHECKPOINT = "checkpoint = ''"
_SESSION = (
    f"from pyspark.sql import SparkSession; spark: SparkSession = SparkSession.builder.getOrCreate(); {_CHECKPOINT}"
)


def modules() -> list[Module]:
    """All examples of README.md and docs/."""
    made = []
    for page in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))):
        together = page.name in ONE_AFTER_ANOTHER
        code = ""
        for line, example in examples(page.name):
            code += "\n" * (line - 1 - code.count("\n")) + example
            if not together:
                made.append(_module(f"{page.stem}_{line}", code))
                code = ""
        if together:
            made.append(_module(page.stem, code))
    return made


def _module(name: str, code: str) -> Module:
    uses_spark = re.search(r"\bspark\.|\(spark,", code) is not None
    makes_session = re.search(r"^spark = ", code, re.MULTILINE) is not None
    given = f"{_CHECKPOINT if makes_session else _SESSION}\n" if uses_spark else "\n"
    return Module(name.replace("-", "_").lower(), given + code.removeprefix("\n"), uses_spark)
