"""Subscriptions by regular expression (KIP-848): the topics whose whole name an RE2 expression matches. Pure.

RE2 takes linear time, but one name can still take a hostile expression milliseconds, and 10,000 names take any
expression a tenth of a second. So `match` answers at once only if the work is small, counted in steps. The rest is a
`MatchTask`, which touches nothing here and may run in another thread; `taken` applies its result. Each name is matched
once per expression: a later answer costs only the topics that were created since. Invariant: each of the current topic
names is in `left` of an answer until it has been matched; afterwards it is in `matched` if the expression matches it.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

KEPT_MAX = 100
"""Expressions whose answers are remembered; beyond that the one that was asked least recently is forgotten."""
MEMORY_BYTES_MAX = 512 << 10
"""What a compiled expression takes at most: enough to list five thousand letters, and compiled in a few milliseconds. A
larger one is no expression."""
NAME_STEPS, COMPILE_STEPS = 100, 1000
"""What a name, or an expression, costs whatever it says. A step takes some 20 to 80 ns."""
STEPS_AT_ONCE = 50_000
"""So much is done between two calls of `renew`: up to four milliseconds' worth, or some 200 short names."""
TASK_STEPS = 1_000_000
"""A tenth of a second at most."""


@dataclass(slots=True)
class _Answer:
    """What an expression matches; the names in `left`, the next one last, are still to be looked at. Some of these may
    be gone. `refusal`: why it is no expression."""

    left: list[str]
    pattern: Any = None
    refusal: str = ""
    matched: dict[str, None] = field(default_factory=dict)
    found: tuple[str, ...] | None = None


class MatchTask(NamedTuple):
    """Some names to be matched. May be run anywhere."""

    expression: str
    pattern: Any
    names: list[str]

    def run(self) -> list[str]:
        return [name for name in self.names if self.pattern.fullmatch(name)]


class Expressions:
    """All expressions of a broker's groups."""

    def __init__(self) -> None:
        self._answers: dict[str, _Answer] = {}
        self._names: Collection[str] = ()
        self._steps = STEPS_AT_ONCE

    def renew(self) -> None:
        """Others had their turn."""
        self._steps = STEPS_AT_ONCE

    @property
    def has_worked(self) -> bool:
        """Whether there is something to `renew`."""
        return self._steps < STEPS_AT_ONCE

    def check(self, expression: str) -> None:
        """Raises `ValueError` with a reason if it is no expression."""
        self._answer(expression)

    def match(self, expression: str, topics: Collection[str]) -> tuple[str, ...] | None:
        """The topics that it matches, sorted; None if that is too much to find out now. Raises as `check` does."""
        if not topics:
            self.check(expression)
            return ()
        self._look_at(topics)
        if self._steps <= 0 and expression not in self._answers:
            return None
        answer = self._answer(expression)
        if answer.left and self._steps > 0:
            names, steps = _next(answer, self._steps)
            self._steps -= steps
            self._learn(answer, names, MatchTask(expression, answer.pattern, names).run())
        if answer.left:
            return None
        if answer.found is None:
            answer.found = tuple(sorted(answer.matched))
        return answer.found

    def task(self, expression: str, topics: Collection[str]) -> MatchTask | None:
        """What is to be done next for an answer; None if it is there. Raises as `check` does."""
        self._look_at(topics)
        answer = self._answer(expression)
        return MatchTask(expression, answer.pattern, _next(answer, TASK_STEPS)[0]) if answer.left else None

    def taken(self, task: MatchTask, matched: list[str]) -> None:
        """The task was done; what has been forgotten or deleted meanwhile stays so."""
        answer = self._answers.get(task.expression)
        if answer is not None and answer.left:
            self._learn(answer, task.names, matched)

    def _learn(self, answer: _Answer, names: list[str], matched: list[str]) -> None:
        if answer.left[: -len(names) - 1 : -1] == names:
            del answer.left[-len(names) :]
        else:  # others came, or were looked at, meanwhile
            done = dict.fromkeys(names)
            answer.left = [name for name in answer.left if name not in done]
        if matched:
            answer.matched.update((name, None) for name in matched if name in self._names)
            answer.found = None

    def _answer(self, expression: str) -> _Answer:
        answer = self._answers.pop(expression, None)
        if answer is None:
            self._steps -= COMPILE_STEPS
            answer = _Answer(list(self._names)[::-1])
            try:
                answer.pattern = compiled(expression)
                self._steps -= answer.pattern.programsize
            except ValueError as error:
                answer.refusal = str(error)
                self._steps = 0  # nobody knows how much was done until it was found too large
        self._answers[expression] = answer
        if len(self._answers) > KEPT_MAX:
            del self._answers[next(iter(self._answers))]
        if answer.refusal:
            raise ValueError(answer.refusal)
        return answer

    def _look_at(self, topics: Collection[str]) -> None:
        """These are the names from now on; every answer has to do with those that are new."""
        if topics is self._names:
            return
        before, self._names = self._names, topics
        new, gone = [name for name in topics if name not in before], [name for name in before if name not in topics]
        for answer in self._answers.values():
            for name in gone:
                if name in answer.matched:
                    del answer.matched[name]
                    answer.found = None
            answer.left += new


def _next(answer: _Answer, steps_max: int) -> tuple[list[str], int]:
    """The next names, at least one, and how many steps they take."""
    size, steps, count = answer.pattern.programsize, 0, 0
    for name in reversed(answer.left):
        steps += NAME_STEPS + size * len(name)
        if count and steps > steps_max:
            break
        count += 1
    return answer.left[: -count - 1 : -1], steps


def compiled(expression: str) -> Any:
    """Its `fullmatch` tells what it matches. Raises `ValueError` with a reason if it is no expression."""
    try:
        import re2
    except ImportError:
        raise ValueError("this broker has no RE2: install the package google-re2") from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    try:
        return re2.compile(expression, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        raise ValueError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    except UnicodeEncodeError:
        raise ValueError("it is no text") from None
