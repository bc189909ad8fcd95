"""Batches filled record by record, compiled and interpreted: the same bytes as from rows encoded at once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.records.batch import HEADER_SIZE
from tests.records.columns_both_ways import each

CONTENTS = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2)
ROWS = st.lists(st.tuples(CONTENTS, CONTENTS, st.integers(-1, 1 << 62), HEADERS), min_size=1, max_size=20)
KEYS = [b"", b"k", b"N14228", b"0123456789abcdef"]
NOW_MS = 1_700_000_000_000


def told(*_: object) -> None:
    """A callback."""


@pytest.mark.parametrize("columns", each)
@given(rows=ROWS, room=st.integers(0, 70))
def test_records_added_one_by_one_are_those_of_rows_encoded_at_once(columns: Any, rows: list[Any], room: int) -> None:
    batch = columns.OpenBatch(room, room + 16)
    for index, (key, value, timestamp, headers) in enumerate(rows):
        block = columns.header_block(headers)
        size = columns.RECORD_SIZE_MAX + len(key or b"") + len(value or b"") + len(block)
        batch.grow(batch.filled + size)
        assert batch.put(key, value, timestamp, block, None) == index
    encoded, max_timestamp = columns.encode_rows(rows, rows[0][2], room)
    assert batch.filled == len(encoded)
    assert (batch.count, batch.base_timestamp, batch.max_timestamp) == (len(rows), rows[0][2], max_timestamp)
    assert batch.taken()[room:] == encoded[room:]


@pytest.mark.parametrize("columns", each)
def test_a_batch_that_is_full_or_sealed_or_of_another_time_takes_no_record(columns: Any) -> None:
    batch = columns.OpenBatch(HEADER_SIZE, HEADER_SIZE + 57)
    assert batch.put(None, b"x" * 50, -9, b"\0", None) == 0
    assert batch.put(None, None, -9, b"\0", None) == -1, "full"
    batch.grow(1_000)
    assert batch.put(None, None, (1 << 63) - 1, b"\0", None) == -1, "the difference has more than 64 bits"
    assert batch.put(None, None, 0, b"\0", None) == 1
    batch.seal()
    assert batch.put(None, None, 0, b"\0", None) == -1, "sealed"
    assert (batch.count, batch.filled) == (2, HEADER_SIZE + 57 + 7)


@pytest.mark.parametrize("columns", each)
def test_each_callback_hears_where_its_record_is_and_one_that_raises_stops_none(columns: Any) -> None:
    batch = columns.OpenBatch(0, 1_000)
    heard, raised = [], []

    def refuse(*_: object) -> None:
        raise ValueError("no")

    for timestamp, callback in enumerate((None, lambda *said: heard.append(said), None, refuse, heard.append, None)):
        batch.put(None, b"x", timestamp, b"\0", callback)
    columns.acknowledge(batch.callbacks, batch.timestamps, 70, -1, ("t", 3), list, lambda: raised.append(True))
    columns.acknowledge(batch.callbacks[:2], batch.timestamps, 70, 99, ("t", 3), list, raised.append)
    columns.acknowledge(batch.callbacks[:2], batch.timestamps, -1, -1, ("t", 3), list, raised.append)
    assert heard == [(None, ["t", 3, 71, 1]), (None, ["t", 3, 71, 99]), (None, ["t", 3, -1, 1])]
    assert raised == [True, True], "heard.append takes one argument"


def ways(columns: Any, *, plain: bool = True, hashes: bool = True, left: int = 0) -> Any:
    """The open batches of a topic with three partitions, one of which has none."""
    sticky = columns.StickyPartition()
    sticky.chosen, sticky.left = 1, left
    found = columns.OpenBatches(3, sticky, lambda: NOW_MS, columns.RecordPlace, plain, hashes)
    found.open = [columns.OpenBatch(0, 500), columns.OpenBatch(0, 500), None]
    return found


@pytest.mark.parametrize("columns", each)
def test_a_record_joins_the_open_batch_of_its_partition(columns: Any) -> None:
    topic = ways(columns, left=1_000)
    assert topic.put(b"x", None, None, None, (), None)._batch is topic.open[1]
    assert topic.sticky.left == 1_000 - columns.RECORD_SIZE_MAX - 1
    named = topic.put("text", b"key", 0, 7, {}, told)
    assert (named._batch, named._index, named._timestamp_ms) == (topic.open[0], 0, 7)
    assert (topic.open[0].callbacks, topic.open[0].timestamps) == ([told], [7])
    second = topic.put(None, None, 0, None, None, None)
    assert (second._index, second._timestamp_ms, topic.open[0].max_timestamp) == (1, NOW_MS, NOW_MS)
    for key in KEYS:
        found = topic.put(b"x", key, None, None, (), None)
        at = columns.positive_hash(key) % 3
        assert found is None if at == 2 else found._batch is topic.open[at]


@pytest.mark.parametrize("columns", each)
def test_a_record_that_needs_more_than_an_open_batch_is_left_to_the_caller(columns: Any) -> None:
    topic = ways(columns, left=1_000)
    nothing = (None, None, 0, None, (), None)
    wrong: list[tuple[int, list[object]]] = [
        (0, [5, bytearray(b"x"), [1]]), (1, [5, memoryview(b"x")]), (2, [-1, 2, 3, "0", True, 1 << 70]),
        (3, [-2, 1 << 63, 1.0, "0", True]), (4, [[("h", b"x")], {"h": b"x"}]),
    ]  # fmt: skip
    for place, values in wrong:
        for value in values:
            assert topic.put(*nothing[:place], value, *nothing[place + 1 :]) is None, (place, value)
    assert topic.put(b"x" * 500, *nothing[1:]) is None
    assert ways(columns, plain=False).put(*nothing) is None
    assert ways(columns, left=0).put(b"x", None, None, None, (), None) is None, "the sticky partition has had its share"
    assert ways(columns, left=0, hashes=False).put(b"x", b"key", None, None, (), None) is None
    with pytest.raises(UnicodeEncodeError):
        topic.put("\ud800", *nothing[1:])
    assert [batch.count for batch in topic.open[:2]] == [0, 0]
    assert topic.sticky.left == 1_000
