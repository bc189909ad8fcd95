"""How commands print: tables for people, JSON for programs; both are plain text that pipes and greps well."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def print_json(data: Any) -> None:
    import json

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
        return ",".join(_plain(str(v)) for v in value)
    return _plain(str(value))


def _plain(text: str) -> str:
    """The text with escapes in place of what is not printable: a client may give a group a name that a terminal would
    take for a command, or that would end the row."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def note(sentence: str) -> None:
    """A line for people, not data: it goes to standard error."""
    print(sentence, file=sys.stderr)


@contextmanager
def done_one_by_one(word: str, sentence: str, as_json: bool) -> Iterator[list[str]]:
    """For a command that does the same to several things: yields the list of the names that are done. At the end they
    are printed, with `sentence` or as a JSON object of that one `word`; also if the command fails half-way."""
    done: list[str] = []
    is_whole = False
    try:
        yield done
        is_whole = True
    finally:
        if as_json and (done or is_whole):
            print_json({word: done})
        elif not as_json:
            for name in done:
                print(sentence.format(name))


def time_text(timestamp_ms: int) -> str:
    """A time as ISO 8601 in UTC; the number itself where no calendar reaches."""
    from datetime import UTC, datetime

    try:
        time = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def named_content(name: str, content: bytes | None) -> tuple[str, str | None]:
    """A byte string for JSON: its text under its name, or base64 under `name_base64` if it is not UTF-8."""
    import base64

    try:
        return name, content.decode() if content is not None else None
    except UnicodeDecodeError:
        return f"{name}_base64", base64.b64encode(content or b"").decode()
