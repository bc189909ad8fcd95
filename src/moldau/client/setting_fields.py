"""How a setting of a client is declared: a field of a dataclass, with default, bounds and a sentence.

`settings` makes the dataclass, `setting` one of its fields. `moldau.client.settings` reads values for them.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar, dataclass_transform

from moldau.client.values import frozen

T = TypeVar("T")


def setting(
    *,
    default: T,
    about: str,
    low: int | None = None,
    kw_only: bool = True,
    internal: bool = False,
    secret: bool = False,
    aliases: tuple[str, ...] = (),
    classes: Mapping[str, Any] = MappingProxyType({}),
) -> T:
    """A field of a class of settings. `low` is the smallest number allowed; an `internal` setting has no name in
    Kafka's form. The value of a `secret` is in no text about the settings. `aliases` are names that other clients have
    for the same. `classes` maps the name of a class of Java's client, without its package, to the value that does the
    same."""
    metadata = {"about": about, "low": low, "internal": internal, "secret": secret, "aliases": aliases}
    return dataclasses.field(
        default=default, metadata={**metadata, "classes": classes}, kw_only=kw_only, repr=not secret
    )


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting,))
def settings(cls: type[T]) -> type[T]:
    """Make a dataclass of settings."""
    return frozen(cls)
