"""The hash of keys, compiled and interpreted, against a plain reading of the algorithm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records.columns_both_ways import each

pa = pytest.importorskip("pyarrow")

ways = pytest.mark.parametrize("way", each)
key_lists = st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=60)


def plain_murmur2(key: bytes) -> int:
    mix, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    for at in range(0, len(key) - 3, 4):
        k = int.from_bytes(key[at : at + 4], "little") * mix & mask
        h = (h * mix & mask) ^ ((k ^ (k >> 24)) * mix & mask)
    rest = key[len(key) & ~3 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * mix & mask
    h = (h ^ (h >> 13)) * mix & mask
    return h ^ (h >> 15)


@ways
@given(key=st.binary(max_size=40))
def test_a_key_has_one_hash(way, key: bytes) -> None:
    assert way.murmur2(key) == plain_murmur2(key)
    assert way.positive_hash(key) == plain_murmur2(key) % (1 << 31)


@ways
@given(keys=key_lists, partitions=st.integers(1, 7), start=st.integers(0, 5))
def test_rows_are_sorted_by_the_partition_of_their_key_and_keep_their_order(
    way, keys: list[bytes | None], partitions: int, start: int
) -> None:
    from moldau.records.arrow import source_of

    column = pa.array([b"before"] * start + keys, pa.binary()).slice(start)
    source = source_of(column)
    if source is None:
        return
    without_key = partitions - 1
    order, counts = way.by_partition(source, len(keys), partitions, without_key)
    targets = [without_key if key is None else way.positive_hash(key) % partitions for key in keys]
    assert list(memoryview(order).cast("i")) == sorted(range(len(keys)), key=lambda row: targets[row])
    assert counts == [targets.count(partition) for partition in range(partitions)]


@ways
def test_columns_that_do_not_fit_together_are_refused(way) -> None:
    offsets = memoryview(b"".join(n.to_bytes(4, "little") for n in (0, 1, 9))).cast("i")
    source = way.Source(offsets, memoryview(b"abcd"), None)
    assert way.by_partition(source, 1, 3, 0)[1] != [0, 0, 0]
    for bad in (
        (source, 2, 3, 0),
        (source, 3, 3, 0),
        (source, 1, 3, 3),
        (source._replace(validity=memoryview(b"")), 1, 3, 0),
    ):
        with pytest.raises(ValueError, match="a column"):
            way.by_partition(*bad)
