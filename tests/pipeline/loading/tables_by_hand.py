"""Tables as a load leaves them, without a broker and without Spark: the driver's part and the writer of its tasks."""

import itertools
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from moldau.names import TopicPartition
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.loading.requeueing import Requeued, requeue
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.loading.tasks import PortionResult
from moldau.pipeline.loading.topic_tables import TopicTables
from moldau.pipeline.loading.writing import TopicWriter
from moldau.pipeline.tables.columns import HEADERS, REJECTED
from moldau.pipeline.tables.committing import LoadedTable, LoadedWarehouse
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from moldau.pipeline.tables.warehouse import Warehouse

TOPIC = "t"
PARTITIONS = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]
DAY_MS = 86_400_000
Row = tuple[int, int]


class Died(BaseException):
    """The process is gone."""


def fetched(partition: int, first: int, values: Sequence[bytes | None]) -> Any:
    """A batch as tasks fetch it; each record has a key, a header and a time of its own."""
    count = len(values)
    offsets = range(first, first + count)
    columns = {
        "key": pa.array([b"k%d" % offset for offset in offsets], pa.binary()),
        "value": pa.array(values, pa.binary()),
        "topic": pa.array([TOPIC] * count),
        "partition": pa.array([partition] * count, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array([offset * DAY_MS * 1000 for offset in offsets], pa.timestamp("us", "UTC")),
        "timestampType": pa.array([0] * count, pa.int32()),
        "headers": pa.array([[("h", b"%d" % offset)] if offset % 2 else None for offset in offsets], HEADERS),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


class ByHand:
    """A warehouse of one format, and the log of two partitions that is loaded into it."""

    def __init__(self, folder: Path, of: str):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.of = folder, of
        self.log: dict[int, list[bytes | None]] = {0: [], 1: []}
        self.topic_id: uuid.UUID | None = None
        self._ids = itertools.count()
        self._properties = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/w"}

    def warehouse(self) -> LoadedWarehouse:
        return IcebergWarehouse("test", self._properties, "lake") if self.of == "iceberg" else Warehouse(self.folder)

    def new_id(self) -> str:
        return f"id{next(self._ids):04d}"

    def produce(self, partition: int, *values: bytes | None) -> None:
        self.log[partition] += values

    def load(self, decoding: Decoding, **settings: Any) -> None:
        """What `Loader` does for one topic."""
        tables = TopicTables(TOPIC, self.warehouse(), Settings(decoding=decoding, **settings))
        self.load_into(tables, decoding)

    def load_into(self, tables: TopicTables, decoding: Decoding) -> None:
        tables.refresh(PARTITIONS, self.topic_id)
        tables.settle(self.new_id)
        known = None if tables.table is None else tables.table.columns
        decoder = decoder_of(TOPIC, decoding, lambda: self._new(tables), known)
        tables.check(decoder)
        load_id = self.new_id()
        target = tables.target("", load_id, decoder)
        writer, ends = TopicWriter(target, f"part-{load_id}"), {}
        for partition, values in self.log.items():
            start = tables.loaded.get(TopicPartition(TOPIC, partition), 0)
            if start < len(values):
                writer.add(fetched(partition, start, values[start:]))
                ends[TopicPartition(TOPIC, partition)] = len(values)
        if ends:
            tables.commit(load_id, [PortionResult(0, *writer.finish())], ends)

    def _new(self, tables: TopicTables) -> list[Sampled]:
        """The values that were not loaded yet."""
        return [
            Sampled(value, partition, at)
            for partition, values in self.log.items()
            for at, value in enumerate(values)
            if value is not None and at >= tables.loaded.get(TopicPartition(TOPIC, partition), 0)
        ]

    def requeue(self, decoding: Decoding, *, dry_run: bool = False) -> Requeued:
        return requeue(self.warehouse(), TOPIC, decoding, self.new_id, "lz4", dry_run=dry_run)

    def table(self) -> LoadedTable:
        found = self.warehouse().table(TOPIC)
        assert found is not None
        return found

    def quarantine(self) -> LoadedTable:
        found = self.warehouse().rejected(TOPIC)
        assert found is not None
        return found

    def loaded_rows(self) -> list[dict[str, Any]]:
        """The rows of the topic's table, by partition and offset."""
        found: Any = self.table()
        rows = (found.dataset().to_table() if self.of == "delta" else found.scan().to_arrow()).to_pylist()
        return sorted(rows, key=lambda row: (row["_partition"], row["_offset"]))

    def rejected_rows(self, *names: str) -> list[tuple[Any, ...]]:
        names = ("_partition", "_offset", *names)
        quarantine, columns = self.quarantine(), pa.schema([REJECTED.field(name) for name in names])
        batches = [batch for file in quarantine.live_files() for batch in quarantine.rows_of(file, columns)]
        return sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist())

    def check_each_record_once(self) -> tuple[set[Row], set[Row]]:
        """The records of the table, and those in quarantine; together all, and none twice."""
        loaded = [(row["_partition"], row["_offset"]) for row in self.loaded_rows()]
        rejected = self.rejected_rows()
        every = [(partition, at) for partition, values in self.log.items() for at in range(len(values))]
        assert sorted([*loaded, *rejected]) == sorted(every)
        return set(loaded), set(rejected)
