"""Digests: the hash is XXH64 as Spark chains it, sums do not depend on order or pieces, and columns are checked."""

import math
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.records import columns
from moldau.records.arrow import source_of
from moldau.records.columns import FIRST_COUNT, NO_ARRIVAL, Source, delay_bucket, longest_in
from moldau.records.digests import Digest, Rows, add_rows, digest_of, total
from tests.records.columns_both_ways import both, each

Record = tuple[bytes | None, bytes | None, int]
contents = st.none() | st.binary(max_size=80)
records = st.lists(st.tuples(contents, contents, st.integers(-(10**6), 10**6)), max_size=30)


def rows_of(given: list[Record], way: Any = columns, window_ms: int = 1_000, arrival_ms: int = NO_ARRIVAL) -> Rows:
    rows: Rows = {}
    keys, values = (pa.array([one[at] for one in given], pa.binary()) for at in (0, 1))
    times = memoryview(bytearray(8 * len(given))).cast("q")
    for number, one in enumerate(given):
        times[number] = one[2]
    way.digest(source_of(keys), source_of(values), times, 1, window_ms, arrival_ms, rows)
    return rows


def digests_of(given: list[Record], **how: Any) -> dict[int, Digest]:
    return {start: digest_of(row) for start, row in rows_of(given, **how).items()}


@pytest.mark.parametrize("way", each)
def test_the_hash_is_that_of_sparks_documentation(way: Any) -> None:
    assert way.record_hash(b"ABC", None) == 4105715581806190027
    assert way.record_hash(None, None) == 42
    assert len({way.record_hash(*pair) for pair in [(b"", None), (b"", b""), (None, b"x"), (b"x", b"")]}) == 4


@given(contents, contents)
def test_both_ways_hash_alike(key: bytes | None, value: bytes | None) -> None:
    compiled, interpreted = both
    assert compiled.record_hash(key, value) == interpreted.record_hash(key, value)


@given(records)
def test_both_ways_digest_alike_and_as_plain_python_does(given: list[Record]) -> None:
    compiled, interpreted = (rows_of(given, way, arrival_ms=10**6) for way in both)
    assert {start: [*row] for start, row in compiled.items()} == {start: [*row] for start, row in interpreted.items()}
    for start, row in compiled.items():
        inside = [one for one in given if one[2] // 1_000 * 1_000 == start]
        hashes = sum(columns.record_hash(key, value) for key, value, _ in inside) & (1 << 64) - 1
        late = sum(start + 2_000 <= 10**6 for _ in inside)
        assert [*row[:4]] == [len(inside), hashes, late, max(10**6 - at for _, _, at in inside)]
    assert sum(row[0] for row in compiled.values()) == len(given)


@given(records, records, st.randoms(use_true_random=False))
def test_order_and_pieces_do_not_matter(one: list[Record], other: list[Record], chance: random.Random) -> None:
    together = [*one, *other]
    chance.shuffle(together)
    pieces = rows_of(one, arrival_ms=5_000)
    add_rows(pieces, rows_of(other, arrival_ms=5_000))
    whole = digests_of(together, arrival_ms=5_000)
    assert {start: digest_of(row) for start, row in pieces.items()} == whole
    assert total(whole.values()).records == len(together)


def test_one_lost_and_one_doubled_record_change_the_sum() -> None:
    given: list[Record] = [(b"k%d" % n, b"v%d" % n, n) for n in range(100)]
    changed = [*given[1:], given[-1]]
    one, other = digests_of(given)[0], digests_of(changed)[0]
    assert one.records == other.records and not one.same_records(other)


@pytest.mark.parametrize("way", each)
def test_delays_are_counted_in_buckets_of_which_none_is_wider_than_a_thirty_second_of_its_delays(way: Any) -> None:
    times = [1_000, 999, 998, 996, 1_001, 0]
    rows = rows_of([(None, None, at) for at in times], way, window_ms=10_000, arrival_ms=1_000)
    digest = total(digest_of(row) for row in rows.values())
    assert digest.delays == ((0, 2), (1, 1), (2, 1), (4, 1), (1_007, 1))
    assert [digest.delay_ms(share) for share in (0.3, 0.5, 0.8, 1.0)] == [0, 1, 4, 1_000]
    assert Digest(records=3).delay_ms(0.5) is None


@given(st.lists(st.integers(0, 1 << 41), min_size=1, max_size=40), st.floats(0.01, 1))
def test_a_percentile_is_never_too_short_and_less_than_a_thirty_second_too_long(
    delays: list[int], share: float
) -> None:
    digest = total(digests_of([(None, None, -delay) for delay in delays], window_ms=1 << 50, arrival_ms=0).values())
    exact = sorted(delays)[max(0, math.ceil(share * len(delays) - 1e-9) - 1)]
    found = digest.delay_ms(share)
    assert found is not None and exact <= found <= exact * 33 / 32
    assert digest.delay_ms_max == max(delays)


def test_each_delay_is_in_its_bucket_and_buckets_follow_each_other() -> None:
    for bucket in range(delay_bucket(1 << 60)):
        longest = longest_in(bucket)
        assert (delay_bucket(longest), delay_bucket(longest + 1)) == (bucket, bucket + 1)
    assert all(longest_in(delay_bucket((1 << n) - 1)) == (1 << n) - 1 for n in range(42)), "those of format 1 stay"


@pytest.mark.parametrize("way", each)
def test_hashes_of_columns_are_those_of_their_records(way: Any) -> None:
    keys = pa.array([b"a", None, b""], pa.binary())
    values = pa.array([b"left out", b"1", b"2", None], pa.binary()).slice(1)
    expected = [columns.record_hash(*pair) for pair in zip(keys.to_pylist(), values.to_pylist(), strict=True)]
    assert [*way.hashes(source_of(keys), source_of(values), 3)] == expected
    assert [*way.hashes(None, None, 2)] == [42, 42]
    with pytest.raises(ValueError):
        way.hashes(source_of(keys), None, 4)


@pytest.mark.parametrize("way", each)
def test_times_at_the_ends_of_int64_overflow_nothing(way: Any) -> None:
    ends = [-(1 << 63), -1, 0, (1 << 63) - 1]
    rows = rows_of([(None, b"v", at) for at in ends], way, arrival_ms=0)
    assert sum(row[0] for row in rows.values()) == 4 and -1_000 in rows and 0 in rows


@pytest.mark.parametrize("way", each)
@pytest.mark.parametrize("offsets", [[0, 9], [4, 2], [-1, 2], [0]])
def test_offsets_beyond_the_bytes_are_refused(way: Any, offsets: list[int]) -> None:
    wrong = Source(memoryview(pa.array(offsets, pa.int32()).buffers()[1]).cast("B").cast("i")[: len(offsets)],
                   memoryview(b"abc"), None)  # fmt: skip
    with pytest.raises(ValueError):
        way.digest(None, wrong, memoryview(bytes(8)).cast("q"), 1, 1_000, NO_ARRIVAL, {})


def test_a_row_holds_only_the_range_of_buckets_that_it_needs() -> None:
    assert {len(row) for row in rows_of([(None, None, 0)]).values()} == {FIRST_COUNT}
    years = rows_of([(None, None, at) for at in range(0, 60_000, 100)], window_ms=60_000, arrival_ms=1 << 40)
    assert [len(row) - FIRST_COUNT <= 64 for row in years.values()] == [True]
