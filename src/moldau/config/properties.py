"""Java's .properties files: `name=value`, `name: value` or `name value`, comments, continued lines, escapes.

Source: the documentation of `java.util.Properties.load`. Files are read as UTF-8, as people write them.
"""

import re
from pathlib import Path

from moldau.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"
_FILE_MAX_BYTES = 1 << 20


def read_properties(path: str | Path) -> dict[str, str]:
    """The settings in a file, the last of a name winning. Raises `ConfigError` if it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(_FILE_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > _FILE_MAX_BYTES:
        raise ConfigError(f"{path} is larger than {_FILE_MAX_BYTES} bytes, which is too large for a settings file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None
    try:
        return parse_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """The settings in a text. Raises `ConfigError` for a broken \\u escape."""
    settings = {}
    for line in _logical_lines(text):
        end = _name_end(line)
        rest = line[end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":") and rest:
            rest = rest[1:].lstrip(_BLANK)
        settings[_unescape(line[:end])] = _unescape(rest)
    return settings


def _logical_lines(text: str) -> list[str]:
    lines = []
    pending: str | None = None
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = (pending or "") + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
        else:
            pending = None
            lines.append(line)
    return lines if pending is None else [*lines, pending]


def _name_end(line: str) -> int:
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANK:
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\" and at < len(text):
            char = text[at]
            at += 1
            if char == "u":
                digits = text[at : at + 4]
                if not re.fullmatch("[0-9A-Fa-f]{4}", digits):
                    raise ConfigError(f"\\u{digits} is not a valid escape: four hexadecimal digits must follow \\u")
                char = chr(int(digits, 16))
                at += 4
            else:
                char = _ESCAPES.get(char, char)
        elif char == "\\":
            break
        out.append(char)
    return "".join(out)
