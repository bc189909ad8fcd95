"""What turns values into the bytes of a record, and back: for `key_serializer`, `value_serializer` and deserializers.

A serializer is any function of one value that returns bytes, or None for a record without a value (a tombstone). The
ones below raise `TypeError` or `ValueError` for a value they do not take, and `send` raises it to its caller.
"""

import json
from collections.abc import Callable
from typing import Any

Content = bytes | bytearray | memoryview | str | None
"""What a key or value may be without a serializer; text is encoded as UTF-8."""


Serializer = Callable[[Any], bytes | None]


def for_topic(serializer: Serializer | None, topic: str, field: str) -> Serializer | None:
    """The serializer of the topic's keys (`field` is `key`) or values. One with a method `for_topic` is asked, which
    may block: that of a schema registry registers its schema."""
    bind = getattr(serializer, "for_topic", None)
    return serializer if bind is None else bind(topic, field)


def to_bytes(value: Content) -> bytes | None:
    """Bytes as they are, text as UTF-8, None as None. Raises `TypeError` for other types."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"{type(value).__name__} is neither bytes nor str nor None")


def to_text(value: str | None) -> bytes | None:
    """Text as UTF-8, None as None. Raises `TypeError` for other types, bytes included."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} is not str")
    return value.encode()


def to_json(value: Any) -> bytes | None:
    """JSON in UTF-8 without spaces; None as None (a tombstone), not as `null`. Raises `TypeError` for what JSON cannot
    hold and `ValueError` for NaN and infinite numbers."""
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def from_text(content: bytes | None) -> str | None:
    """UTF-8 as text, None as None. Raises `UnicodeDecodeError`."""
    return None if content is None else str(content, "utf-8")


def from_json(content: bytes | None) -> Any:
    """JSON as dicts, lists, numbers and text; None as None. Raises `ValueError`."""
    return None if content is None else json.loads(content)
