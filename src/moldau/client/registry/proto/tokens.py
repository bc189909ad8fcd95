"""The words of a `.proto` text."""

import re
from typing import NamedTuple

from moldau.client.registry.schemas import TEXT_CHARACTERS_MAX
from moldau.errors import SchemaInvalid

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)(?![A-Za-z_]))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<sign>[{}()\[\]<>;,=.:+\-/])",
    re.DOTALL,
)
_ESCAPE = re.compile(rb"\\([xX][0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SIGNS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


class Word(NamedTuple):
    """A word; `kind` is `name`, `number`, `text`, `sign` or, behind the last one, `end`."""

    kind: str
    text: str
    line: int


def tokens(text: str) -> list[Word]:
    """The words of the text. Raises `SchemaInvalid`."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SchemaInvalid(f"it has more than {TEXT_CHARACTERS_MAX} characters")
    found, at, line = [], 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SchemaInvalid(f"line {line} has {text[at : at + 20]!r}, which is not Protobuf")
        if match.lastgroup != "space":
            found.append(Word(str(match.lastgroup), match[0], line))
        line += match[0].count("\n")
        at = match.end()
    return [*found, Word("end", "", line)]


def unquoted(literal: str) -> bytes:
    """What a text in quotes stands for."""
    return _ESCAPE.sub(_meant, literal[1:-1].encode("utf-8", "replace"))


def _meant(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1] in b"xX" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if code[:1] in b"uU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number).encode("utf-8", "replace") if number < 0x110000 else b"?"
    if code.isdigit():
        return bytes([int(code, 8) & 0xFF])
    return _SIGNS.get(code, code)


def quoted(data: bytes) -> str:
    """A text in quotes that stands for these bytes."""
    try:
        signs = data.decode()
    except UnicodeDecodeError:
        signs = "".join(chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:03o}" for byte in data)
        return f'"{signs}"'
    made = (
        signs.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return '"' + "".join(sign if ord(sign) >= 32 and ord(sign) != 127 else f"\\{ord(sign):03o}" for sign in made) + '"'
