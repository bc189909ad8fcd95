"""The `__init__` of messages, which is compiled when the first one is made: a process makes few of those it imports."""

import dataclasses
from collections.abc import Callable
from typing import Any


def first_init(self: Any, **given: Any) -> None:
    """The `__init__` of every message until the first one of its class is made: it puts the real one in its place."""
    made = type(self)
    made.__init__ = _compiled_init(made)
    self.__init__(**given)


def _compiled_init(made: type) -> Callable[..., None]:
    """`def __init__(self, *, first=..., second=...)`, which sets every field."""
    names: dict[str, Any] = {"missing": dataclasses.MISSING}
    parameters, lines = [], []
    for f in dataclasses.fields(made):
        name, of_field = f.name, f"of_{f.name}"
        if f.default_factory is dataclasses.MISSING:
            names[of_field] = f.default
            parameters.append(name if f.default is dataclasses.MISSING else f"{name}={of_field}")
            lines.append(f" self.{name} = {name}")
        else:
            names[of_field] = f.default_factory
            parameters.append(f"{name}=missing")
            lines.append(f" self.{name} = {of_field}() if {name} is missing else {name}")
    taken = ", ".join(["self", "*", *parameters] if parameters else ["self"])  # a bare * may not be the last
    exec("\n".join([f"def __init__({taken}):", *(lines or [" pass"])]), names)
    return names["__init__"]  # type: ignore[no-any-return]
