"""Frozen dataclasses that share their methods behave as those that `dataclasses` makes."""

import copy
import dataclasses
import inspect
import pickle
from typing import Any, ClassVar

import pytest

from moldau.client.values import value


@value
class Ours:
    """A class with every kind of field."""

    kind: ClassVar[str] = "ours"
    first: int
    second: str = "x"
    third: list[int] = dataclasses.field(default_factory=list)
    secret: str = dataclasses.field(default="s", repr=False, kw_only=True)


@dataclasses.dataclass(frozen=True)
class Theirs:
    """The same, made by `dataclasses`."""

    kind: ClassVar[str] = "theirs"
    first: int
    second: str = "x"
    third: list[int] = dataclasses.field(default_factory=list)
    secret: str = dataclasses.field(default="s", repr=False, kw_only=True)


def outcome(cls: Any, *arguments: Any, **named: Any) -> object:
    try:
        made = cls(*arguments, **named)
    except TypeError:
        return TypeError
    return dataclasses.astuple(made)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((1,), {}),
        ((1, "y", [2]), {"secret": "t"}),
        ((), {"first": 1, "third": [3]}),
        ((), {}),
        ((1, "y", [2], "t"), {}),
        ((1,), {"first": 2}),
        ((1,), {"fourth": 2}),
    ],
)
def test_it_is_made_by_the_same_arguments(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert outcome(Ours, *arguments, **named) == outcome(Theirs, *arguments, **named)


def test_it_is_shown_compared_hashed_and_copied_the_same_way() -> None:
    one = Ours(1)
    assert repr(one) == "Ours(first=1, second='x', third=[])"
    assert one == Ours(1) and one != Ours(2) and one != Theirs(1) and one.third is not Ours(1).third
    assert dataclasses.replace(one, second="y") == Ours(1, "y")
    assert pickle.loads(pickle.dumps(one)) == one and copy.deepcopy(one) == one
    assert hash(Ours(1, third=())) == hash(Ours(1, third=()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_it_does_not_change() -> None:
    one: Any = Ours(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'first'"):
        one.first = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'first'"):
        del one.first


def test_its_signature_is_that_of_a_dataclass() -> None:
    ours, theirs = (inspect.signature(cls).parameters for cls in (Ours, Theirs))
    assert [(one.name, one.kind, one.annotation) for one in ours.values()] == [
        (one.name, one.kind, one.annotation) for one in theirs.values()
    ]
    assert ours["second"].default == "x" and ours["first"].default is inspect.Parameter.empty
