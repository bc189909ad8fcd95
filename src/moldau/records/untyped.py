"""Stands in for the `cython` module where the files of `columns/` run interpreted: types and directives have no effect.

With it the same files need no compiler and no Cython. Only the names they use are here; types appear only in
annotations, which are never evaluated, and in `cast`, whose first argument is the value that `__getattr__` returns for
a type's name.
"""

from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

compiled = False


def cfunc(function: F) -> F:
    return function


inline = cclass = final = cfunc


def exceptval(*_: Any, **__: Any) -> Callable[[F], F]:
    return cfunc


class NoGil:
    """Stands in for both `@cython.nogil` and `with cython.nogil`."""

    def __call__(self, function: F) -> F:
        return function

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


nogil = NoGil()


def struct(**fields: Any) -> type:
    """A struct: an object with those attributes."""
    return make_dataclass("Struct", fields, slots=True)


def address(value: Any) -> Any:
    """A pointer to a struct is the struct."""
    return value


def declare(_: Any, value: Any = None, visibility: str = "private") -> Any:
    return value


def cast(_: Any, value: Any) -> Any:
    return value


def __getattr__(name: str) -> str:
    return name
