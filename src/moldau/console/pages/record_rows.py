"""How a record looks in a row and on its own page."""

import json
import re
from typing import NamedTuple, Self

from moldau.console.search.records import ShownRecord, shown_bytes

KEY_CHARACTERS, VALUE_CHARACTERS, HEADERS_SHOWN = 120, 400, 4
WHOLE_BYTES_MAX = 512 * 1024
"""A record's own page shows at most this much of its key and of its value."""
HEADERS_MAX, HEADER_CHARACTERS = 500, 4_000
INDENTED_CHARACTERS_MAX = 2 * WHOLE_BYTES_MAX
"""JSON that is longer when it is indented is shown as it is: deep nesting could make megabytes of a few bytes."""
INDENT, OPENING, CLOSING = "  ", ("{", "["), ("}", "]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


class RecordContent(NamedTuple):
    """Bytes as text; `kind` is null, text, json or binary; `is_cut` if there is more."""

    text: str
    kind: str
    size_bytes: int
    is_cut: bool = False


class RecordRow(NamedTuple):
    """A record in a table."""

    record: ShownRecord
    key: RecordContent
    value: RecordContent
    headers: list[tuple[str, RecordContent]]
    more_headers: int

    @classmethod
    def of(cls, record: ShownRecord) -> Self:
        headers = [(name[:60], header_of(value, 60)) for name, value in record.headers[:HEADERS_SHOWN]]
        return cls(
            record,
            _brief(record.key, KEY_CHARACTERS, record.key_bytes),
            _brief(record.value, VALUE_CHARACTERS, record.value_bytes),
            headers,
            record.header_count - len(headers),
        )


def _brief(data: bytes | None, characters: int, size_bytes: int = 0) -> RecordContent:
    """`size_bytes` is that of the whole, if `data` is only its beginning."""
    text, kind = shown_bytes(None if data is None else data[: characters * 4])
    size = max(len(data or b""), size_bytes)
    return RecordContent(text[:characters], kind, size, len(text) > characters or size > characters * 4)


def header_of(value: bytes | None, characters: int = HEADER_CHARACTERS) -> RecordContent:
    """The value of a header, which is cut."""
    return _brief(value, characters)


def content_of(data: bytes | None) -> RecordContent:
    """The bytes for their own page; JSON is indented."""
    text, kind = shown_bytes(None if data is None else data[:WHOLE_BYTES_MAX])
    size = len(data or b"")
    is_cut = size > WHOLE_BYTES_MAX
    if kind == "text" and not is_cut and text.lstrip()[:1] in ("{", "["):
        indented = _indented(text)
        if indented is not None:
            return RecordContent(indented, "json", size)
    return RecordContent(text, kind, size, is_cut)


def _indented(text: str) -> str | None:
    """JSON indented; None for what is not JSON, or would be too long. Numbers are shown as they are written, and so is
    each of several members with one name: no parser rounds the ones and drops the others."""
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    pieces, left, depth, before = list[str](), INDENTED_CHARACTERS_MAX, 0, ""
    for found in _TOKEN.finditer(text):
        token = found[0]
        closes = token in CLOSING
        depth -= closes
        begins_line = before == "," or closes != (before in OPENING)
        gap = "\n" + INDENT * depth if begins_line else " " if before == ":" else ""
        pieces.append(gap + (_unescaped(token) if "\\" in token else token))
        left -= len(pieces[-1])
        if left < 0:
            return None
        depth += token in OPENING
        before = token
    return "".join(pieces)


def _unescaped(token: str) -> str:
    """A string of JSON with the characters that it has escapes for, except those that are no text by themselves."""
    text = json.dumps(json.loads(token), ensure_ascii=False)
    return token if any("\ud800" <= sign <= "\udfff" for sign in text) else text
