"""What `moldau produce` reads: lines of text, or the JSON lines that `moldau consume --json` writes.

A line of text is `headers DELIMITER key SEPARATOR value`, as Apache Kafka's console producer reads it. Headers and key
are optional.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from moldau.errors import ConfigError, MoldauError

IGNORED = ("offset", "timestamp", "topic")
"""Fields of `consume --json` that are not the record's own."""
_FIELDS = ("key", "value", "headers", "partition", "timestamp_ms")
Headers = list[tuple[str, bytes | None]]


class Malformed(MoldauError):
    """A malformed line. The text says what is wrong, and follows the place of the line in a sentence."""


class LineRecord(NamedTuple):
    """The record in a line; a partition or time that is None is chosen by the producer."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class TextLines(NamedTuple):
    """How lines of text are read; the names in brackets are those of Kafka's reader. Without a `key_separator`
    (key.separator) lines have no key; `null_marker` (null.marker) is the text of keys, values and headers that are
    null."""

    key_separator: bytes = b""
    null_marker: bytes | None = None
    has_headers: bool = False
    headers_delimiter: bytes = b"\t"
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"

    def check(self) -> None:
        """Raise `ConfigError` for separators that cannot be told apart, or that separate nothing."""
        named = {"--key-separator": self.key_separator}
        if not self.has_headers and self[3:] != TextLines()[3:]:
            raise ConfigError("separators of headers need --headers")
        if self.has_headers:
            named |= {
                "--headers-delimiter": self.headers_delimiter,
                "--headers-separator": self.headers_separator,
                "--headers-key-separator": self.headers_key_separator,
            }
            for name in [*named][1:]:
                if not named[name]:
                    raise ConfigError(f"{name} is empty")
            texts = [*named.values()][1:]
            if len(set(texts)) < len(texts):
                raise ConfigError("--headers-delimiter, --headers-separator and --headers-key-separator must differ")
        for name, text in named.items():
            if self.null_marker is not None and text == self.null_marker:
                raise ConfigError(f"--null-marker and {name} must differ")

    def record(self, line: bytes) -> LineRecord:
        """The record in a line. Raises `Malformed`."""
        headers: Headers = []
        key = None
        if self.has_headers:
            text, line = _split(line, self.headers_delimiter, "after the headers (--headers-delimiter)")
            headers = self._headers(text) if text and self._null(text) is not None else []
        if self.key_separator:
            text, line = _split(line, self.key_separator, "between key and value")
            key = self._null(text)
        return LineRecord(self._null(line), key, headers)

    def _null(self, text: bytes) -> bytes | None:
        return None if text == self.null_marker else text

    def _headers(self, text: bytes) -> Headers:
        headers: Headers = []
        for pair in text.split(self.headers_separator):
            where = f"in header {_shown(pair)} (--headers-key-separator)"
            name, value = _split(pair, self.headers_key_separator, where)
            if self._null(name) is None:
                raise Malformed("has a header whose name is the null marker")
            try:
                headers.append((name.decode(), self._null(value)))
            except UnicodeDecodeError:
                raise Malformed(f"has a header whose name {_shown(name)} is not UTF-8") from None
        return headers


def json_record(line: bytes) -> LineRecord:
    """The record in a line of JSON, as `moldau consume --json` writes it. Raises `Malformed`."""
    try:
        fields = json.loads(line.decode(), object_pairs_hook=_once)
    except json.JSONDecodeError as broken:
        raise Malformed(f"is not JSON: {broken.msg}, at character {broken.pos + 1}") from None
    except (ValueError, RecursionError) as broken:
        raise Malformed(f"is not JSON: {broken}") from None
    if not isinstance(fields, dict):
        raise Malformed("is JSON, but not an object with a record's fields")
    key, value = _content(fields, "key"), _content(fields, "value", needed=True)
    headers = fields.pop("headers", None)
    partition, timestamp_ms = (_number(fields, name) for name in ("partition", "timestamp_ms"))
    unknown = fields.keys() - {*IGNORED}
    if unknown:
        raise Malformed(f"has a field {min(unknown)!r}; a record has {', '.join((*_FIELDS, *IGNORED))}")
    if headers is not None and not isinstance(headers, list):
        raise Malformed("has headers that are not a list of objects with name and value")
    return LineRecord(value, key, [*map(_header, headers or [])], partition, timestamp_ms)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"it has {name!r} twice")
        fields[name] = value
    return fields


def _content(fields: dict[str, Any], name: str, *, needed: bool = False) -> bytes | None:
    """Take a byte string out of the fields: text, null, or base64 under `name_base64`."""
    encoded = f"{name}_base64"
    if name in fields and encoded in fields:
        raise Malformed(f"has both {name} and {encoded}")
    if encoded in fields:
        try:
            return base64.b64decode(fields.pop(encoded), validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise Malformed(f"has a {encoded} that is not base64") from None
    if name not in fields:
        if needed:
            raise Malformed(f"has no {name}: null makes a tombstone")
        return None
    text = fields.pop(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise Malformed(f"has a {name} that is neither text nor null: other JSON has to be given as text")
    return _utf8(text, name)


def _utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Malformed(f"has a {name} that is not Unicode: half of a surrogate pair") from None


def _number(fields: dict[str, Any], name: str) -> int | None:
    number = fields.pop(name, None)
    if number is not None and type(number) is not int:
        raise Malformed(f"has a {name} that is not a whole number")
    return number


def _header(given: Any) -> tuple[str, bytes | None]:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise Malformed("has a header that is not an object with a name")
    name = given.pop("name")
    _utf8(name, "header's name")
    value = _content(given, "value")
    if given:
        raise Malformed(f"has a header with a field {min(given)!r}, not name and value")
    return name, value


def _split(line: bytes, separator: bytes, where: str) -> tuple[bytes, bytes]:
    first, mark, rest = line.partition(separator)
    if not mark:
        raise Malformed(f"has no {_shown(separator)} {where}")
    return first, rest


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))
