"""Paths into JSON values, and comparisons with what is there. Pure.

    $.user.id = 42        $.items[*].sku = "a-1"        $['first name'] contains "Jan"        $.error exists

A path is a small part of RFC 9535: names, `['names']`, `[numbers]` and `[*]`, which means any item or member. A
comparison holds if it holds for one of the values that the path leads to.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from moldau.errors import ConfigError

ANY: Final = object()
"""Every item of an array, every member of an object."""
STEPS_MAX: Final = 50
_STEP: Final = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*)|\[\s*(?:(?P<index>-?\d{1,9})|(?P<any>\*)|'(?P<single>[^']*)'|"(?P<double>[^"]*)")\s*\]"""
)
_START: Final = re.compile(r"\$|(?P<name>[^\W\d][\w-]*)")
_OPERATION: Final = re.compile(r"\s*(?P<sign>==|!=|<=|>=|=|<|>|contains\b|exists\b)\s*(?P<literal>.*)", re.DOTALL)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Step = str | int | object
Path = tuple[Step, ...]


@dataclass(frozen=True)
class JsonCondition:
    """A path, a sign and the value on its right; `exists` has none."""

    path: Path
    sign: str
    literal: Any = None

    @property
    def texts(self) -> list[str]:
        """Texts that JSON has in it if the condition holds there, unless it has escapes."""
        names = [step for step in self.path if isinstance(step, str)]
        is_text = isinstance(self.literal, str) and self.sign in ("=", "contains")
        return [*names, self.literal] if is_text and self.literal.isprintable() else names

    def holds(self, tree: Any) -> bool:
        return any(self._holds(value) for value in values_at(tree, self.path))

    def _holds(self, value: Any) -> bool:
        if self.sign == "exists":
            return True
        if self.sign == "contains":
            if isinstance(value, str):
                return isinstance(self.literal, str) and self.literal in value
            return isinstance(value, list) and any(same(one, self.literal) for one in value)
        if self.sign in ("=", "!="):
            return same(value, self.literal) == (self.sign == "=")
        comparable = is_number(value) and is_number(self.literal)
        if comparable or (isinstance(value, str) and isinstance(self.literal, str)):
            return _COMPARE[self.sign](value, self.literal)
        return False


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def parse_condition(text: str) -> JsonCondition:
    """Raises `ConfigError`."""
    path, at = _path(text.strip())
    rest = text.strip()[at:]
    if not rest.strip():
        return JsonCondition(path, "exists")
    found = _OPERATION.fullmatch(rest)
    if found is None:
        raise ConfigError(
            f"after the path comes =, !=, <, <=, >, >=, contains or exists, and not {rest.strip()[:40]!r}"
        )
    sign, literal = found["sign"].replace("==", "="), found["literal"].strip()
    if sign == "exists":
        if literal:
            raise ConfigError(f"nothing comes after exists, and not {literal[:40]!r}")
        return JsonCondition(path, sign)
    if not literal:
        raise ConfigError(f"{sign} needs a value on its right")
    try:
        return JsonCondition(path, sign, json.loads(literal))
    except (ValueError, RecursionError):
        return JsonCondition(path, sign, literal.strip("'"))  # text without quotation marks is text


def parse_path(text: str) -> Path:
    """Raises `ConfigError`."""
    path, at = _path(text.strip())
    if at != len(text.strip()):
        raise ConfigError(f"{text[:80]!r} is not a path such as $.user.id, $.items[*].sku or $['first name']")
    return path


def _path(text: str) -> tuple[Path, int]:
    """The path that the text begins with, and where it ends."""
    start = _START.match(text)
    steps: list[Step] = []
    if start is None:
        raise ConfigError(f"{text[:80]!r} does not begin with a path such as $.user.id")
    if start["name"]:
        steps.append(start["name"])
    at = start.end()
    while found := _STEP.match(text, at):
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["any"]:
            steps.append(ANY)
        else:
            steps.append(next(name for name in (found["name"], found["single"], found["double"]) if name is not None))
        at = found.end()
        if len(steps) > STEPS_MAX:
            raise ConfigError(f"a path has at most {STEPS_MAX} steps")
    if not steps:
        raise ConfigError(f"{text[:80]!r} names no member: a path is such as $.user.id")
    return tuple(steps), at


def values_at(tree: Any, path: Path) -> Iterator[Any]:
    """All values that the path leads to."""
    if not path:
        yield tree
        return
    step, rest = path[0], path[1:]
    if step is ANY:
        members = tree if isinstance(tree, list) else tree.values() if isinstance(tree, dict) else ()
        for one in members:
            yield from values_at(one, rest)
    elif isinstance(step, int):
        if isinstance(tree, list) and -len(tree) <= step < len(tree):
            yield from values_at(tree[step], rest)
    elif isinstance(tree, dict) and step in tree:
        yield from values_at(tree[step], rest)


def replaced(tree: Any, path: Path, by: Any) -> Any:
    """The tree with other values where the path leads to; what is not there stays away."""
    if not path:
        return by
    step, rest = path[0], path[1:]
    if isinstance(tree, list):
        if step is ANY:
            return [replaced(one, rest, by) for one in tree]
        if isinstance(step, int) and -len(tree) <= step < len(tree):
            at = step % len(tree)
            return [replaced(one, rest, by) if number == at else one for number, one in enumerate(tree)]
    if isinstance(tree, dict):
        return {name: replaced(one, rest, by) if step is ANY or step == name else one for name, one in tree.items()}
    return tree
