"""Expressions that members subscribe with: which topics they match, as a whole, in the syntax of RE2 (KIP-848).

With RE2 time grows with the lengths of expression and name and no faster, and what would take more memory than it is
allowed is no expression. Names that were matched before are not matched again: an answer costs what topics
came since the last one for that expression.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

KEPT_MAX = 100
"""Expressions whose answers are remembered; beyond that the one that was asked least recently is forgotten."""


class _Answer(NamedTuple):
    """`names` are what was asked about, all of them; `matched` those that the pattern matches."""

    pattern: Any
    names: Collection[str]
    matched: frozenset[str]


class Expressions:
    """All expressions of a broker's groups."""

    def __init__(self) -> None:
        self._answers: dict[str, _Answer] = {}

    def match(self, expression: str, topics: Collection[str]) -> list[str]:
        """The topics that it matches, in the order in which they are given. Raises `ValueError` with a reason if it
        is no expression."""
        answer = self._answers.pop(expression, None)
        if answer is None:
            answer = _Answer(compiled(expression), (), frozenset())
        if topics and topics is not answer.names:
            known, matches = answer.names, answer.pattern.fullmatch
            matched = [name for name in topics if (name in answer.matched if name in known else matches(name))]
            answer = _Answer(answer.pattern, topics, frozenset(matched))
        self._answers[expression] = answer
        if len(self._answers) > KEPT_MAX:
            del self._answers[next(iter(self._answers))]
        return [name for name in topics if name in answer.matched]


def compiled(expression: str) -> Any:
    """Its `fullmatch` tells what it matches. Raises `ValueError` with a reason if it is no expression."""
    try:
        import re2
    except ImportError:
        raise ValueError("this broker has no RE2: install the package google-re2") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        raise ValueError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    except UnicodeEncodeError:
        raise ValueError("it is no text") from None
