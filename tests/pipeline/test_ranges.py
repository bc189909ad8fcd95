"""Ranges: cutting and rationing lose nothing, and rationing always moves."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.names import TopicPartition
from moldau.pipeline.ranges import OffsetRange, between, cut, pack, ration

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 5))
RANGES = st.dictionaries(PARTITIONS, st.tuples(st.integers(0, 1000), st.integers(1, 500)), min_size=1).map(
    lambda spans: [OffsetRange(*tp, start, start + size) for tp, (start, size) in sorted(spans.items())]
)


def covered(ranges: list[OffsetRange]) -> list[tuple[str, int, int]]:
    return sorted((part.topic, part.partition, at) for part in ranges for at in range(part.start, part.end))


def test_empty_and_unknown_ranges_are_left_out() -> None:
    a, b, c = (TopicPartition("t", number) for number in range(3))
    assert between({a: 5, b: 7}, {a: 9, b: 7, c: 3}) == [OffsetRange("t", 0, 5, 9)]


@given(RANGES, st.integers(1, 300))
def test_cutting_keeps_every_offset_once_in_pieces_that_are_small_enough(
    ranges: list[OffsetRange], records_max: int
) -> None:
    pieces = cut(ranges, records_max)
    assert covered(pieces) == covered(ranges)
    assert all(0 < piece.size <= records_max for piece in pieces)
    assert [piece.size for piece in pieces] == sorted((piece.size for piece in pieces), reverse=True)


@given(RANGES, st.integers(1, 8))
def test_packing_keeps_every_piece_once_and_makes_no_empty_task(ranges: list[OffsetRange], tasks_max: int) -> None:
    packed = pack(ranges, tasks_max)
    assert sorted(piece for task in packed for piece in task) == sorted(ranges)
    assert len(packed) == min(tasks_max, len(ranges)) and all(packed)
    sizes = [sum(piece.size for piece in task) for task in packed]
    assert max(sizes) - min(sizes) <= max(piece.size for piece in ranges)


@given(RANGES, st.integers(1, 3000))
def test_a_ration_is_used_up_exactly_and_never_passes_the_end(ranges: list[OffsetRange], records_max: int) -> None:
    start = {part.topic_partition: part.start for part in ranges}
    end = {part.topic_partition: part.end for part in ranges}
    admitted = ration(start, end, records_max)
    assert all(start[tp] <= admitted[tp] <= end[tp] for tp in end)
    moved = sum(admitted[tp] - start[tp] for tp in end)
    assert moved == min(records_max, sum(part.size for part in ranges))


def test_a_ration_is_shared_by_what_waits() -> None:
    large, small = TopicPartition("t", 0), TopicPartition("t", 1)
    assert ration({large: 0, small: 0}, {large: 900, small: 100}, 100) == {large: 90, small: 10}
