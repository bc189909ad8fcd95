"""Records as lines of JSON, in the form that `moldau produce --format json` reads, and as CSV. Pure."""

import csv
import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime

from moldau.console.search.records import ShownRecord, named_content

JSON_LINES, CSV = "jsonl", "csv"
MEDIA_TYPES = {JSON_LINES: "application/x-ndjson", CSV: "text/csv; charset=utf-8"}
COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")
BYTE_ORDER_MARK = "\ufeff"
"""Begins a file of CSV: without it, Excel takes UTF-8 for the code page of its machine."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A cell that begins with one of these (the last four are full-width = + - @) may be a formula in a spreadsheet: it has
an apostrophe in front, as OWASP advises (CSV Injection)."""


def json_lines(topic: str, records: Iterable[ShownRecord]) -> bytes:
    lines = []
    for one in records:
        fields = {
            "topic": topic,
            "partition": one.partition,
            "offset": one.offset,
            "timestamp": time_text(one.timestamp_ms),
            "timestamp_ms": one.timestamp_ms,
            **dict([named_content("key", one.key), named_content("value", one.value)]),
            "headers": [{"name": name, **dict([named_content("value", value)])} for name, value in one.headers],
        }
        lines.append(json.dumps(fields, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def csv_head() -> bytes:
    """The beginning of a file: a byte order mark and the names of the columns."""
    return f"{BYTE_ORDER_MARK}{','.join(COLUMNS)}\r\n".encode()


def csv_lines(records: Iterable[ShownRecord]) -> bytes:
    """A row for each record. Texts are in quotes, so that no separator in them begins a cell."""
    return _rows(
        (
            one.partition,
            one.offset,
            time_text(one.timestamp_ms),
            _cell(one.key),
            _cell(one.value),
            _safe(json.dumps([[name, _text(value)] for name, value in one.headers], ensure_ascii=False)),
        )
        for one in records
    )


def time_text(timestamp_ms: int) -> str:
    """ISO 8601 in UTC; the number itself where no calendar reaches."""
    try:
        at = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rows(rows: Iterable[Iterable[object]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def _text(data: bytes | None) -> str | None:
    text: str | None = named_content("", data)[1]
    return text


def _cell(data: bytes | None) -> str:
    return _safe(_text(data) or "")


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text
