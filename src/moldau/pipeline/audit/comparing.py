"""Compares the places of a window's records in two tiers, and names those that are missing or doubled. Pure: tables in,
values out.

Tables have the columns `PLACES` of `tiers.py`. A tier that holds the origin's partitions and offsets is compared by
them, such as a warehouse or a mirror of `moldau mirror`. Other mirrors have offsets of their own, so there equal
records count as one another: if a window has two records of one key and value and the mirror has one, it is the later
one that is called missing.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute as compute

from moldau.names import counted

NAMED_MAX = 100
"""As many places are named of each difference; the others are counted."""
SAID_MAX = 5
ROWS = 4_096
MISSING, DOUBLED, ALTERED, REPEATED = "missing", "doubled", "altered", "repeated"
PLACE = ["partition", "offset"]


class Difference(NamedTuple):
    """How many records of a window are missing (doubled, ...), and the first `NAMED_MAX` of their places in one tier:
    partition and offset, in order."""

    kind: str
    records: int
    tier: str
    places: Sequence[tuple[int, int]]

    @property
    def where(self) -> str:
        """The first places in words. A row that another tool has added may have none."""
        if not self.places:
            return f"{counted(self.records, 'row')} without partition and offset in {self.tier}"
        by_partition: dict[int, list[str]] = {}
        for partition, offset in self.places[:SAID_MAX]:
            by_partition.setdefault(partition, []).append(str(offset))
        named = ", ".join(
            f"partition {partition} {'offset' if len(offsets) == 1 else 'offsets'} {', '.join(offsets)}"
            for partition, offsets in by_partition.items()
        )
        more = self.records - min(self.records, SAID_MAX, len(self.places))
        return f"{named}{f' and {more:,} more' if more else ''} in {self.tier}"

    def to_tree(self) -> dict[str, Any]:
        """The difference for programs."""
        places = [{"partition": partition, "offset": offset} for partition, offset in self.places]
        return {"kind": self.kind, "records": self.records, "tier": self.tier, "first_places": places}


def differences(origin: tuple[str, Any], tier: tuple[str, Any], *, of_origin: bool) -> list[Difference]:
    """How one window of a tier differs from the origin's, each with its name and table. With `of_origin`, the tier has
    the origin's partitions and offsets."""
    by = PLACE if of_origin else ["hash"]
    candidates = [_surplus(MISSING, origin, tier[1], by), _surplus(DOUBLED, tier, origin[1], by)]
    if of_origin:
        both = origin[1].join(tier[1].select([*PLACE, "hash"]), PLACE, join_type="inner", right_suffix="_there")
        differ = both.filter(compute.not_equal(both["hash"], both["hash_there"]))
        altered = _sorted(differ.group_by(PLACE).aggregate([]))
        candidates.append(Difference(ALTERED, altered.num_rows, origin[0], _places(altered.slice(0, NAMED_MAX))))
    return [difference for difference in candidates if difference.records]


def repeated(origin: tuple[str, Any]) -> list[Difference]:
    """The records of one window of the origin that have the key, the value and the time of another one."""
    surplus = _surplus(REPEATED, origin, None, ["hash", "time"])
    return [surplus] if surplus.records else []


def _surplus(kind: str, rows: tuple[str, Any], others: Any, by: list[str]) -> Difference:
    """The rows of a table beyond those of another one that have the same columns `by`; None has one of each."""
    name, table = rows
    counts = _counted(table, by, "here")
    if others is None:
        counts = counts.append_column("there", pyarrow.repeat(pyarrow.scalar(1, pyarrow.int64()), counts.num_rows))
    else:
        counts = counts.join(_counted(others, by, "there"), by, join_type="left outer")
        counts = counts.set_column(len(by) + 1, "there", compute.fill_null(counts["there"], 0))
    counts = counts.filter(compute.greater(counts["here"], counts["there"]))
    records = compute.sum(compute.subtract(counts["here"], counts["there"])).as_py() or 0
    joined = _sorted(table.join(counts.select([*by, "there"]), by, join_type="inner")) if records else table.slice(0, 0)
    places: list[tuple[int, int]] = []
    seen = Counter[tuple[Any, ...]]()
    for start in range(0, joined.num_rows, ROWS):
        for row in joined.slice(start, ROWS).to_pylist():
            key = tuple(row[column] for column in by)
            seen[key] += 1
            if seen[key] > row["there"]:
                places.append((row["partition"], row["offset"]))
            if len(places) == NAMED_MAX:
                return Difference(kind, records, name, places)
    return Difference(kind, records, name, places)


def _counted(table: Any, by: list[str], name: str) -> Any:
    return table.select(by).group_by(by).aggregate([([], "count_all")]).rename_columns([*by, name])


def _sorted(table: Any) -> Any:
    return table.sort_by([(column, "ascending") for column in PLACE])


def _places(table: Any) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in table.to_pylist()]
