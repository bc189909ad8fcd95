"""Commands from typed functions, without a dependency: a library that does this costs half the time of a short command.

    app = Group("topics")

    @app.command()
    def create(topics: Annotated[list[str], Argument("TOPIC...")], as_json: Annotated[bool, Option("--json")] = False):
        "Create topics."

A parameter is an `Argument` or an `Option`; one without a default is required; a list takes several values; a bool is a
flag; an enum takes one of its values. A `NamedTuple` of such parameters stands for all of them: commands share it. The
docstring is the help. Options may stand anywhere, as `--name VALUE`, `--name=VALUE`, `-n VALUE` or `-nVALUE`; all after
`--` are arguments. A function returns its exit code, or None.
"""

import enum
import importlib
import inspect
import math
import os
import types
import typing
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from moldau.errors import MoldauError
from moldau.names import guess

HELP = ("-h", "--help")
F = TypeVar("F", bound=Callable[..., Any])


class UsageError(MoldauError):
    """The command line is wrong; the exit code is 2."""


class HelpAsked(Exception):
    """The command line asks for help."""


class Argument(NamedTuple):
    """A value by its place."""

    metavar: str
    help: str = ""


class Option:
    """A value by its name: `--name-of-the-parameter` unless `names` are given. `envvar` names the environment variable
    that stands in for a missing option; `callback` checks the value. Numbers are at least `min` and at most `max`."""

    def __init__(
        self,
        *names: str,
        help: str = "",
        metavar: str = "",
        envvar: str = "",
        min: int | None = None,
        max: int | None = None,
        callback: Callable[[Any], Any] | None = None,
    ):
        self.names, self.help, self.metavar, self.envvar, self.callback = names, help, metavar, envvar, callback
        self.min, self.max = min, max


class Parameter(NamedTuple):
    """A parameter of a command's function. `kind` is the type of one value, `many` whether there may be several."""

    name: str
    about: Argument | Option
    kind: Any
    many: bool
    default: Any

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def names(self) -> list[str]:
        """The option's names, short ones first; empty for an argument."""
        if isinstance(self.about, Argument):
            return []
        return sorted(self.about.names or [f"--{self.name.replace('_', '-')}"], key=len)

    @property
    def shown(self) -> str:
        """Its name in an error."""
        return f"'{self.about.metavar}'" if isinstance(self.about, Argument) else f"'{self.names[-1]}'"

    def value_of(self, text: str) -> Any:
        """The text as a value of its kind. Raises `UsageError`."""
        wrong = f"Invalid value for {self.shown}: "
        if issubclass(self.kind, enum.Enum):
            choices = [str(one.value) for one in self.kind]
            if text not in choices:
                raise UsageError(f"{wrong}{text!r} is not one of {', '.join(choices)}")
            return self.kind(text)
        if self.kind not in (int, float):
            return self.kind(text)
        try:
            number = self.kind(text)
        except ValueError:
            raise UsageError(f"{wrong}{text!r} is not a {'whole ' * (self.kind is int)}number") from None
        low, high = (self.about.min, self.about.max) if isinstance(self.about, Option) else (None, None)
        if isinstance(number, float) and not math.isfinite(number):
            raise UsageError(f"{wrong}{text!r} is not a number")
        if (low is not None and number < low) or (high is not None and number > high):
            limits = f"at least {low}" if high is None else f"from {low} to {high}"
            raise UsageError(f"{wrong}{text} is not {limits}")
        return number


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a command's function, in order, with those that a `NamedTuple` stands for in its place."""
    hints = typing.get_type_hints(function, include_extras=True)
    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if hasattr(hints[name], "_fields"):
            parameters += parameters_of(hints[name])
            continue
        kind, about = typing.get_args(hints[name])
        if isinstance(kind, types.UnionType):
            [kind] = [one for one in typing.get_args(kind) if one is not types.NoneType]
        many = typing.get_origin(kind) is list
        if many:
            [kind] = typing.get_args(kind)
        parameters.append(Parameter(name, about, kind, many, parameter.default))
    return parameters


def call(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Call a command's function with the values of its `parameters_of`, by name."""
    for name, hint in typing.get_type_hints(function, include_extras=True).items():
        if hasattr(hint, "_fields"):
            values[name] = hint(**{field: values.pop(field) for field in hint._fields})
    return function(**values)


def read(parameters: Sequence[Parameter], texts: Iterable[str]) -> dict[str, Any]:
    """The values of the parameters in a command line. Raises `UsageError`, `HelpAsked`."""
    given: dict[str, Any] = {}
    by_name = {name: parameter for parameter in parameters for name in parameter.names}
    placed: list[str] = []
    left = deque(texts)
    while left:
        text = left.popleft()
        if text == "--":
            placed += left
            break
        if not text.startswith("-") or text == "-":
            placed.append(text)
            continue
        if text in HELP:
            raise HelpAsked
        name, equals, attached = text.partition("=") if text.startswith("--") else (text[:2], text[2:], text[2:])
        if name not in by_name:
            raise UsageError(f"No such option: {name}{guess(name, by_name)}")
        parameter = by_name[name]
        if parameter.kind is bool:
            if equals and name.startswith("--"):
                raise UsageError(f"Option {parameter.shown} does not take a value")
            if equals:
                left.appendleft(f"-{attached}")
            given[parameter.name] = True
            continue
        if not equals and not left:
            raise UsageError(f"Option {parameter.shown} requires an argument")
        value = parameter.value_of(attached if equals else left.popleft())
        given[parameter.name] = [*given.get(parameter.name, []), value] if parameter.many else value
    _place([p for p in parameters if isinstance(p.about, Argument)], placed, given)
    return {parameter.name: _final(parameter, given) for parameter in parameters}


def _place(arguments: Sequence[Parameter], texts: Sequence[str], given: dict[str, Any]) -> None:
    """Give each argument its value; the last one may take several."""
    left = deque(texts)
    for argument in arguments:
        if argument.many and left:
            given[argument.name] = [argument.value_of(text) for text in left]
            left.clear()
        elif left:
            given[argument.name] = argument.value_of(left.popleft())
    if left:
        raise UsageError(f"Got unexpected extra argument ({left[0]})")


def _final(parameter: Parameter, given: dict[str, Any]) -> Any:
    """The value of a parameter: what was given, else the environment's, else the default."""
    about = parameter.about
    if parameter.name in given:
        value = given[parameter.name]
    elif isinstance(about, Option) and about.envvar and os.environ.get(about.envvar):
        value = parameter.value_of(os.environ[about.envvar])
    elif parameter.required:
        raise UsageError(f"Missing {'argument' if isinstance(about, Argument) else 'option'} {parameter.shown}")
    else:
        value = parameter.default
    return about.callback(value) if isinstance(about, Option) and about.callback else value


class Group:
    """Commands under one name, such as `moldau topics`. `places` says where commands are that need more imports than
    the others: `module:function` by name. A module is imported when one of its commands is called."""

    def __init__(self, name: str, places: Mapping[str, str] | None = None):
        self.name = name
        self._elsewhere = frozenset(places or ())
        self._found: dict[str, Callable[..., Any] | str] = dict(places or {})

    @property
    def commands(self) -> dict[str, Callable[..., Any]]:
        """All commands, whose modules are imported; those of the group's own module first."""
        return {name: self._command(name) for name in sorted(self._found, key=self._elsewhere.__contains__)}

    def command(self, name: str = "") -> Callable[[F], F]:
        """Decorator: the function is a command of the group, under its own name unless another is given."""

        def add(function: F) -> F:
            self._found[name or function.__name__] = function
            return function

        return add

    def named(self, name: str, path: str) -> Callable[..., Any]:
        """The command with that name; `path` is the group's, for the error. Raises `UsageError`."""
        check_name(name, self._found, path)
        return self._command(name)

    def _command(self, name: str) -> Callable[..., Any]:
        found = self._found[name]
        if isinstance(found, str):
            module, _, function = found.partition(":")
            found = self._found[name] = getattr(importlib.import_module(module), function)
        return found


def check_name(name: str, known: Iterable[str], path: str) -> None:
    """Raises `UsageError` if there is no command of that name behind `path`."""
    if name not in known:
        kind = "option:" if name.startswith("-") else "command"
        shown = name if name.startswith("-") else repr(name)
        raise UsageError(f"No such {kind} {shown}{guess(name, known)} (`{path} --help` says more)")
