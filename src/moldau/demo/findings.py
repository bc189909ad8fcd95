"""Computes the report's numbers from the streams' answers: by hour, day, carrier, weather class and destination.

Pure: rows in, tables out. Means are over flights that departed; a share is a fraction of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

FindingRow = Mapping[str, Any]


class Delay(NamedTuple):
    """The delays of one group of flights."""

    name: str
    flights: int
    departed: int
    mean_minutes: float
    delayed_share: float


def departures_by_hour(rows: Iterable[FindingRow]) -> dict[str, list[float]]:
    """For each airport the mean scheduled departures in each hour (0-23) of a local day."""
    rows = list(rows)
    days = len({row["day"] for row in rows}) or 1
    totals: dict[str, list[float]] = {origin: [0.0] * 24 for origin in sorted({row["origin"] for row in rows})}
    for row in rows:
        totals[row["origin"]][row["hour"]] += row["departures"]
    return {origin: [count / days for count in hours] for origin, hours in totals.items()}


def departures_by_day(rows: Iterable[FindingRow]) -> list[tuple[str, int, int]]:
    """Day, scheduled departures of all airports, and how many of them were cancelled; in order."""
    days: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        days[row["day"]][0] += row["departures"]
        days[row["day"]][1] += row["cancelled"]
    return [(day, *days[day]) for day in sorted(days)]  # type: ignore[misc]


def delays_by(rows: Iterable[FindingRow], column: str, order: Sequence[str] = ()) -> list[Delay]:
    """Delays grouped by one column of the join; in the order given, or the longest mean first. Nulls are left out."""
    groups: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0, 0])
    for row in rows:
        if row[column] is None:
            continue
        group = groups[row[column]]
        for at, name in enumerate(("flights", "departed", "delay_minutes", "delayed")):
            group[at] += row[name] or 0
    delays = [
        Delay(name, int(flights), int(departed), minutes / max(1, departed), late / max(1, departed))
        for name, (flights, departed, minutes, late) in groups.items()
    ]
    if order:
        return sorted(delays, key=lambda delay: order.index(delay.name))
    return sorted(delays, key=lambda delay: (-delay.mean_minutes, delay.name))


def without(rows: Iterable[FindingRow], column: str) -> int:
    """The number of flights for which the join found no value of this column."""
    return sum(row["flights"] for row in rows if row[column] is None)
