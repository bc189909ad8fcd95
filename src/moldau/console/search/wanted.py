"""What a search is for, from the fields of its form. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.client.administration.group_offsets import time_ms
from moldau.console.search.json_paths import JsonCondition, parse_condition
from moldau.errors import ConfigError

NEWEST, OLDEST, OFFSET, TIME = "newest", "oldest", "offset", "time"
STARTS = {NEWEST: "newest first", OLDEST: "from the beginning", OFFSET: "from an offset", TIME: "from a time"}
LIMITS = (50, 200, 1_000)
PATTERN_CHARACTERS_MAX = 1_000
OFFSET_MAX = 2**63 - 1
NUMBER_MAX = 2**31 - 1


@dataclass(frozen=True)
class SearchWanted:
    """`key`, `value` and `header` are texts to look for, or RE2 expressions; "" for all. `header_name` is the name that
    a header must have, "" for any. `at` is an offset or a time in ms. `partitions` None means all."""

    start: str = NEWEST
    at: int = 0
    partitions: frozenset[int] | None = None
    key: str = ""
    value: str = ""
    header_name: str = ""
    header: str = ""
    condition: JsonCondition | None = None
    is_regex: bool = False
    is_case_sensitive: bool = False
    committed: bool = False
    limit: int = LIMITS[0]

    @property
    def newest_first(self) -> bool:
        return self.start == NEWEST

    @property
    def looks_for_all(self) -> bool:
        """Whether each record is a hit."""
        return not (self.key or self.value or self.header or self.header_name or self.condition)


def wanted_by(fields: Mapping[str, list[str]]) -> SearchWanted:
    """Raises `ConfigError`."""

    def text(name: str) -> str:
        given = fields.get(name, [""])[0]
        if len(given) > PATTERN_CHARACTERS_MAX:
            raise ConfigError(f"{name} may have {PATTERN_CHARACTERS_MAX} characters")
        return given

    start = text("start") or NEWEST
    if start not in STARTS:
        raise ConfigError(f"a search starts at one of {', '.join(STARTS)}, not at {start[:40]!r}")
    at = 0
    if start == OFFSET:
        at = _number("the offset", text("at").strip(), OFFSET_MAX)
    elif start == TIME:
        at = max(time_ms(text("at").strip()), 0)
    numbers = [_number("a partition", one.strip(), NUMBER_MAX) for one in text("partition").split(",") if one.strip()]
    header_name, colon, header = text("header").partition(":")
    condition = text("json").strip()
    limit = text("limit").strip()
    return SearchWanted(
        start,
        at,
        frozenset(numbers) if numbers else None,
        text("key"),
        text("value"),
        header_name.strip() if colon else "",
        header.strip() if colon else header_name,
        parse_condition(condition) if condition else None,
        bool(text("regex")),
        bool(text("case")),
        bool(text("committed")),
        _number("the limit", limit, LIMITS[-1], low=1) if limit else LIMITS[0],
    )


def _number(what: str, text: str, high: int, low: int = 0) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
        raise ConfigError(f"{what} is a whole number from {low} to {high}, not {text[:40]!r}")
    return int(text)
