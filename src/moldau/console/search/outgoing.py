"""A record from the fields of its form, and the fields of a record. Pure: what asks a schema registry is handed in.

A line of the headers is `name: text`, `name:: base64` for bytes (as in LDIF), or `name::` for null. A browser sends
line breaks as CR LF and drops NUL, so a text that has a CR or a NUL is base64 in the form.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import NamedTuple

from moldau.errors import ConfigError

TEXT, BASE64, NULL, SCHEMA = "text", "base64", "null", "schema"
BYTES = ":"
"""Behind the colon of a header's name: its value is base64, or null."""
UNSENT = ("\r", "\0")
"""Signs that no browser sends as they are."""
ENCODINGS = {TEXT: "text", BASE64: "base64", NULL: "null"}
WITH_REGISTRY = {**ENCODINGS, SCHEMA: "JSON, by a schema"}
Encode = Callable[[str, str], bytes]
"""`encode(schema, text)`: what a registry's serializer would write; it may block."""
PARTITION_MAX = 2**31 - 1


class RecordToSend(NamedTuple):
    """`partition` None: chosen by the key."""

    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def record_of(form: Mapping[str, str], topic: str = "", encode: Encode | None = None) -> RecordToSend:
    """The record; a part that is to be encoded by a schema which the form does not name has that of Confluent's
    subjects for this topic. Raises `ConfigError`, and what `encode` raises."""
    number = form.get("partition", "").strip()
    if number and not (number.isascii() and number.isdigit() and len(number) <= 10 and int(number) <= PARTITION_MAX):
        raise ConfigError(f"the partition is a number, not {number[:40]!r}")
    return RecordToSend(
        int(number) if number else None,
        _content("key", form, topic, encode),
        _content("value", form, topic, encode),
        [_header(line) for line in _lines(form.get("headers", "")).split("\n") if line.strip()],
    )


def _content(part: str, form: Mapping[str, str], topic: str, encode: Encode | None) -> bytes | None:
    how, text = form.get(f"{part}_as", TEXT), form.get(part, "")
    if how == NULL:
        return None
    if how == SCHEMA and encode is not None:
        return encode(form.get(f"{part}_schema", "").strip() or f"{topic}-{part}", text)
    if how == BASE64:
        return _of_base64(text, f"the {part}")
    if how != TEXT:
        raise ConfigError(f"the {part} is text, base64 or null, not {how[:40]!r}")
    return _lines(text).encode("utf-8", "surrogatepass")


def _lines(text: str) -> str:
    """The text as it was typed."""
    return text.replace("\r\n", "\n")


def _of_base64(text: str, what: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{what} is not base64") from None


def _header(line: str) -> tuple[str, bytes | None]:
    name, colon, value = line.partition(":")
    name = name.strip()
    if not colon or not name:
        raise ConfigError(f"a header is `name: value`, and not {line[:60]!r}")
    if value.startswith(BYTES):
        data = value.removeprefix(BYTES).strip()
        return name, _of_base64(data, f"the header {name[:60]!r}") if data else None
    return name, value.strip().encode()


def form_of(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    schemas: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The fields of a form for a record that there is; `schemas` are those by which parts of it were decoded. Raises
    `ConfigError` for a header whose name no line can have."""
    form = {"headers": "\n".join(_line(name, one) for name, one in headers)}
    for part, data in (("key", key), ("value", value)):
        form[f"{part}_as"], form[part] = _field(data)
    for part, schema in (schemas or {}).items():
        form[f"{part}_as"], form[f"{part}_schema"] = SCHEMA, schema
    return form


def _line(name: str, value: bytes | None) -> str:
    if not name or name != name.strip() or any(sign in name for sign in (":", "\n", *UNSENT)):
        raise ConfigError(f"the header {name[:60]!r} has a name that a line `name: value` cannot have")
    text = _typed(value)
    if value is None or text is None or text != text.strip() or "\n" in text or text.startswith(BYTES):
        return f"{name}:{BYTES}{'' if value is None else ' ' + base64.b64encode(value).decode()}"
    return f"{name}: {text}"


def _field(data: bytes | None) -> tuple[str, str]:
    if data is None:
        return NULL, ""
    text = _typed(data)
    return (BASE64, base64.b64encode(data).decode()) if text is None else (TEXT, text)


def _typed(data: bytes | None) -> str | None:
    """The bytes as a text that a browser sends back as it is; None if they are none."""
    try:
        text = None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
    return None if text is None or any(sign in text for sign in UNSENT) else text
