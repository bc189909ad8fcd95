"""What the demo has left: the bytes of each stage, the columns and first rows of each table, and what lies where."""

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as compute

from moldau.demo import schemas
from moldau.demo.flights import Events
from moldau.pipeline.tables.warehouse import Warehouse

ROWS = 5
REGISTRY_PORT = 8081
REGISTRY = f"http://localhost:{REGISTRY_PORT}"
"""Where the registry is if the commands of the page are run."""


@dataclass(frozen=True)
class StageBytes:
    """The bytes of one stage, and the number of its files if it has any."""

    name: str
    bytes: int
    files: int = 0


@dataclass(frozen=True)
class Preview:
    """A table: its columns with their types, and its first rows as text."""

    topic: str
    rows: int
    files: int
    columns: Sequence[tuple[str, str]]
    first: Sequence[Sequence[str]]


@dataclass(frozen=True)
class DemoFolders:
    """Where everything is, and the command to start it with."""

    folder: Path
    command: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def mirror(self) -> Path:
        return self.folder / "mirror"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def decoded(self) -> Path:
        return self.folder / "decoded"


def places(folder: Path) -> DemoFolders:
    """The places of a demo in `folder`, with the `moldau` of the running Python."""
    return DemoFolders(folder, Path(sys.executable).parent / "moldau")


def commands(of: DemoFolders, topics: Sequence[str]) -> list[tuple[str, str]]:
    """Commands for a shell, each with what it does; the first one starts the broker and a registry, on which the others
    call."""
    moldau, names = shlex.quote(str(of.command)), ",".join(topics)
    mirror, warehouse, decoded = (shlex.quote(str(path)) for path in (of.mirror, of.warehouse, of.decoded))
    registry = f"--schema-registry {REGISTRY}"
    decode = f"--warehouse {decoded} --decode avro {registry} --event-time time_hour"
    return [
        (
            "Start the mirror again on its log, with a schema registry",
            f"{moldau} server start --data-dir {mirror} --registry-port {REGISTRY_PORT}",
        ),
        ("Read five flights", f"{moldau} consume flights --from-beginning --max-messages 5 {registry}"),
        ("The schema of flights", f"{moldau} schemas get {schemas.subject('flights')} {registry}"),
        ("Load what is new", f"{moldau} pipeline load --topics {names} --warehouse {warehouse}"),
        ("Load what is new, decoded", f"{moldau} pipeline load --topics flights,weather {decode}"),
        ("Audit mirror and tables", f"{moldau} pipeline audit --topics {names} --warehouse {warehouse} --window 1d"),
        ("Versions of a table", f"{moldau} pipeline history {shlex.quote(str(of.decoded / 'flights'))}"),
    ]


def stored(topics: Iterable[Events], of: DemoFolders) -> list[StageBytes]:
    """The bytes of keys and values, of the broker's log, and of both kinds of tables."""
    topics = list(topics)
    raw = sum(
        compute.sum(compute.binary_length(events.columns[name])).as_py() or 0
        for events in topics
        for name in ("key", "value")
    )
    logs, mirrored = (
        [path for events in topics for path in place.glob(f"{events.topic}-*/*.log")] for place in (of.data, of.mirror)
    )
    return [
        StageBytes("Produced: keys and values", raw),
        StageBytes("Broker's log on disk (LZ4)", sum(path.stat().st_size for path in logs), len(logs)),
        StageBytes("Its mirror", sum(path.stat().st_size for path in mirrored), len(mirrored)),
        _tables("Tables of values as produced (Parquet, LZ4)", Warehouse(of.warehouse)),
        _tables("Tables of decoded columns (Parquet, LZ4)", Warehouse(of.decoded)),
    ]


def previews(warehouse: Warehouse, topics: Iterable[str]) -> list[Preview]:
    """The tables of these topics."""
    shown = []
    for topic in topics:
        table = warehouse.table(topic)
        if table is None:
            continue
        dataset, files = table.dataset(), table.files()
        rows = dataset.head(ROWS).to_pylist()
        columns = [(field.name, str(field.type)) for field in dataset.schema]
        first = [[_text(row[name]) for name, _ in columns] for row in rows]
        shown.append(Preview(topic, sum(file.records for file in files), len(files), columns, first))
    return shown


def unnamed_destinations(warehouse: Warehouse) -> tuple[int, list[str]]:
    """The number of flights to airports that the table of airports does not name, and the codes of these airports."""
    flights, airports = warehouse.table("flights"), warehouse.table("airports")
    if flights is None or airports is None:
        return 0, []
    to = flights.dataset().to_table(columns=["dest"])["dest"]
    named = airports.dataset().to_table(columns=["faa"])["faa"]
    unnamed = to.filter(compute.invert(compute.is_in(to, value_set=named.combine_chunks())))
    return len(unnamed), sorted(unnamed.unique().to_pylist())


def _tables(name: str, warehouse: Warehouse) -> StageBytes:
    tables = [warehouse.table(topic) for topic in warehouse.topics()]
    files = [file for table in tables if table for file in table.files()]
    return StageBytes(name, sum(file.bytes for file in files), len(files))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
