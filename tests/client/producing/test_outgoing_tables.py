"""What `send_table` makes of a table: the columns of records, without copying what Arrow has already."""

import pyarrow as pa

from moldau.client.producing import columnar
from moldau.client.producing.outgoing import BY_NAME
from moldau.client.producing.outgoing_tables import columns_of_table
from moldau.records.rows import iterate


def columns_of(table: pa.Table) -> columnar.RecordColumns:
    return columns_of_table(table, BY_NAME, BY_NAME, BY_NAME, BY_NAME, BY_NAME, None, None, now_ms=5)


def test_bytes_of_a_table_are_not_copied() -> None:
    values = pa.array([b"%d" % row for row in range(100)], pa.binary())
    one = columns_of(pa.table({"value": values, "key": values}).slice(1))
    assert one.values.buffers()[2].address == one.keys.buffers()[2].address == values.buffers()[2].address
    chunks = columns_of(pa.table({"value": pa.chunked_array([values, values])})).values
    assert [chunk.buffers()[2].address for chunk in chunks.chunks] == [values.buffers()[2].address] * 2


def test_batches_reach_across_the_chunks_of_a_table() -> None:
    rows = [b"row %d" % row for row in range(1_000)]
    chunked = pa.chunked_array([rows[at : at + 7] for at in range(0, len(rows), 7)], pa.binary())
    for table in (pa.table({"value": chunked}), pa.table({"value": chunked, "key": chunked})):
        batches = list(columnar.encoded_batches(columns_of(table), 2, lambda _: 0, batch_bytes=2_000, codec=0))
        found = [record.value or b"" for batch in batches for record in iterate(batch.data, check_crcs=False)]
        assert sorted(found) == sorted(rows)
        assert max(batch.rows for batch in batches) > 7
