"""Passwords that a command is given: typed without being shown, or in a file. They are printed nowhere."""

import sys
from pathlib import Path

from moldau.errors import ConfigError

_BYTES_MAX = 1 << 10


def password_in(file: str) -> str:
    """The first line of a file, or of standard input for `-`. Raises `ConfigError`."""
    try:
        if file == "-":
            line = sys.stdin.readline(_BYTES_MAX + 1)
        else:
            with Path(file).open(encoding="utf-8") as opened:
                line = opened.readline(_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read a password from {file}: {getattr(error, 'strerror', None) or error}") from None
    return checked(line.rstrip("\r\n"), file)


def typed_password(user: str) -> str:
    """Asked for twice at the terminal. Raises `ConfigError`."""
    from getpass import getpass

    if not sys.stdin.isatty():
        raise ConfigError("there is no terminal to type a password at: name a file with --password-file, or -")
    password = getpass(f"password of {user}: ")
    if getpass("again: ") != password:
        raise ConfigError("the two passwords differ")
    return checked(password, "the terminal")


def checked(password: str, source: str) -> str:
    if not password:
        raise ConfigError(f"the password from {source} is empty")
    if len(password) > _BYTES_MAX:
        raise ConfigError(f"the password from {source} is longer than {_BYTES_MAX} characters")
    return password
