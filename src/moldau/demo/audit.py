"""The demo's books: the numbers of records in the source, produced, stored, loaded and decoded, for each topic and
month.

Each number is counted independently of the code that wrote the records: the log is read back from the broker; a
table is read by pyarrow from the files that its log names, and compared with the counts in that log. The month is the
`month` field inside the value, not the event date. A sum of 64-bit hashes of key and value stands beside each number,
so that one lost and one doubled record do not balance. Decoded tables no longer have the values: there each partition
and offset counts, once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.client.fetching import read_columns
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.demo import schemas
from moldau.errors import MoldauError
from moldau.pipeline.audit.tiers import add_columns
from moldau.pipeline.decoding.avro_values import AvroValues
from moldau.pipeline.options import TopicSelection
from moldau.pipeline.positions import earliest, latest, subscribed
from moldau.pipeline.ranges import between
from moldau.pipeline.tables.warehouse import Warehouse
from moldau.records.digests import MASK, Rows, digest_of

COLUMNS = ("source", "produced", "stored", "loaded", "decoded")
WHOLE_MS = 1 << 52
"""The length of a window that holds all records of 2013."""


class Unbalanced(MoldauError):
    """The books do not balance; the text names the first differences."""


@dataclass(frozen=True)
class Count:
    """The total number of records, the numbers by month if the values have one, and the sum of the records' hashes."""

    records: int = 0
    months: Mapping[int, int] = field(default_factory=dict)
    hash_sum: int = 0


@dataclass(frozen=True)
class Book:
    """One topic's counts under each of `COLUMNS`."""

    topic: str
    source: Count
    produced: Count
    stored: Count
    loaded: Count
    decoded: Count

    def differences(self) -> list[str]:
        """A sentence for each total or month in which a column differs from the source, and for a column that has as
        many records but not the same."""
        sentences = []
        for column in COLUMNS[1:]:
            count: Count = getattr(self, column)
            if count.records != self.source.records:
                sentences.append(f"{self.topic}: {self.source.records:,} in the source, {count.records:,} {column}.")
            elif column != "decoded" and count.hash_sum != self.source.hash_sum:
                sentences.append(f"{self.topic}: as many records {column} as in the source, but not the same ones.")
            for month in sorted({*self.source.months, *count.months}):
                expected, there = self.source.months.get(month, 0), count.months.get(month, 0)
                if expected != there:
                    sentences.append(f"{self.topic}, month {month}: {expected:,} in the source, {there:,} {column}.")
        return sentences

    def to_tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {column: getattr(self, column).records for column in COLUMNS}
        if self.source.months:
            tree["months"] = {
                str(month): {column: getattr(self, column).months.get(month, 0) for column in COLUMNS}
                for month in sorted(self.source.months)
            }
        return tree


class MonthReader:
    """Reads the months in a topic's Avro values, with the schema that the registry has."""

    def __init__(self, registry: SchemaRegistry, topic: str):
        self._values = AvroValues(registry, registry.version(schemas.subject(topic)).schema)
        self._at = self._values.schema.get_field_index("month")

    def count(self, values: Any) -> dict[int, int]:
        """How many of the values have which month; empty for tables."""
        if self._at < 0:
            return {}
        months = self._values.found(values.drop_null()).columns[self._at]
        return {pair["values"]: pair["counts"] for pair in months.value_counts().to_pylist()}


def count_log(bootstrap: str, topic: str, months: MonthReader) -> Count:
    """Read the topic back from the broker, all partitions from first to last offset."""
    partitions = subscribed(bootstrap, TopicSelection(topics=(topic,)))
    parts = between(earliest(bootstrap, partitions), latest(bootstrap, partitions))
    return _count(
        (
            batch.select(["key", "value", "timestamp"])
            for part in parts
            for batch in read_columns(bootstrap, part.topic, part.partition, part.start, part.end)
        ),
        months,
    )


def count_table(warehouse: Warehouse, topic: str, months: MonthReader) -> Count:
    """Read the topic's table with pyarrow; each record's partition and offset must be there once."""
    table = warehouse.table(topic)
    if table is None:
        return Count()
    rows = table.dataset().to_table(columns=["_key", "value", "_timestamp", "_partition", "_offset"])
    _check_places(topic, rows)
    return _count(rows.select(["_key", "value", "_timestamp"]).to_batches(), months)


def count_decoded(warehouse: Warehouse, topic: str) -> Count:
    """Read the places and months of the topic's table of decoded columns; each partition and offset must be there
    once."""
    table = warehouse.table(topic)
    if table is None:
        return Count()
    dataset = table.dataset()
    dated = [name for name in ("month",) if name in dataset.schema.names]
    rows = dataset.to_table(columns=["_partition", "_offset", *dated])
    _check_places(topic, rows)
    months = {pair["values"]: pair["counts"] for name in dated for pair in rows[name].value_counts().to_pylist()}
    return Count(rows.num_rows, dict(sorted(months.items())))


def count_described(warehouse: Warehouse, topic: str) -> int:
    """The number of records by the statistics in the log of the topic's table."""
    table = warehouse.table(topic)
    return sum(file.records for file in table.files()) if table else 0


def hash_sum(batches: Iterable[Any]) -> int:
    """The sum of the records' hashes, modulo 2^64. The first three columns are key, value and time."""
    rows: Rows = {}
    for batch in batches:
        keys, values, times = batch.columns[:3]
        add_columns(rows, keys, values, times, WHOLE_MS)
    return sum(digest_of(row).hash_sum for row in rows.values()) & MASK


def _check_places(topic: str, rows: Any) -> None:
    """Raise `Unbalanced` if a partition and offset is there more than once."""
    places = rows.group_by(["_partition", "_offset"]).aggregate([])
    if places.num_rows != rows.num_rows:
        raise Unbalanced(f"{topic}: {rows.num_rows - places.num_rows:,} records are in the table more than once.")


def _count(batches: Iterable[Any], reader: MonthReader) -> Count:
    """Count batches with the columns key, value and time."""
    records, months, hashes = 0, Counter[int](), 0
    for batch in batches:
        records += batch.num_rows
        hashes += hash_sum([batch])
        months.update(reader.count(batch.column("value")))
    return Count(records, dict(sorted(months.items())), hashes & MASK)
