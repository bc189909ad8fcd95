"""Logins as Java's clients and servers have them: in a JAAS file, and in settings such as `sasl.jaas.config`.

A JAAS file has sections, each with login modules and their options:

    Client {
        org.apache.zookeeper.server.auth.DigestLoginModule required
        username="kafka"
        password="secret";
    };

A setting has one login module by itself:

    org.apache.kafka.common.security.plain.PlainLoginModule required username="kafka" password="secret";

Values are in double or single quotes, where a backslash begins an escape as in Java (`StreamTokenizer`), or in none.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from moldau.errors import ConfigError

_DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
_FLAGS = ("required", "requisite", "sufficient", "optional")
_MARKS = ("{", "}", ";", "=")
_FILE_BYTES_MAX = 1 << 20
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([{};=])|([^\s{};="']+)|(["'])""", re.DOTALL
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Login(NamedTuple):
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.user!r})"


class LoginModule(NamedTuple):
    """The name of a login module's class, and its options."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name!r})"


def module_of(text: str, setting: str) -> LoginModule:
    """The only login module of a setting. Raises `ConfigError`, without the text: it has passwords."""
    wrong = ConfigError(f'{setting} must be one login module: MODULE required NAME="VALUE" ...;')
    words = list(_tokens(text, wrong))
    if len(words) < 3 or words[-1] != ";" or words[1].lower() not in _FLAGS:
        raise wrong
    options: dict[str, str] = {}
    for name, equals, value in zip(words[2:-1:3], words[3:-1:3], words[4:-1:3], strict=False):
        if equals != "=" or name in _MARKS or name in options:
            raise wrong
        options[name] = value
    if 3 * len(options) != len(words) - 3 or words[0] in _MARKS:
        raise wrong
    return LoginModule(words[0], options)


def login_of(path: str, section: str) -> Login | None:
    """The user of that section of a JAAS file; None if it has no such section. Raises `ConfigError`."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(_FILE_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the JAAS file {path}: {getattr(error, 'strerror', None) or error}") from None
    words = _tokens(text, ConfigError(f"{path} is not a JAAS file: a quote in it does not end"))
    for name in words:
        modules = _section(words, name, path)
        if name == section:
            return _login(path, section, *modules[0])
    return None


def _section(words: Iterator[str], name: str, path: str) -> list[tuple[str, dict[str, str]]]:
    """The login modules of a section and their options, at least one. Raises `ConfigError`."""

    def wrong(what: str) -> ConfigError:
        return ConfigError(f"{path} is not a JAAS file: {what}")

    if next(words, None) != "{":
        raise wrong("a section is NAME { MODULE required NAME=VALUE ...; };")
    modules: list[tuple[str, dict[str, str]]] = []
    is_inside = False
    for word in words:
        if word == "}":
            break
        if word == ";":
            is_inside = False
        elif not is_inside:
            modules.append((word, {}))
            next(words, None)  # required, requisite, sufficient or optional
            is_inside = True
        elif next(words, None) == "=":
            modules[-1][1][word] = next(words, "")
        else:
            raise wrong(f"{word} has no value in the section {name}")
    if not modules or next(words, None) != ";":
        raise wrong(f"the section {name} does not end with }};")
    return modules


def _tokens(text: str, open_quote: ConfigError) -> Iterator[str]:
    """Raises `open_quote` for a quote that does not end."""
    for token in _TOKEN.finditer(text):
        double, single, mark, word, quote = token.groups()
        if quote:
            raise open_quote
        quoted = single if double is None else double
        if quoted is not None:
            yield _ESCAPE.sub(_unescaped, quoted)
        elif mark or word:
            yield mark or word


def _unescaped(escape: re.Match[str]) -> str:
    what = escape[1]
    return chr(int(what, 8)) if what.isdecimal() and what < "8" else _ESCAPED.get(what, what)


def _login(path: str, section: str, module: str, options: dict[str, str]) -> Login:
    if module != _DIGEST_MODULE:
        raise ConfigError(f"the section {section} of {path} is for {module}; only {_DIGEST_MODULE} is supported")
    if not options.get("username") or "password" not in options:
        raise ConfigError(f"the section {section} of {path} needs username and password")
    return Login(options["username"], options["password"])
