"""What the console hides of records: keys, values, headers, members of JSON values. Pure.

    orders*:$.customer.email      *:header:authorization      users:key      secrets:value

A rule is a pattern of topics (with `*`), a colon and what to hide. Records are masked before anything else looks at
them, so nothing hidden can be found by searching for it. A value that a JSON rule is for and that is not JSON is hidden
as a whole.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from moldau.console.search.json_paths import Path, parse_path, replaced
from moldau.errors import ConfigError

HIDDEN = "***"
_HIDDEN = HIDDEN.encode()
HEADER = "header:"


@dataclass(frozen=True)
class TopicMask:
    """What is hidden of one topic; header names are in lower case."""

    key: bool = False
    value: bool = False
    headers: frozenset[str] = frozenset()
    paths: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is hidden."""
        return self.key or self.hides_values or bool(self.headers)

    @property
    def hides_values(self) -> bool:
        return self.value or bool(self.paths)

    def masked_key(self, key: bytes | None) -> bytes | None:
        return _HIDDEN if self.key and key is not None else key

    def masked_value(self, value: bytes | None) -> bytes | None:
        if value is None or not self.hides_values:
            return value
        if self.value:
            return _HIDDEN
        try:
            tree = json.loads(value)
            for path in self.paths:
                tree = replaced(tree, path, HIDDEN)
            return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        except (ValueError, RecursionError):
            return b"*** (not JSON)"

    def hides_header(self, name: str) -> bool:
        return name.lower() in self.headers


class MaskRules:
    """The rules of a console; raises `ConfigError` for one that cannot be read."""

    def __init__(self, texts: Iterable[str]):
        self._rules = [_parsed(text) for text in texts]

    def of(self, topic: str) -> TopicMask:
        """What all rules for this topic hide."""
        chosen = [mask for pattern, mask in self._rules if fnmatchcase(topic, pattern)]
        return TopicMask(
            any(one.key for one in chosen),
            any(one.value for one in chosen),
            frozenset(name for one in chosen for name in one.headers),
            tuple(path for one in chosen for path in one.paths),
        )


def _parsed(text: str) -> tuple[str, TopicMask]:
    pattern, _, what = text.partition(":")
    if pattern and what == "key":
        return pattern, TopicMask(key=True)
    if pattern and what == "value":
        return pattern, TopicMask(value=True)
    if pattern and what.startswith(HEADER) and what != HEADER:
        return pattern, TopicMask(headers=frozenset([what.removeprefix(HEADER).lower()]))
    if pattern and what.startswith("$"):
        return pattern, TopicMask(paths=(parse_path(what),))
    raise ConfigError(
        f"{text[:80]!r} does not say what to hide: TOPICS:key, TOPICS:value, TOPICS:header:NAME or TOPICS:$.path"
    )
