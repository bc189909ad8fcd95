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

from moldau.config.expressions import compiled

KEPT_MAX = 100
"""The most expressions whose answers are kept; the least recently used one is dropped."""
NAME_STEPS, COMPILE_STEPS = 100, 1000
"""The fixed cost of matching a name, and of compiling an expression, in steps of 20 to 80 ns."""
STEPS_AT_ONCE = 50_000
"""The most steps between two calls of `renew`: up to four milliseconds, or about 200 short names."""
TASK_STEPS = 1_000_000
"""The most steps of a task: up to a tenth of a second."""


@dataclass(slots=True)
class _Answer:
    """The matches of an expression so far. The names in `left` have not been matched yet, the next one stands last;
    some of these topics may be deleted by now. `refusal` says why the expression is invalid."""

    left: list[str]
    pattern: Any = None
    refusal: str = ""
    matched: dict[str, None] = field(default_factory=dict)
    result: tuple[str, ...] | None = None


class MatchTask(NamedTuple):
    """Names to match. `run` may be called in any thread."""

    expression: str
    pattern: Any
    names: list[str]

    def run(self) -> list[str]:
        return [name for name in self.names if self.pattern.fullmatch(name)]


class Expressions:
    """The expressions of all groups of a broker."""

    def __init__(self) -> None:
        self._answers: dict[str, _Answer] = {}
        self._names: Collection[str] = ()
        self._steps = STEPS_AT_ONCE

    def renew(self) -> None:
        """The loop had a turn: allow the next steps."""
        self._steps = STEPS_AT_ONCE

    @property
    def has_worked(self) -> bool:
        """Whether steps were used since the last `renew`."""
        return self._steps < STEPS_AT_ONCE

    def check(self, expression: str) -> None:
        """Raises `ValueError` with the reason if the expression is invalid."""
        self._answer(expression)

    def match(self, expression: str, topics: Collection[str]) -> tuple[str, ...] | None:
        """The topics that the expression matches, sorted; None if finding them takes too long now. Raises as `check`
        does."""
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
        if answer.result is None:
            answer.result = tuple(sorted(answer.matched))
        return answer.result

    def task(self, expression: str, topics: Collection[str]) -> MatchTask | None:
        """The next task for the expression; None if its topics are known. Raises as `check` does."""
        self._look_at(topics)
        answer = self._answer(expression)
        return MatchTask(expression, answer.pattern, _next(answer, TASK_STEPS)[0]) if answer.left else None

    def taken(self, task: MatchTask, matched: list[str]) -> None:
        """The task has run. Results for expressions that were dropped, or topics that were deleted, are ignored."""
        answer = self._answers.get(task.expression)
        if answer is not None and answer.left:
            self._learn(answer, task.names, matched)

    def _learn(self, answer: _Answer, names: list[str], matched: list[str]) -> None:
        if answer.left[: -len(names) - 1 : -1] == names:
            del answer.left[-len(names) :]
        else:  # names were added, or matched, in the meantime
            done = dict.fromkeys(names)
            answer.left = [name for name in answer.left if name not in done]
        if matched:
            answer.matched.update((name, None) for name in matched if name in self._names)
            answer.result = None

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
                self._steps = 0  # the cost of an expression that is too large is unknown
        self._answers[expression] = answer
        if len(self._answers) > KEPT_MAX:
            del self._answers[next(iter(self._answers))]
        if answer.refusal:
            raise ValueError(answer.refusal)
        return answer

    def _look_at(self, topics: Collection[str]) -> None:
        """These are the topic names from now on; every answer still has to match the new ones."""
        if topics is self._names:
            return
        before, self._names = self._names, topics
        new, gone = [name for name in topics if name not in before], [name for name in before if name not in topics]
        for answer in self._answers.values():
            for name in gone:
                if name in answer.matched:
                    del answer.matched[name]
                    answer.result = None
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
