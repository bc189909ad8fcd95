"""What happens to the members of a group, drawn from a seed: who joins, leaves, is killed, and after what pause.

A plan is made before anything runs, so the same seed is the same plan however fast the machine is. Pauses come in three
lengths: shorter than a rebalance, about as long, and long enough for the group to settle from whatever happened.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

JOIN, LEAVE, KILL, RIVAL = "joins", "leaves", "dies", "rivals"
HURRY_S = 0.15


class Kind(NamedTuple):
    """A client, the group protocol it speaks, and how its classic members share out partitions."""

    client: str
    protocol: str = "classic"
    strategy: str = "range"


class Step(NamedTuple):
    """`life` counts the members of a plan in the order they join. It is not done before those it waits for have joined;
    a rival comes with the instance id of `holder`."""

    pause_s: float
    what: str
    life: int
    kind: Kind
    waits_for: tuple[int, ...] = ()
    instance: str | None = None
    holder: int | None = None


class Script(NamedTuple):
    """What a plan is drawn from. Who joins is of a kind of the phase, and who goes is rather one that is not."""

    name: str
    phases: Sequence[Sequence[Kind]]
    changes: int
    members_max: int
    partitions: int
    instances: int = 0
    """How many static members there are: see `statics`."""


def plan(script: Script, seed: int, settle_s: float) -> list[Step]:
    """There is always a member; every kind of a phase joins in it, if the phase is long enough."""
    rng = random.Random(f"{script.name} {seed}")
    steps: list[Step] = []
    alive: dict[int, Kind] = {}
    lives = 0
    wanted: list[Kind] = []
    for number in range(script.changes):
        at = number * len(script.phases) // script.changes
        kinds = script.phases[at]
        if number * len(script.phases) % script.changes < len(script.phases):
            wanted = rng.sample(list(dict.fromkeys(kinds)), len(dict.fromkeys(kinds)))
        if len(alive) < 2 or (len(alive) < script.members_max and rng.random() < 0.5):
            kind = wanted.pop() if wanted else rng.choice(list(kinds))
            life, what, lives = lives, JOIN, lives + 1
            alive[life] = kind
        else:
            others = [life for life, kind in alive.items() if kind not in kinds]
            life, what = rng.choice(others or list(alive)), rng.choice((LEAVE, KILL))
            kind = alive.pop(life)
        pause_s = _pause_s(rng, settle_s)
        waits_for = () if what == JOIN or pause_s < HURRY_S else (life,)
        steps.append(Step(pause_s, what, life, kind, waits_for))
    return steps


def _pause_s(rng: random.Random, settle_s: float) -> float:
    length = rng.random()
    if length < 0.4:
        return rng.uniform(0, 0.3)
    return rng.uniform(0.3, 2.5) if length < 0.87 else settle_s
