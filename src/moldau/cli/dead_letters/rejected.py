"""`moldau pipeline rejected`: the records that loads could not decode, out of a warehouse; it needs no Spark."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from moldau.cli.command_line import Option, UsageError
from moldau.cli.options import Json, StorageOption
from moldau.cli.output import named_content, note, print_json, print_table, time_text
from moldau.cli.pipeline_load import (
    CatalogOption,
    CatalogProperty,
    FormatOption,
    Namespace,
    WarehouseOption,
    open_tables,
)
from moldau.cli.pipeline_needs import need
from moldau.errors import ConfigError

if TYPE_CHECKING:
    from moldau.pipeline.tables.committing import LoadedWarehouse

RecordsToo = Annotated[bool, Option("--records", help="Print each record as a line of JSON, with the reason.")]


def rejected(
    topics: Annotated[str, Option(metavar="TOPIC,...", help="The topics, separated by commas.")],
    warehouse: WarehouseOption = "",
    records: RecordsToo = False,
    max_messages: Annotated[
        int | None, Option("--max-messages", "-n", min=1, help="With --records: stop after this number.")
    ] = None,
    storage_option: StorageOption = None,
    table_format: FormatOption = "delta",
    catalog: CatalogOption = "",
    catalog_property: CatalogProperty = None,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """
    Count the records that loads rejected, by rule and field, or print them. `moldau pipeline requeue` decodes them
    again.

    Examples:

      moldau pipeline rejected --topics clicks --warehouse w

      moldau pipeline rejected --topics clicks --warehouse w --records -n 10
    """
    if max_messages is not None and not records:
        raise UsageError("--max-messages needs --records")
    need("pyarrow", "deltalake", extra="lake")
    names = list(dict.fromkeys(name.strip() for name in topics.split(",") if name.strip()))
    if not names:
        raise ConfigError("--topics names no topic")
    tables, _ = open_tables(table_format, warehouse, storage_option, catalog, catalog_property, namespace)
    found = (row for topic in names for row in _rows(tables, topic))
    if records:
        _print_records(found, max_messages)
        return
    counts = _counted(found)
    if as_json:
        print_json(counts)
    else:
        headers = ["TOPIC", "RULE", "FIELD", "RECORDS", "FIRST", "LAST", "REASON"]
        print_table(headers, [[*row.values()] for row in counts])


def _rows(tables: "LoadedWarehouse", topic: str) -> Iterator[dict[str, Any]]:
    """The rejected records of a topic, each with its topic."""
    from moldau.pipeline.tables.columns import REJECTED

    table = tables.rejected(topic)
    if table is None:
        note(f"no record of topic {topic} was ever rejected")
        return
    for file in table.live_files():
        for batch in table.rows_of(file, REJECTED):
            yield from ({**row, "_topic": topic} for row in batch.to_pylist())


def _counted(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    counts: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        at = _time(row)
        key = (row["_topic"], row["rule"], row["field"])
        known = counts.get(key)
        if known is None:
            names = dict(zip(("topic", "rule", "field"), key, strict=True))
            counts[key] = {**names, "records": 1, "first": at, "last": at, "reason": row["reason"]}
        else:
            known["records"] += 1
            known["last"] = max(known["last"], at)
            if at < known["first"]:
                known["first"], known["reason"] = at, row["reason"]
    return sorted(counts.values(), key=lambda one: (one["topic"], -one["records"]))


def _print_records(rows: Iterator[dict[str, Any]], most: int | None) -> None:
    from moldau.cli.consuming.formats import json_text

    for number, row in enumerate(rows, 1):
        line = {
            "topic": row["_topic"],
            "partition": row["_partition"],
            "offset": row["_offset"],
            "timestamp": _time(row),
            **{name: row[name] for name in ("rule", "field", "reason")},
            **dict([named_content("key", row["_key"]), named_content("value", row["value"])]),
        }
        sys.stdout.buffer.write(json_text(line) + b"\n")
        if number == most:
            break


def _time(row: dict[str, Any]) -> str:
    at = row["_timestamp"]
    return "-" if at is None else time_text(int(at.timestamp() * 1000))
