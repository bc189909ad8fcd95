"""What happens to a group of static members: an instance dies or leaves and is soon back, dies for longer than its
session, finds a rival with its own id; and guests without one come and go meanwhile. Drawn from a seed.

The first return is to a group in which nothing has happened but that everybody came, so that there is one of which it
is certain what it may not cause.
"""

import random
from collections.abc import Callable

from tests.churn.plan import JOIN, KILL, LEAVE, RIVAL, Kind, Script, Step

REST_S = 4.0
"""Enough for a group to be at rest after members came."""


def static_plan(script: Script, seed: int, settle_s: float) -> list[Step]:
    """Kinds of the first phase bear the instance ids, those of the second are guests."""
    story = _Story(script, random.Random(f"{script.name} {seed}"), settle_s)
    for instance in story.instances:
        story.comes(instance, story.rng.uniform(0, 0.3))
    story.returns_at_rest()
    episodes: list[Callable[[float], None]] = []
    while len(story.steps) < script.changes:
        if not episodes:
            episodes = [story.returns, story.is_lost, story.has_a_rival, story.has_a_guest]
            story.rng.shuffle(episodes)
        episodes.pop()(story.rng.choice((story.rng.uniform(0.3, 2), REST_S)))
    return story.steps[: script.changes]


class _Story:
    """The steps so far, and who has each instance id."""

    def __init__(self, script: Script, rng: random.Random, settle_s: float):
        self.rng = rng
        self.steps: list[Step] = []
        self.instances = [f"{script.name}-{number}" for number in range(script.instances)]
        self._kinds, self._guests = script.phases
        self._settle_s = settle_s
        self._lives = 0
        self._holders: dict[str, tuple[int, Kind]] = {}

    def comes(self, instance: str, pause_s: float) -> None:
        kind = self._kinds[self._lives % len(self._kinds)]
        self._holders[instance] = self._step(pause_s, JOIN, kind, instance)

    def returns_at_rest(self) -> None:
        """All are there, and it is back as soon as can be; of the consumer protocol, it had left for now."""
        instance = self._any()
        life, kind = self._holders.pop(instance)
        everybody = tuple(range(self._lives))
        what = LEAVE if kind.protocol == "consumer" else self.rng.choice((LEAVE, KILL))
        self.steps.append(Step(REST_S, what, life, kind, everybody, instance))
        self._holders[instance] = self._step(0, JOIN, self._kinds[0], instance)

    def returns(self, pause_s: float) -> None:
        self._comes_again(self.rng.choice((LEAVE, KILL)), pause_s, self.rng.uniform(0, 1.5))

    def is_lost(self, pause_s: float) -> None:
        self._comes_again(self.rng.choice((LEAVE, KILL)), pause_s, self._settle_s)

    def _comes_again(self, what: str, pause_s: float, away_s: float) -> None:
        instance = self._any()
        life, kind = self._holders.pop(instance)
        self.steps.append(Step(pause_s, what, life, kind, (life,), instance))
        self.comes(instance, away_s)

    def has_a_rival(self, pause_s: float) -> None:
        """Of the classic protocol it is the instance from then on, of the newer one it is refused."""
        instance = self._any()
        holder, kind = self._holders[instance]
        rival = self._step(pause_s, RIVAL, kind, instance, holder)
        if kind.protocol == "classic":
            self._holders[instance] = rival

    def has_a_guest(self, pause_s: float) -> None:
        life, kind = self._step(pause_s, JOIN, self.rng.choice(list(self._guests)), None)
        self.steps.append(Step(self.rng.uniform(0.3, 2.5), self.rng.choice((LEAVE, KILL)), life, kind, (life,)))

    def _step(
        self, pause_s: float, what: str, kind: Kind, instance: str | None, holder: int | None = None
    ) -> tuple[int, Kind]:
        life, self._lives = self._lives, self._lives + 1
        waits_for = () if holder is None else (holder,)
        self.steps.append(Step(pause_s, what, life, kind, waits_for, instance, holder))
        return life, kind

    def _any(self) -> str:
        """Rather not the one that something has just happened to."""
        last = next((step.instance for step in reversed(self.steps) if step.instance), None)
        return self.rng.choice([one for one in self.instances if one != last] or self.instances)
