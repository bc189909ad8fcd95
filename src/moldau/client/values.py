"""Frozen dataclasses that are cheap to declare; `settings` and `setting` make those with the settings of a client.

`dataclasses` compiles six functions for each frozen class, which was a large part of what a short command costs. Here
all classes share theirs, so instances are slower to make: for settings, and for what an admin client takes and returns,
of which a program makes few. `moldau.client.settings` reads values for settings.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    import inspect

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
    return _frozen(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def value(cls: type[T]) -> type[T]:
    """Make a frozen dataclass."""
    return _frozen(cls)


def _frozen(cls: type[T]) -> type[T]:
    made = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    for name, shared in _SHARED.items():
        if name not in cls.__dict__:
            setattr(made, name, shared)
    return made


def _init(self: Any, *arguments: Any, **named: Any) -> None:
    fields = dataclasses.fields(self)
    called = f"{type(self).__name__}.__init__()"
    if arguments:
        places = [field.name for field in fields if not field.kw_only]
        if len(arguments) > len(places):
            raise TypeError(f"{called} takes {len(places)} positional arguments but {len(arguments)} were given")
        for name, argument in zip(places, arguments, strict=False):
            if name in named:
                raise TypeError(f"{called} got multiple values for argument {name!r}")
            named[name] = argument
    values = self.__dict__
    for field in fields:
        if field.name in named:
            values[field.name] = named.pop(field.name)
        elif field.default is not dataclasses.MISSING:
            values[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            values[field.name] = field.default_factory()
        else:
            raise TypeError(f"{called} missing a required argument: {field.name!r}")
    for name in named:
        raise TypeError(f"{called} got an unexpected keyword argument {name!r}")
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _content(one: Any) -> tuple[Any, ...]:
    return tuple(getattr(one, field.name) for field in dataclasses.fields(one))


def _equal(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _content(self) == _content(other)


def _hash(self: Any) -> int:
    return hash(_content(self))


def _refuse_change(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


class _Signature:
    """Makes the signature of a class when somebody asks for it."""

    def __get__(self, instance: object, owner: Any) -> "inspect.Signature":
        import inspect

        return inspect.Signature(parameters_of_fields(owner), return_annotation=None)


def parameters_of_fields(cls: Any) -> "list[inspect.Parameter]":
    """The parameters of the class's `__init__`, in order."""
    from inspect import Parameter

    parameters = []
    for field in sorted(dataclasses.fields(cls), key=lambda field: bool(field.kw_only)):
        default: Any = Parameter.empty
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(Parameter(field.name, kind, default=default, annotation=field.type))
    return parameters


_SHARED = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _equal,
    "__hash__": _hash,
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_deletion,
    "__signature__": _Signature(),
}
