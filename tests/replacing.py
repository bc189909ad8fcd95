"""Bugs put into production code on purpose: functions are replaced in memory, and put back afterwards.

A bug names functions and what they do instead, never their source text, so that it survives a refactoring of what is
inside them. A name that is no longer there is an error: a bug that replaces nothing proves nothing.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import ModuleType
from typing import Any, NamedTuple

import pytest

OURS = ("moldau.", "tests.")
FAILURES = (AssertionError, TimeoutError, pytest.fail.Exception)
"""How a test fails that has found a bug; every other exception is a mistake in the bug."""
_running: ContextVar[tuple[str, ...]] = ContextVar("running", default=())


class Instead(NamedTuple):
    """`do` is called in place of the function `where`, with that function in front of its arguments.

    `where`: "module:function" or "module:Class.method"; methods may be static, of the class or properties. A function
    that the module only imported is replaced in this module alone.
    `within`: only while this function runs, or a task that it started; `outside`: only while this one does not.
    """

    where: str
    do: Callable[..., Any]
    within: str = ""
    outside: str = ""


def nothing(original: Callable[..., Any], *_: Any, **__: Any) -> Any:
    """Do nothing, and return None."""
    return _none() if inspect.iscoroutinefunction(original) else None


async def _none() -> None:
    return None


def returns(value: Any) -> Callable[..., Any]:
    """Do nothing, and return this value."""
    return lambda *_, **__: value


def unless(condition: Callable[..., bool]) -> Callable[..., Any]:
    """Do nothing if the condition holds for the arguments."""

    def do(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return None if condition(*args, **kwargs) else original(*args, **kwargs)

    return do


@contextmanager
def replaced(bug: Iterable[Instead]) -> Iterator[None]:
    """The production code with this bug in it. Raises `LookupError` if a function is not there."""
    undo: list[Callable[[], None]] = []
    try:
        for instead in bug:
            for noted in (instead.within, instead.outside):
                if noted:
                    undo.append(_put(noted, _noting(noted)))
            undo.append(_put(instead.where, _replacing(instead)))
        yield
    finally:
        for step in reversed(undo):
            step()


def assert_found(bug: Instead | Iterable[Instead], check: Callable[[], object]) -> None:
    """A check that passes on the production code must fail with this bug in it."""
    check()
    with replaced([bug] if isinstance(bug, Instead) else bug), pytest.raises(FAILURES):
        check()


def with_patches(check: Callable[[pytest.MonkeyPatch], object]) -> Callable[[], None]:
    """The check with patches of its own, which are gone afterwards."""

    def checked() -> None:
        with pytest.MonkeyPatch.context() as patches:
            check(patches)

    return checked


def _replacing(instead: Instead) -> Callable[[Any], Any]:
    def around(function: Any) -> Any:
        @wraps(function)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            running = _running.get()
            if (instead.within and instead.within not in running) or instead.outside in running:
                return function(*args, **kwargs)
            return instead.do(function, *args, **kwargs)

        return replacement

    return around


def _noting(where: str) -> Callable[[Any], Any]:
    """While the function runs, `where` is among the names in `_running`."""

    @contextmanager
    def noted() -> Iterator[None]:
        token = _running.set((*_running.get(), where))
        try:
            yield
        finally:
            _running.reset(token)

    def around(function: Any) -> Any:
        if inspect.iscoroutinefunction(function):

            async def begun(*args: Any, **kwargs: Any) -> Any:
                with noted():
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            def begun(*args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
                steps = function(*args, **kwargs)
                while True:
                    try:
                        with noted():
                            step = next(steps)
                    except StopIteration as end:
                        return end.value
                    yield step

        else:

            def begun(*args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
                with noted():
                    return function(*args, **kwargs)

        return wraps(function)(begun)

    return around


def _put(where: str, around: Callable[[Any], Any]) -> Callable[[], None]:
    """Put `around(function)` in the place of a function, wherever it is imported by name; returns what undoes it, also
    in modules that are imported meanwhile."""
    owner, name = _owner(where)
    before = inspect.getattr_static(owner, name)
    if isinstance(before, property):
        after: Any = property(around(before.fget), before.fset)
    elif isinstance(before, staticmethod | classmethod):
        after = type(before)(around(before.__func__))
    else:
        after = around(before)
    if not inspect.ismodule(owner):
        was_own = name in vars(owner)
        setattr(owner, name, after)
        return lambda: setattr(owner, name, before) if was_own else delattr(owner, name)
    for holder in [owner, *(_importers(name, before) if before.__module__ == owner.__name__ else ())]:
        setattr(holder, name, after)

    def undo() -> None:
        for holder in [owner, *_importers(name, after)]:
            setattr(holder, name, before)

    return undo


def _importers(name: str, function: Any) -> list[ModuleType]:
    """The modules of ours that have this function under its name by now: some are imported when they are needed."""
    modules = [module for key, module in list(sys.modules.items()) if key.startswith(OURS)]
    return [module for module in modules if vars(module).get(name) is function]


def _owner(where: str) -> tuple[Any, str]:
    """What holds the function, and its name. Raises `LookupError`."""
    module, _, path = where.partition(":")
    *parts, name = path.split(".")
    try:
        owner: Any = importlib.import_module(module)
        for part in parts:
            owner = getattr(owner, part)
        inspect.getattr_static(owner, name)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"{where} is not there: {error}") from error
    return owner, name
