"""Keys and values that are numbers, as serializers of Java's client write them: `--key-type` and `--value-type`."""

import base64
import enum
import math
import struct
from collections.abc import Callable
from typing import Any, Final

from moldau.cli.output import note


class ContentType(enum.Enum):
    """What the bytes of a key or value are."""

    TEXT = "text"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    HEX = "hex"
    BASE64 = "base64"


_BIG_ENDIAN: Final = {
    ContentType.SHORT: ">h",
    ContentType.INT: ">i",
    ContentType.LONG: ">q",
    ContentType.FLOAT: ">f",
    ContentType.DOUBLE: ">d",
    ContentType.BOOLEAN: ">?",
}
ContentReader = Callable[[bytes], Any]


def reader_of(kind: ContentType, part: str) -> ContentReader | None:
    """What makes a key or value (the `part`) of its bytes; None for text. Bytes of another length stay as they are,
    which is said once."""
    if kind is ContentType.TEXT:
        return None
    if kind is ContentType.HEX:
        return bytes.hex
    if kind is ContentType.BASE64:
        return lambda data: base64.b64encode(data).decode()
    layout = struct.Struct(_BIG_ENDIAN[kind])
    said = False

    def read(data: bytes) -> Any:
        nonlocal said
        if len(data) == layout.size:
            number = layout.unpack(data)[0]
            return number if math.isfinite(number) else str(number)  # JSON has no NaN
        if not said:
            said = True
            note(f"warning: a {part} of {len(data)} bytes is no {kind.value}; such data is printed as it is")
        return data

    return read
