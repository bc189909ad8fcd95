"""Which fields of JSON objects may have a place of their own in a table, by their names. Pure.

Inside of a struct, Delta takes no two names that differ in case only, and no name crosses to it with a null character.
Iceberg finds fields by their paths, so `a.b` may not stand beside an `a`, which may have a field `b`. A field that is
left out is not lost: the column `_more` keeps it.
"""

from collections.abc import Iterable
from typing import Final

DOTS_MAX: Final = 32


def apart(names: Iterable[str], known: Iterable[str] = (), *, in_struct: bool = True) -> list[str]:
    """The `known` names, which are kept, and those of the others that can stand beside them. Names with fewer points
    are kept first, then those that came first."""
    names, kept = list(names), dict.fromkeys(known)
    cases = {name.lower() for name in kept}
    above = {path for name in kept for path in _above(name)}
    for name in sorted(names, key=lambda one: one.count(".")):
        if name in kept or name.count(".") > DOTS_MAX:
            continue
        if in_struct and (name.lower() in cases or "\0" in name):
            continue
        paths = _above(name)
        if name in above or any(path in kept for path in paths):
            continue
        kept[name] = None
        cases.add(name.lower())
        above.update(paths)
    return list(dict.fromkeys([*known, *(name for name in names if name in kept)]))


def _above(name: str) -> list[str]:
    """The paths that a name with points begins with, `a` and `a.b` of `a.b.c`."""
    parts = name.split(".", DOTS_MAX)
    return [".".join(parts[:count]) for count in range(1, len(parts))]
