"""The event times and places of records in a tier, on columns."""

import pyarrow as pa

from moldau.pipeline.audit.tiers import PLACES, places_of, times_of
from moldau.records.arrow import HEADERS, TIMESTAMP
from moldau.records.columns import record_hash

BY_PRODUCER, BY_BROKER = 0, 1


def test_the_header_counts_only_where_the_broker_wrote_the_timestamp() -> None:
    """Records of both kinds are in one batch after the topic's setting was changed."""
    said = [{"key": "audit.timestamp", "value": b"5"}]
    kinds = pa.array([BY_PRODUCER, BY_BROKER, BY_BROKER], pa.int32())
    times = pa.array([7_000, 8_000, 9_000], TIMESTAMP)
    headers = pa.array([said, said, []], HEADERS)
    assert times_of(kinds, times, headers).cast(pa.int64()).to_pylist() == [7_000, 5_000, 9_000]
    assert times_of(kinds.slice(0, 1), times.slice(0, 1), headers.slice(0, 1)) == times.slice(0, 1)


def test_places_are_those_of_records_in_the_windows_also_before_1970() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array([b"a", None, b"c", b"d", b"e"], pa.binary()),
            "value": pa.array([b"1", b"2", None, b"4", b"5"], pa.binary()),
            "partition": pa.array([0, 1, 2, 3, 4], pa.int32()),
            "offset": pa.array([5, 6, 7, 8, 9], pa.int64()),
        }
    )
    times = pa.array([-10_000_001, -10_000_000, -1, 0, 9_999_999], TIMESTAMP)
    found = places_of(batch, ("key", "value", "partition", "offset"), times, 10_000, [-10_000, 0])
    assert found.schema == PLACES
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (-10_000, 1, 6, -10_000_000, record_hash(None, b"2")),
        (-10_000, 2, 7, -1, record_hash(b"c", None)),
        (0, 3, 8, 0, record_hash(b"d", b"4")),
        (0, 4, 9, 9_999_999, record_hash(b"e", b"5")),
    ]
