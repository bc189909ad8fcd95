"""What a seed draws for its story: who sits in which group, how the broker is set, what the weather is like, and how
likely each event is, many not at all (a swarm)."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.worlds.groups.member import Seat

SESSION_MS = 6000
RETENTION_S, FORGETS_S = 60, 5
KINDS = ("eager", "cooperative", "cooperative", "consumer", "consumer", "migrating", "migrating")
OFTEN: Mapping[str, float] = {"arrive": 2.0, "move": 1.5, "busy": 1.5, "die": 0.7, "stop_broker": 0.3}


@dataclass(frozen=True)
class GroupPlan:
    """`work_s` is how long a piece of work takes at most that is handed to an executor, flushes above all. `max_size`:
    so few members a classic group may have in the end, 0 for as many as come."""

    seats: list[Seat]
    partitions: dict[str, int]
    settings: dict[str, object]
    weights: dict[str, float]
    work_s: float
    rebalance_ms: int
    initial_delay_ms: int
    max_size: int


def draw(seed: random.Random, events: Iterable[str], power_loss: bool) -> GroupPlan:
    rebalance_ms, initial_delay_ms = seed.choice((3000, 8000)), seed.choice((0, 0, 500, 3000))
    seats = [seat for number in range(seed.randint(1, 2)) for seat in _seats(seed, number, rebalance_ms)]
    work_s = seed.choice((0.0, 0.0, 0.0, 0.005, 0.05, 0.3))
    settings: dict[str, object] = {
        "group_initial_rebalance_delay_ms": initial_delay_ms,
        "group_consumer_min_session_timeout_ms": 1000,
        "group_consumer_session_timeout_ms": SESSION_MS,
        "group_consumer_min_heartbeat_interval_ms": 100,
        "group_consumer_heartbeat_interval_ms": 1000,
        "group_consumer_assignment_interval_ms": seed.choice((0, 0, 1000)),
        "offsets_topic_num_partitions": seed.randint(1, 3),
        "offsets_retention_minutes": RETENTION_S // 60,
        "offsets_retention_check_interval_ms": FORGETS_S * 1000,
    }
    apart = random.Random(seed.getstate()[1][0])  # what is drawn from it leaves the rest as it is
    if power_loss or work_s:
        settings["log_flush_interval_messages"] = 1
    return GroupPlan(
        seats,
        {"t": seed.randint(2, 5), "u": seed.randint(1, 3)},
        settings,
        {event: OFTEN.get(event, 1.0) * seed.random() for event in events if event == "arrive" or seed.random() < 0.6},
        work_s,
        rebalance_ms,
        initial_delay_ms,
        apart.choice((0, 0, 0, 0, 2, 3)),
    )


def _seats(seed: random.Random, group: int, rebalance_ms: int) -> list[Seat]:
    kind, classic = seed.choice(KINDS), seed.choice(("eager", "cooperative"))
    statics, version = seed.choice((0.0, 0.0, 0.5, 1.0)), seed.choice((3, 5, 9, 99))
    seats = []
    for number in range(seed.randint(2, 4)):
        name = f"g{group}m{number}"
        is_static = seed.random() < statics and version >= 5
        seat = Seat(
            group=f"g{group}",
            name=name,
            kind=("consumer", classic)[number % 2] if kind == "migrating" else kind,
            instance_id=f"i-{name}" if is_static else None,
            topics=seed.choice((("t",), ("t",), ("t", "u"))),
            session_ms=SESSION_MS,
            rebalance_ms=rebalance_ms,
            heartbeat_ms=seed.choice((500, 1000)),
            join_version=version,
        )
        seats.append(seat)
    return seats
