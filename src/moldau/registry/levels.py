"""The seven compatibility levels: with which versions a new schema is compared, and in which direction."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from moldau.registry.refusals import invalid_level


class Level(NamedTuple):
    """`backward`: the new schema must read what the old ones wrote; `forward`: the old ones what the new one writes."""

    backward: bool
    forward: bool
    transitive: bool


LEVELS = {
    "NONE": Level(False, False, False),
    "BACKWARD": Level(True, False, False),
    "BACKWARD_TRANSITIVE": Level(True, False, True),
    "FORWARD": Level(False, True, False),
    "FORWARD_TRANSITIVE": Level(False, True, True),
    "FULL": Level(True, True, False),
    "FULL_TRANSITIVE": Level(True, True, True),
}
DEFAULT_LEVEL = "BACKWARD"


class ReadableSchema(Protocol):
    """A parsed schema that can be compared with another of its kind."""

    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str: ...

    def unreadable(self, writer: "ReadableSchema", own: str, other: str) -> list[str]:
        """Why this schema cannot read what `writer` wrote; `own` and `other` are `new` and `old`."""
        ...


def level_named(name: object) -> str:
    """The level as it is stored. Raises `Refused`."""
    if not isinstance(name, str) or name.upper() not in LEVELS:
        raise invalid_level()
    return name.upper()


def incompatibilities(level: str, new: ReadableSchema, previous: Sequence[tuple[int, ReadableSchema]]) -> list[str]:
    """Why the level does not allow the new schema after these versions, which are ascending; empty if it does. The
    newest version with a problem is the only one reported."""
    rule = LEVELS[level]
    if not (rule.backward or rule.forward):
        return []
    for version, old in reversed(previous if rule.transitive else previous[-1:]):
        messages = _between(rule, new, old)
        if messages:
            return [
                *messages, f"{{oldSchemaVersion: {version}}}", f"{{oldSchema: '{old.text}'}}",
                f"{{compatibility: '{level}'}}",
            ]  # fmt: skip
    return []


def _between(rule: Level, new: ReadableSchema, old: ReadableSchema) -> list[str]:
    if new.kind != old.kind:
        return [f"Incompatible because of different schema type: {new.kind} after {old.kind}"]
    try:
        backward = new.unreadable(old, "new", "old") if rule.backward else []
        return backward + (old.unreadable(new, "old", "new") if rule.forward else [])
    except RecursionError:
        return ["The schemas nest too deeply to be compared"]
