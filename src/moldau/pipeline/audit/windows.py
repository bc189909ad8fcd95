"""Digests by topic and window, and the window length of an audit."""

import re

from moldau.errors import ConfigError
from moldau.records.digests import Digest

Digests = dict[int, Digest]
"""By the start of a window in ms since 1970."""
UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
WINDOW_MS_MAX = 366 * UNITS["d"]


def window_ms(text: str) -> int:
    """The length in text such as 10m or 1h. Raises `ConfigError`."""
    match = re.fullmatch(r"([0-9]{1,12})(ms|s|m|h|d)", text)
    length = int(match[1]) * UNITS[match[2]] if match else 0
    if not 0 < length <= WINDOW_MS_MAX:
        raise ConfigError(f"--window {text!r} is not a length such as 30s, 10m, 1h or 1d, of at most 366d")
    return length
