"""A table with one row per key, loaded without a broker and Spark: by what a load's tasks and its driver do."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow

from moldau.names import TopicPartition
from moldau.pipeline.loading.decoding import ValueDecoder
from moldau.pipeline.loading.merging import Staged, upsert
from moldau.pipeline.loading.settings import Commit
from moldau.pipeline.loading.target import Target
from moldau.pipeline.loading.writing import TopicWriter
from moldau.pipeline.tables.columns import in_files, of_table
from moldau.pipeline.tables.committing import LoadedWarehouse
from moldau.pipeline.tables.iceberg_table import IcebergTable
from moldau.pipeline.tables.warehouse import Warehouse


class Sent(NamedTuple):
    """A record of a partition."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    time_ms: int


def fetched(records: Sequence[Sent]) -> Any:
    """A batch as it comes from a broker."""
    columns = {
        "value": pyarrow.array([one.value for one in records], pyarrow.binary()),
        "_key": pyarrow.array([one.key for one in records], pyarrow.binary()),
        "_partition": pyarrow.array([one.partition for one in records], pyarrow.int32()),
        "_offset": pyarrow.array([one.offset for one in records], pyarrow.int64()),
        "_timestamp": pyarrow.array([one.time_ms * 1000 for one in records], pyarrow.timestamp("us", "UTC")),
        "_timestamp_type": pyarrow.array([0] * len(records), pyarrow.int32()),
    }
    headers = [[{"key": "h", "value": b"%d" % one.offset}] if one.offset % 2 else None for one in records]
    columns["_headers"] = pyarrow.array(headers, in_files().field("_headers").type)
    names = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")
    ours = ("_key", "value", "_partition", "_offset", "_timestamp", "_timestamp_type", "_headers")
    return pyarrow.RecordBatch.from_arrays([columns[name] for name in ours], names=list(names))


class Upserted:
    """The table of topic `t` in a warehouse, with partitions 0 to 2."""

    def __init__(self, of: Path | LoadedWarehouse, decoder: ValueDecoder | None = None, partition_by: str = "none"):
        self.warehouse: LoadedWarehouse = Warehouse(of) if isinstance(of, Path) else of
        self._decoder, self._partition_by = decoder, partition_by
        self.keys = tuple(decoder.keys.names) if decoder and decoder.keys else ("_key",)
        self._columns = in_files(decoder.schema, decoder.keys) if decoder else in_files()

    def table(self) -> Any:
        return self.warehouse.create("t", of_table(self._columns, self._partition_by), self._partition_by, self.keys)

    def stage(self, portions: Sequence[Sequence[Sequence[Sent]]]) -> tuple[Staged, str]:
        """What tasks write of these portions, each of which is fetched in batches."""
        load_id, staged = uuid.uuid4().hex[:12], Staged([], [])
        for number, batches in enumerate(portions):
            target = Target(
                "t", "", "", load_id, "lz4", self.table().where, self.warehouse.place_of_rejected("t"),
                self._partition_by, self._decoder, {}, table_format=self.table().table_format, key_columns=self.keys,
            )  # fmt: skip
            writer = TopicWriter(target, f"part-{number}-{load_id}-0")
            for batch in batches:
                writer.add(fetched(batch))
            written = writer.finish()
            staged = Staged([*staged.files, *written.files], [*staged.tombstones, *written.tombstones])
            self.rejected = written.rejected
        return staged, load_id

    def load(self, *portions: Sequence[Sequence[Sent]], table: Any = None) -> Commit:
        """One load of these portions."""
        staged, load_id = self.stage(portions)
        table = table or self.table()
        sent = [one for batches in portions for batch in batches for one in batch]
        start = table.offsets([TopicPartition("t", number) for number in range(3)])
        end: dict[TopicPartition, int] = {}
        for one in sent:
            tp = TopicPartition("t", one.partition)
            end[tp] = max(end.get(tp, 0), one.offset + 1)
        return upsert(table, load_id, staged, start, end, {}, "lz4")

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        names = columns or ("_key", "value", "_partition", "_offset")
        table = self.table()
        there = table.scan().to_arrow() if isinstance(table, IcebergTable) else table.dataset().to_table()
        found = there.select(list(names)).to_pydict()
        return sorted(zip(*found.values(), strict=True), key=repr)


def expected(records: Sequence[Sent], before: Mapping[bytes, Sent] | None = None) -> dict[bytes, Sent]:
    """The newest record of each key, that deletes it or not, after a load of these records."""
    of_partitions: dict[bytes, dict[int, Sent]] = {key: {one.partition: one} for key, one in (before or {}).items()}
    for one in sorted(records, key=lambda one: (one.partition, one.offset)):
        assert one.key is not None
        of_partitions.setdefault(one.key, {})[one.partition] = one
    found = {
        key: max(some.values(), key=lambda one: (one.time_ms, one.partition)) for key, some in of_partitions.items()
    }
    return {key: one for key, one in found.items() if one.value is not None}
