"""How `moldau consume` writes a record: as a line in a format of placeholders, or as JSON."""

import base64
import datetime
import re
from collections.abc import Callable
from typing import Any

from moldau.cli.output import named_content, time_text
from moldau.client.consuming.fetched.record import Record
from moldau.client.registry.framing import Decoded
from moldau.errors import ConfigError

_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def line_format(text: str, null: bytes = b"null") -> Callable[[Record], bytes]:
    """A function that writes a record as a line in that format, with `null` for what is missing. Raises `ConfigError`
    for an unknown placeholder."""
    pieces: list[bytes | Callable[[Record], bytes | None]] = []
    for number, piece in enumerate(_PLACEHOLDER.split(text)):
        if number % 2 == 0:
            pieces.append(piece.encode())
        elif piece in _FIELDS:
            pieces.append(_FIELDS[piece])
        else:
            raise ConfigError(
                f"--format has no placeholder {{{piece}}}, only {' '.join(f'{{{name}}}' for name in _FIELDS)}"
            )
    pieces.append(b"\n")

    def write(record: Record) -> bytes:
        texts = [piece if isinstance(piece, bytes) else piece(record) for piece in pieces]
        return b"".join(null if text is None else text for text in texts)

    return write


def _content(content: Any) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    return json_text(content.value if isinstance(content, Decoded) else content)


def _headers(record: Record) -> bytes:
    return b",".join(name.encode() + b"=" + (b"null" if value is None else value) for name, value in record.headers)


_FIELDS: dict[str, Callable[[Record], bytes | None]] = {
    "topic": lambda r: r.topic.encode(),
    "partition": lambda r: b"%d" % r.partition,
    "offset": lambda r: b"%d" % r.offset,
    "timestamp": lambda r: time_text(r.timestamp_ms).encode(),
    "timestamp_ms": lambda r: b"%d" % r.timestamp_ms,
    "epoch": lambda r: None if r.leader_epoch is None else b"%d" % r.leader_epoch,
    "key": lambda r: _content(r.key),
    "value": lambda r: _content(r.value),
    "headers": _headers,
}


def json_line(record: Record) -> bytes:
    """The record as a line of JSON. What a registry's schema has decoded is JSON too, with the id of that schema."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": time_text(record.timestamp_ms),
        "timestamp_ms": record.timestamp_ms,
        **_named("key", record.key),
        **_named("value", record.value),
        "headers": [{"name": name, **dict([named_content("value", value)])} for name, value in record.headers],
    }
    return json_text(fields) + b"\n"


def _named(name: str, content: Any) -> dict[str, Any]:
    if content is None or isinstance(content, bytes):
        return dict([named_content(name, content)])
    if isinstance(content, Decoded):
        return {name: content.value, f"{name}_schema_id": content.schema_id}
    return {name: content}


def internal_line(topic: str) -> Callable[[Record], bytes]:
    """A function that writes the records of an internal topic as lines of JSON, decoded. Raises `ConfigError`."""
    from moldau.files.inspection.decoding import OF_TOPIC

    if topic not in OF_TOPIC:
        raise ConfigError(f"--internal decodes the topics {' and '.join(sorted(OF_TOPIC))}, not {topic}")
    decode = OF_TOPIC[topic]

    def write(record: Record) -> bytes:
        place = {name: getattr(record, name) for name in ("partition", "offset", "timestamp_ms")}
        return json_text({**place, "record": decode(record.key, record.value)}) + b"\n"

    return write


def json_text(value: Any) -> bytes:
    """The value as JSON in UTF-8; what JSON has no form for is text, bytes are base64."""
    from moldau.client.registry.json_texts import json_text as written  # once there is a record

    return written(value, _in_json).encode("utf-8", "surrogatepass")


def _in_json(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
