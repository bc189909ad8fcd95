"""Times outside of the years 1 to 9999, which brokers may take, stop no load."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from moldau.pipeline.decoding.choosing import Decoding
from tests.pipeline.loading import tables_by_hand
from tests.pipeline.loading.tables_by_hand import ByHand

US = pa.timestamp("us", "UTC")
FAR = [(2**63 - 1) // 1000 * 1000, 5, -62_135_596_800_001_000, 253_402_300_800_000_000, -1_000]
"""Microseconds: the latest that a column holds, before the year 1, the year 10000."""


@pytest.mark.parametrize(("of", "partition_by"), [("delta", "date"), ("iceberg", "date"), ("iceberg", "none")])
def test_far_times_are_loaded_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str, partition_by: str
) -> None:
    made = tables_by_hand.fetched

    def fetched(partition: int, first: int, values: list[bytes | None]) -> Any:
        batch = made(partition, first, values)
        times = pa.array(FAR[first : first + len(values)], pa.int64()).cast(US)
        return batch.set_column(batch.schema.get_field_index("timestamp"), "timestamp", times)

    monkeypatch.setattr(tables_by_hand, "fetched", fetched)
    lake = ByHand(tmp_path, of)
    lake.produce(0, b"0", b"1", b"2")
    lake.load(Decoding(), partition_by=partition_by)
    lake.produce(0, b"3", b"4")
    lake.load(Decoding(), partition_by=partition_by)
    table: Any = lake.table()
    rows = (table.dataset().to_table() if of == "delta" else table.scan().to_arrow()).sort_by("_offset")
    assert rows["_timestamp"].cast(pa.int64()).to_pylist() == FAR
    if of == "iceberg":
        assert table._iceberg.properties["write.metadata.metrics.column._timestamp"] == "full", "of later commits"
