"""Compares two normalised replies field by field, weighs differences against the accepted ones, and shows them.

`mutations` bends a reply in the ways that a broker is wrong: the run fails if one of them would not have been noticed.
"""

import fnmatch
import pprint
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moldau.protocol.apis import API_VERSIONS
from tests.differential.normalising import WHEN_COMPARED, apply
from tests.differential.playing import Outcome
from tests.differential.recording import ANY
from tests.differential.script import Step, Tree

ABSENT = "<absent>"


@dataclass(frozen=True)
class Accepted:
    """A difference that we stand by: in which requests (a shell pattern) and versions, at which field (another
    one), and why.

    `step` narrows it to steps whose name matches, `about` to elements of these names that one side lacks.
    """

    request: str
    versions: tuple[int, int]
    field: str
    reason: str
    step: str = "*"
    about: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    step: Step
    path: str
    kafka: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.step.request} {self.path}: Kafka {self.kafka!r}, Moldau {self.ours!r}   ({self.step.name})"


def differences(kafka: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """`(path, Kafka's value, our value)` wherever the two differ. What two plays of Kafka left open equals anything."""
    if kafka is ANY:
        return
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in [*kafka, *(name for name in ours if name not in kafka)]:
            below = f"{path}.{name}" if path else name
            yield from differences(kafka.get(name, ABSENT), ours.get(name, ABSENT), below)
    elif isinstance(kafka, list) and isinstance(ours, list):
        for i in range(max(len(kafka), len(ours))):
            theirs = kafka[i] if i < len(kafka) else ABSENT
            yield from differences(theirs, ours[i] if i < len(ours) else ABSENT, f"{path}[{i}]")
    elif kafka != ours or type(kafka) is not type(ours):
        yield path, kafka, ours


def align(kafka: Any, ours: Any) -> tuple[Any, Any]:
    """Lists of named things side by side by name, so that one that is missing does not shift all that follow it."""
    if isinstance(kafka, dict) and isinstance(ours, dict):
        pairs = {name: align(kafka[name], ours[name]) for name in kafka if name in ours}
        return (
            {name: pairs[name][0] if name in pairs else value for name, value in kafka.items()},
            {name: pairs[name][1] if name in pairs else value for name, value in ours.items()},
        )
    if not (isinstance(kafka, list) and isinstance(ours, list)):
        return kafka, ours
    names = [names_of(kafka), names_of(ours)]
    if names[0] is None or names[1] is None or names[0] == names[1]:
        pairs_of = [align(one, other) for one, other in zip(kafka, ours, strict=False)]
        return (
            [one for one, _ in pairs_of] + kafka[len(pairs_of) :],
            [other for _, other in pairs_of] + ours[len(pairs_of) :],
        )
    by_name = [dict(zip(names[0], kafka, strict=True)), dict(zip(names[1], ours, strict=True))]
    both = [*by_name[0], *(name for name in by_name[1] if name not in by_name[0])]
    aligned = [align(by_name[0].get(name, ABSENT), by_name[1].get(name, ABSENT)) for name in both]
    return [one for one, _ in aligned], [other for _, other in aligned]


def names_of(items: list[Any]) -> list[str] | None:
    """What the elements are called, if each has a name of its own."""
    if not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items):
        return None
    names = [item["name"] for item in items]
    return names if len(set(names)) == len(names) else None


def compare(step: Step, kafka: Outcome, ours: Outcome, used_rules: set[str]) -> list[Difference]:
    """Everything in which two normalised outcomes of a step differ."""
    if kafka.kind != ours.kind:
        return [] if kafka.tree is ANY else [Difference(step, "outcome", kafka.kind, ours.kind)]
    trees = kafka.tree, ours.tree
    if step.api is API_VERSIONS:
        trees = tuple(apply(WHEN_COMPARED, step.api.name, tree, {}, used_rules) for tree in trees)
    trees = align(*trees)
    return [Difference(step, *found) for found in differences(*trees)]


def accepts(one: Accepted, found: Difference) -> bool:
    low, high = one.versions
    return (
        fnmatch.fnmatchcase(found.step.api.name, one.request)
        and low <= found.step.version <= high
        and fnmatch.fnmatchcase(bare(found.path), bare(one.field))
        and fnmatch.fnmatchcase(found.step.name, one.step)
        and (not one.about or lacking(found) in one.about)
    )


def lacking(found: Difference) -> str | None:
    """The name of the element that one side lacks."""
    there = found.ours if found.kafka is ABSENT else found.kafka if found.ours is ABSENT else None
    return there.get("name") if isinstance(there, dict) else None


def bare(path: str) -> str:
    """Brackets mean something else to fnmatch."""
    return path.replace("[", "(").replace("]", ")")


def weigh(found: Sequence[Difference], accepted: Sequence[Accepted]) -> tuple[list[Difference], list[Accepted]]:
    """The differences that nobody accepted, and the accepted ones that did not come up."""
    unused = dict.fromkeys(accepted)
    rest = []
    for difference in found:
        by = [one for one in accepted if accepts(one, difference)]
        for one in by:
            unused.pop(one, None)
        if not by:
            rest.append(difference)
    return rest, list(unused)


def show(step: Step, kafka: Outcome, ours: Outcome, found: Sequence[Difference]) -> str:
    """Both replies, readable, below the differences between them."""
    lines = [f"=== {step.name}: {step.request}", *(f"  {difference}" for difference in found)]
    asked = "a raw frame" if step.frame is not None else pprint.pformat(dict(step.fields), width=150, compact=True)
    lines.append(f"  asked: {asked}")
    for name, outcome in (("Kafka", kafka), ("Moldau", ours)):
        reply = pprint.pformat(outcome.tree, width=150, compact=True, sort_dicts=False)
        lines.append(f"  --- {name}: {outcome.kind}\n{reply if len(reply) < 6000 else reply[:6000] + ' ...'}")
    return "\n".join(lines)


def mutations(outcome: Outcome) -> Iterator[tuple[str, Outcome]]:
    """The same reply with one wrong error code, one offset off by one, or one array element missing, at every place."""

    def places(tree: Tree, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
        items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
        for key, value in items:
            yield (*path, key), value
            yield from places(value, (*path, key))

    for path, value in places(outcome.tree, ()):
        name = path[-1]
        if isinstance(value, list) and value:
            yield f"{dotted(path)} lacks its last element", _changed(outcome, path, value[:-1])
        if name in ("error_code", "partition_error_code"):
            yield f"{dotted(path)} is {value + 3}", _changed(outcome, path, value + 3)
        elif isinstance(name, str) and "offset" in name and isinstance(value, int):
            yield f"{dotted(path)} is one more", _changed(outcome, path, value + 1)


def dotted(path: Sequence[str | int]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def _changed(outcome: Outcome, path: Sequence[str | int], value: Any) -> Outcome:
    """The outcome with another value at that place; what is beside the path is shared."""

    def below(tree: Any, left: Sequence[str | int]) -> Any:
        if not left:
            return value
        copied = tree.copy()
        copied[left[0]] = below(tree[left[0]], left[1:])
        return copied

    return replace(outcome, tree=below(outcome.tree, path))
