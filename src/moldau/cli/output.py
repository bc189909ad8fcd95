"""How commands print: tables for people, JSON for programs; both are plain text that pipes and greps well."""

import json
import sys
from collections.abc import Sequence
from typing import Any


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their widest cell; numbers to the right; nothing is cut off."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(texts[i]) for texts in [list(headers), *cells]) for i in range(len(headers))]
    kinds = [{type(row[i]) for row in rows if row[i] is not None} for i in range(len(headers))]
    right = [kind == {int} for kind in kinds]
    for texts in [list(headers), *cells]:
        line = "  ".join(t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right, strict=True))
        print(line.rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return ",".join(str(v) for v in value)
    return str(value)


def note(sentence: str) -> None:
    """Something for people that is no data: to standard error."""
    print(sentence, file=sys.stderr)
