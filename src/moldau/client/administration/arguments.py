"""The arguments of an admin client's calls, checked by the calls' own type hints. Pure.

`checked` is a decorator of the class of a client: each public coroutine method reads its arguments before it does
anything. A wrong one is a `ConfigError` of one sentence: which call, which argument, what it takes, what it was given.
A text is not taken for a list of texts, whose letters would be names. Every collection is read once and handed on as a
list or dict, so that a generator will do.

    delete_topics takes topics as a list of texts, not 'orders'; for one, give ['orders']
    alter_reassignments takes moves as a mapping from TopicPartitions to lists of whole numbers or None, and 0 in it is
    not a list of whole numbers or None
"""

import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from moldau.client.partitions import partition_of
from moldau.errors import ConfigError
from moldau.names import TopicPartition

SECRETS = frozenset({"hmac", "password"})
"""Arguments whose values are in no error."""
SHOWN_MAX = 100
"""As many characters of a wrong value are shown."""
T = TypeVar("T")
Read = Callable[[Any], Any]
"""Returns a value as the call takes it. Raises `_Wrong`."""
_WORDS: dict[Any, tuple[str, str]] = {
    str: ("text", "texts"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "truth values"),
    bytes: ("bytes", "bytes"),
    NoneType: ("None", "None"),
}
"""A type, and several of it, in words."""


class _Wrong(Exception):
    """A value, or a part of one, that does not fit its hint. A `secret` is not shown."""

    def __init__(self, given: object, hint: Any, *, secret: bool = False):
        super().__init__()
        self.given, self.hint, self.secret = given, hint, secret

    @property
    def shown(self) -> str:
        text = f"a value of type {type(self.given).__name__}" if self.secret else repr(self.given)
        return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def checked(place: str = "") -> Callable[[type[T]], type[T]]:
    """Decorator of a class whose public coroutine methods check their arguments. `place` precedes their names in
    errors, such as `configs.`."""

    def decorate(cls: type[T]) -> type[T]:
        for name in dir(cls):
            method = inspect.getattr_static(cls, name)
            if not name.startswith("_") and inspect.iscoroutinefunction(method):
                setattr(cls, name, _checked(method, place + name))
        return cls

    return decorate


def _checked(method: Callable[..., Any], call: str) -> Callable[..., Any]:
    code = method.__code__
    names = code.co_varnames[1 : code.co_argcount]
    if not names and not code.co_kwonlyargcount:
        return method

    @functools.wraps(method)
    async def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
        hints = method.__annotations__
        given = [argument(call, name, hints[name], value) for name, value in zip(names, arguments, strict=False)]
        rest = arguments[len(names) :]  # too many: Python's own error says so, as for an unknown name
        known = {
            name: argument(call, name, hints[name], value) if name in hints else value for name, value in named.items()
        }
        return await method(self, *given, *rest, **known)

    return wrapped


def argument(call: str, name: str, hint: Any, value: object) -> Any:
    """The value of one argument as the call takes it. Raises `ConfigError`."""
    try:
        return _reader(hint)(value)
    except _Wrong as wrong:
        takes = f"{call} takes {name} as {words(hint)}"
        wrong.secret |= name in SECRETS
        if wrong.given is not value:
            raise ConfigError(f"{takes}, and {wrong.shown} in it is not {words(wrong.hint)}") from None
        one = f"; for one, give [{wrong.shown}]" if isinstance(value, str) and " a list of texts" in takes else ""
        raise ConfigError(f"{takes}, not {wrong.shown}{one}") from None


def words(hint: Any, *, many: bool = False) -> str:
    """The values that a type hint allows, in words; with `many`, in the plural."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _either([str(part) for part in parts])
    if origin in (Union, UnionType):
        either: list[str] = []
        for part in parts:
            either += map(str, get_args(part)) if get_origin(part) is Literal else [words(part, many=many)]
        return _either(either)
    if origin is tuple and parts[-1] is Ellipsis:
        return f"{'tuples' if many else 'a tuple'} of {words(parts[0], many=True)}"
    if origin is tuple:
        return f"{'pairs' if many else 'a pair'} of {' and '.join(words(part) for part in parts)}"
    if _is(origin, Mapping):
        key, content = (words(part, many=True) for part in parts)
        return f"{'mappings' if many else 'a mapping'} from {key} to {content}"
    if _is(origin, Iterable):
        return f"{'lists' if many else 'a list'} of {words(parts[0], many=True)}"
    if hint in _WORDS:
        return _WORDS[hint][many]
    if hint is object:
        return "values" if many else "a value"
    name = hint.__name__
    return f"{name}s" if many else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _either(parts: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _is(origin: Any, kind: type) -> bool:
    return isinstance(origin, type) and issubclass(origin, kind)


@functools.cache
def _reader(hint: Any) -> Read:
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:  # the call itself says which of them it is
        return _instance(str)
    if origin in (Union, UnionType):
        return _union(hint, [_reader(part) for part in parts])
    if origin is tuple:
        return _tuple(hint, parts)
    if _is(origin, Mapping):
        return _mapping(hint, *map(_reader, parts))
    if _is(origin, Iterable):
        return _list(hint, parts[0])
    return _value(hint) if dataclasses.is_dataclass(hint) else _instance(hint)


def _instance(kind: type) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise _Wrong(value, kind)
        return value

    return read


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise _Wrong(value, int)
    return operator.index(value)


def _number(value: Any) -> float:
    is_number = any(hasattr(type(value), way) for way in ("__float__", "__index__"))
    if isinstance(value, bool) or not is_number:
        raise _Wrong(value, float)
    try:
        return float(value)
    except OverflowError:
        raise _Wrong(value, float) from None


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _Wrong(value, bytes)
    return bytes(value)


_PLAIN: dict[Any, Read] = {
    Any: lambda value: value,
    object: lambda value: value,
    str: _instance(str),
    int: _whole_number,
    float: _number,
    bool: _instance(bool),
    bytes: _bytes,
    datetime: _instance(datetime),
    NoneType: _instance(NoneType),
    TopicPartition: partition_of,
}


def _union(hint: Any, readers: list[Read]) -> Read:
    def read(value: Any) -> Any:
        inner: _Wrong | None = None
        for reader in readers:
            try:
                return reader(value)
            except _Wrong as wrong:
                if wrong.given is not value:  # it is of the right kind, and a part of it is wrong
                    inner = wrong
        raise inner or _Wrong(value, hint)

    return read


def _tuple(hint: Any, parts: tuple[Any, ...]) -> Read:
    endless = parts[-1] is Ellipsis
    readers = [_reader(part) for part in parts if part is not Ellipsis]

    def read(value: Any) -> Any:
        if not isinstance(value, tuple) or not (endless or len(value) == len(readers)):
            raise _Wrong(value, hint)
        return tuple(readers[0 if endless else at](part) for at, part in enumerate(value))

    return read


def _mapping(hint: Any, read_key: Read, read_content: Read) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _Wrong(value, hint)
        return {read_key(key): read_content(content) for key, content in value.items()}

    return read


def _list(hint: Any, part: Any) -> Read:
    read_part = _reader(part)

    def read(value: Any) -> Any:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise _Wrong(value, hint)
        if part is TopicPartition and isinstance(value, tuple) and value and isinstance(value[0], str):
            raise _Wrong(value, hint)  # one partition, and no list of them
        return [read_part(one) for one in value]

    return read


def _value(kind: Any) -> Read:
    """A frozen dataclass that the caller has made, and its fields."""
    hints: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(kind)}
    fields = [(field.name, _reader(hints[field.name]), field.repr) for field in dataclasses.fields(kind)]

    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise _Wrong(value, kind)
        changed = {}
        for name, reader, is_shown in fields:
            part = getattr(value, name)
            try:
                taken = reader(part)
            except _Wrong as wrong:
                wrong.secret |= not is_shown
                raise
            if taken is not part:
                changed[name] = taken
        return dataclasses.replace(value, **changed) if changed else value

    return read
