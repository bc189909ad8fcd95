"""A record from the fields of its form. Pure: what asks a schema registry is handed in."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import NamedTuple

from moldau.errors import ConfigError

TEXT, BASE64, NULL, SCHEMA = "text", "base64", "null", "schema"
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
    if number and not (number.isascii() and number.isdigit() and int(number) <= PARTITION_MAX):
        raise ConfigError(f"the partition is a number, not {number[:40]!r}")
    return RecordToSend(
        int(number) if number else None,
        _content("key", form, topic, encode),
        _content("value", form, topic, encode),
        [_header(line) for line in form.get("headers", "").splitlines() if line.strip()],
    )


def _content(part: str, form: Mapping[str, str], topic: str, encode: Encode | None) -> bytes | None:
    how, text = form.get(f"{part}_as", TEXT), form.get(part, "")
    if how == NULL:
        return None
    if how == SCHEMA and encode is not None:
        return encode(form.get(f"{part}_schema", "").strip() or f"{topic}-{part}", text)
    if how == BASE64:
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(f"the {part} is not base64") from None
    if how != TEXT:
        raise ConfigError(f"the {part} is text, base64 or null, not {how[:40]!r}")
    return text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")


def _header(line: str) -> tuple[str, bytes | None]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise ConfigError(f"a header is `name: value`, and not {line[:60]!r}")
    return name.strip(), value.strip().encode()


def form_of(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    schemas: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The fields of a form for a record that there is; `schemas` are those by which parts of it were decoded."""
    form = {"headers": "\n".join(f"{name}: {(one or b'').decode('utf-8', 'replace')}" for name, one in headers)}
    for part, data in (("key", key), ("value", value)):
        form[f"{part}_as"], form[part] = _field(data)
    for part, schema in (schemas or {}).items():
        form[f"{part}_as"], form[f"{part}_schema"] = SCHEMA, schema
    return form


def _field(data: bytes | None) -> tuple[str, str]:
    if data is None:
        return NULL, ""
    try:
        return TEXT, data.decode()
    except UnicodeDecodeError:
        return BASE64, base64.b64encode(data).decode()
