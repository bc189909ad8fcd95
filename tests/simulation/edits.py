"""Edits of source text in memory, for the bugs of `mutations`."""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Edit(NamedTuple):
    """`where`: module:function or module:Class.method."""

    where: str
    old: str
    new: str


def _find(where: str) -> tuple[Any, Any, str]:
    """The module, what holds the function, and its name."""
    module_name, _, path = where.partition(":")
    module: Any = importlib.import_module(module_name)
    *parts, name = path.split(".")
    owner = module
    for part in parts:
        owner = getattr(owner, part)
    return module, owner, name


@contextmanager
def mutated(edits: list[Edit]) -> Iterator[None]:
    """The production code with these edits in it."""
    undo: list[tuple[Any, str, Any]] = []
    sources: dict[tuple[int, str], str] = {}
    try:
        for edit in edits:
            module, owner, name = _find(edit.where)
            before = inspect.getattr_static(owner, name)
            source = sources.get((id(owner), name))
            if source is None:
                function = before.fget if isinstance(before, property) else getattr(before, "__func__", before)
                source = textwrap.dedent(inspect.getsource(function))
            if source.count(edit.old) != 1:
                raise LookupError(f"{edit.where} holds {edit.old!r} {source.count(edit.old)} times")
            source = sources[id(owner), name] = source.replace(edit.old, edit.new)
            made: dict[str, Any] = {}
            exec(compile(source, f"<mutated {edit.where}>", "exec"), module.__dict__, made)
            holders = [owner]
            if owner is module:
                holders += [
                    other
                    for key, other in list(sys.modules.items())
                    if key.startswith(("moldau.", "tests.crash_points"))
                    and getattr(other, name, None) is before
                    and other is not module
                ]
            for holder in holders:
                undo.append((holder, name, inspect.getattr_static(holder, name)))
                setattr(holder, name, made[name])
            for extra in made.keys() - {name}:
                setattr(module, extra, made[extra])
        yield
    finally:
        for holder, name, value in reversed(undo):
            setattr(holder, name, value)
