"""The Python examples of a page of the documents, for tests that run them."""

import re
from pathlib import Path
from typing import NamedTuple

_EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCS = Path(__file__).parents[1] / "docs"


class Example(NamedTuple):
    """Code, and the number of the page's line that it begins at."""

    line: int
    code: str


def examples(page: str) -> list[Example]:
    """The examples of `docs/<page>`, in order."""
    text = (DOCS / page).read_text()
    return [Example(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in _EXAMPLE.finditer(text)]


def run_examples(page: str) -> int:
    """Run them in one namespace, from top to bottom; a traceback names the page and its line. Returns their number."""
    space: dict[str, object] = {"__name__": "__main__"}
    found = examples(page)
    for line, code in found:
        exec(compile("\n" * (line - 1) + code, str(DOCS / page), "exec"), space)
    return len(found)
