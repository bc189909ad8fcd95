"""What bugs of coordinators do to the answers, errors and deadlines of the functions that they replace."""

from collections.abc import Callable
from typing import Any

from moldau.errors import ErrorCode
from tests.replacing import unless

Do = Callable[..., Any]


def forgiving(*errors: ErrorCode) -> Do:
    """The function's answer, without these errors."""

    def do(original: Do, *arguments: Any) -> Any:
        error = original(*arguments)
        if isinstance(error, list):
            return [ErrorCode.NONE if one in errors else one for one in error]
        return ErrorCode.NONE if error in errors else error

    return do


def skipping(*kinds: str) -> Do:
    """Deadlines of these kinds are not set."""
    return unless(lambda _, key, __: key[0] in kinds)


def not_moving(kind: str) -> Do:
    """A deadline of this kind is set once."""
    return unless(lambda self, key, _: key[0] == kind and key in self)


SHARD = "moldau.coordinators.groups.shard:GroupShard"
DEADLINES = "moldau.coordinators.deadlines:Deadlines"
