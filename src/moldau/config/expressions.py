"""Regular expressions that clients and administrators give, by RE2: linear time, and bounded memory. Pure."""

from typing import Any

MEMORY_BYTES_MAX = 512 << 10
"""The most memory of a compiled expression: enough for five thousand letters, and compiled in a few milliseconds.
A larger expression is invalid."""


def compiled(expression: str, memory_bytes_max: int = MEMORY_BYTES_MAX) -> Any:
    """The compiled expression, whose `fullmatch` matches names. Raises `ValueError` with the reason if it is
    invalid."""
    try:
        import re2
    except ImportError:
        raise ValueError("this broker has no RE2: install the package google-re2") from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory_bytes_max
    try:
        return re2.compile(expression, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        raise ValueError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    except UnicodeEncodeError:
        raise ValueError("it is not valid Unicode") from None
