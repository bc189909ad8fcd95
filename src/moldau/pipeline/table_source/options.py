"""Parses and checks the options of a read of a table. Pure.

Time travel has Delta's names. Names of options are not case-sensitive; those of a store, after `storage.`, are passed
on in upper case, as which the `deltalake` package documents them.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.pipeline.options import KAFKA, OptionError, boolean, positive, refuse_unknown
from moldau.pipeline.tables.storage import Location, location

TABLE = ("table", "path")
NAMES = (*TABLE, "versionAsOf", "timestampAsOf", "columns", "minPartitions", "filterPushdown")
STORAGE = "storage."


@dataclass(frozen=True)
class TableOptions:
    """The parsed options; picklable, because Spark sends them to the workers. `columns` None are all."""

    where: Location
    version: int | None = None
    time: datetime.datetime | None = None
    columns: tuple[str, ...] | None = None
    partitions_min: int = 1
    filter_pushdown: bool = False


def read_table_options(given: Mapping[str, str]) -> TableOptions:
    """Parse the options that Spark passes. Raises `OptionError` for the first wrong one."""
    values = {name.lower(): str(value).strip() for name, value in given.items()}
    store = {name.removeprefix(STORAGE).upper(): value for name, value in values.items() if name.startswith(STORAGE)}
    rest = {name: value for name, value in values.items() if not name.startswith(STORAGE)}
    refuse_unknown("table source", rest, NAMES)
    for name in rest:
        if name.startswith(KAFKA):
            raise OptionError(f"Option {name} has no meaning here: a table is read without a broker.")
    places = {rest[name] for name in TABLE if name in rest}
    if len(places) > 1:
        raise OptionError("Option table and the path given to load() disagree; give one of them.")
    place = places.pop()
    if not place:
        raise OptionError("Option table is empty: it is the folder or URL of a table.")
    if "versionasof" in rest and "timestampasof" in rest:
        raise OptionError("Options versionAsOf and timestampAsOf exclude each other; give one of them.")
    return TableOptions(
        location(place, store),
        _version(rest),
        _time(rest),
        _columns(rest),
        positive(rest, "minPartitions") or 1,
        boolean(rest, "filterPushdown", False),
    )


def _version(values: Mapping[str, str]) -> int | None:
    text = values.get("versionasof")
    if text is not None and not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise OptionError(f"Option versionAsOf is the number of a version, not {text!r}.")
    return None if text is None else int(text)


def _time(values: Mapping[str, str]) -> datetime.datetime | None:
    text = values.get("timestampasof")
    if text is None:
        return None
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"Option timestampAsOf is a date or a time such as 2024-02-29T12:00:00Z, not {text!r}."
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def _columns(values: Mapping[str, str]) -> tuple[str, ...] | None:
    if "columns" not in values:
        return None
    names = tuple(name.strip() for name in values["columns"].split(","))
    if len({name.lower() for name in names}) < len(names):
        raise OptionError("Option columns names a column twice.")
    return names
