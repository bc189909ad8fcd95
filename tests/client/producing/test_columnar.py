"""Columns become batches, partition by partition and portion by portion."""

from functools import partial

import pyarrow as pa
import pytest

from moldau.client.producing import columnar
from moldau.client.producing.partitioning import positive_hash
from moldau.records.rows import iterate


@pytest.mark.parametrize("portion_bytes", [100, columnar.SPLIT_BYTES])
def test_rows_of_each_partition_keep_their_order_through_all_portions(
    portion_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columnar, "SPLIT_BYTES", portion_bytes)
    monkeypatch.setattr(columnar, "SPLIT_BATCHES", 1)
    rows = range(3_000)
    keys = [None if row % 7 == 0 else b"k%d" % (row % 91) for row in rows]
    named = [row % 3 if row % 5 == 0 else -1 for row in rows]
    columns = columnar.RecordColumns(
        pa.array(keys, pa.binary()),
        pa.array([b"%d" % row for row in rows]),
        pa.array([5] * len(rows), pa.int64()),
        None,
        pa.array(named, pa.int32()),
    )
    found: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for batch in columnar.encoded_batches(columns, 3, lambda _: 2, batch_bytes=300, codec=0):
        found[batch.partition] += [int(record.value or b"") for record in iterate(batch.data, check_crcs=False)]
    expected: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for row, key, partition in zip(rows, keys, named, strict=True):
        chosen = partition if partition >= 0 else 2 if key is None else positive_hash(key) % 3
        expected[chosen].append(row)
    assert found == expected


@pytest.mark.parametrize("codec", range(5))
def test_batches_written_over_earlier_ones_are_equal(codec: int) -> None:
    values = pa.array([b"%d " % row * (1 + row % 50) for row in range(2_000)], pa.binary())
    columns = columnar.RecordColumns(None, values, pa.array([5] * len(values), pa.int64()), None, None)
    encode = partial(columnar.encoded_batches, columns, 1, lambda _: 0, batch_bytes=9_000, codec=codec)
    spare: list[bytearray] = []
    fresh = [bytes(batch.data) for batch in encode()]
    again: list[bytes] = []
    memory = set()
    for batch in encode(spare=lambda: spare.pop() if spare else None):
        again.append(bytes(batch.data))
        memory.add(id(batch.data))
        spare.append(batch.data)
    assert again == fresh and len(again) > 3
    assert len(memory) == 1
