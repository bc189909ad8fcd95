"""Pages from templates. Everything that a template prints is escaped, unless the template itself wrote it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from moldau.console.web.paths import in_path, path_to

TEMPLATES = Path(__file__).parents[1] / "templates"
DASH = "–"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


class Rendering:
    """The templates, and what all pages show: `everywhere` has its values; `asset` returns the path of an asset."""

    def __init__(self, everywhere: dict[str, Any], asset: Callable[[str], str]):
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            count=shown_count, size=shown_size, time=shown_time, seconds=shown_seconds, piece=in_path
        )
        self._environment.globals.update(everywhere, asset=asset, path_to=path_to)

    def render(self, template: str, **values: Any) -> bytes:
        return self._environment.get_template(template).render(values).encode("utf-8", "replace")


def shown_count(number: int | None) -> str:
    """12,345; a dash for None."""
    return DASH if number is None else f"{number:,}"


def shown_size(size_bytes: int | None) -> str:
    """Bytes in the unit that leaves up to three digits, by thousands; a dash for None."""
    if size_bytes is None:
        return DASH
    value, unit = float(size_bytes), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 or value >= 99.95 else f"{value:.1f} {_UNITS[unit]}"


def shown_time(time_ms: int | None) -> str:
    """A time in ms since 1970 as 2026-11-28 17:34:05.123 in UTC; a dash for None and before 1970."""
    if time_ms is None or time_ms < 0:
        return DASH
    try:
        at = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
    return f"{at:%Y-%m-%d %H:%M:%S}.{time_ms % 1000:03d}"


def shown_seconds(seconds: float | None) -> str:
    """4.2 s, 3 min, 5.1 h, 2.0 d; a dash for None."""
    if seconds is None:
        return DASH
    if seconds < 120:
        return f"{seconds:.1f} s" if 0 < seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"
