"""One Parquet file of a table: where it lies, what it holds, and how the table's log describes it. Pure.

The statistics let readers skip files: number of records, and least and greatest `_partition`, `_offset` and
`_timestamp`. Delta keeps times in milliseconds, so the greatest one is rounded up.
"""

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

TableFormat = Literal["delta", "iceberg"]

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
EPOCH_ORDINAL = EPOCH.date().toordinal()
DAYS_OF_CALENDAR = range(1 - EPOCH_ORDINAL, datetime.date.max.toordinal() - EPOCH_ORDINAL + 1)
US_PER_DAY = 86_400_000_000
ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")  # as Spark's ExternalCatalogUtils.escapePathName
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what Hive, Spark, pyarrow and DuckDB read as null in a folder's name


class Bounds(NamedTuple):
    """The least and the greatest value of a column; times are in microseconds since 1970."""

    least: int
    greatest: int

    def and_also(self, other: "Bounds") -> "Bounds":
        return Bounds(min(self.least, other.least), max(self.greatest, other.greatest))


@dataclass(frozen=True)
class DataFile:
    """A finished file. `path` is relative to the table; `partition_values` are those of the partition columns."""

    path: str
    bytes: int
    modified_ms: int
    partition_values: Mapping[str, str | None]
    records: int
    bounds: Mapping[str, Bounds]


class LiveFile(NamedTuple):
    """A data file of the newest version of a table. `path` names it in that table, `source` is what the table reads its
    rows by. `has_deleted_rows`: another tool has deleted some by a file beside it (Iceberg's delete files)."""

    path: str
    records: int
    partition_values: Mapping[str, str | None]
    source: Any
    has_deleted_rows: bool = False


def folder_of(partition_values: Mapping[str, str | None]) -> str:
    """The folder of a file, relative to its table; empty for a table without partition columns. Characters that Hive
    and Spark do not write in names of folders are escaped."""
    return "/".join(
        f"{_escaped(name)}={NO_VALUE if value is None else _escaped(value)}" for name, value in partition_values.items()
    )


def _escaped(text: str) -> str:
    return ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def statistics(file: DataFile) -> str:
    """The statistics of a file as the table's log has them."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for name, bounds in file.bounds.items():
        if name != "_timestamp":
            least[name], greatest[name] = bounds
        elif in_calendar(bounds.least) and in_calendar(bounds.greatest + 999):
            least[name], greatest[name] = _iso(bounds.least // 1000), _iso(-(-bounds.greatest // 1000))
    return json.dumps(
        {
            "numRecords": file.records,
            "minValues": least,
            "maxValues": greatest,
            "nullCount": dict.fromkeys(file.bounds, 0),
        }
    )


def in_calendar(time_us: int) -> bool:
    """Whether a time has a date: the years 1 to 9999."""
    return time_us // US_PER_DAY in DAYS_OF_CALENDAR


def _iso(time_ms: int) -> str:
    return (EPOCH + datetime.timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
