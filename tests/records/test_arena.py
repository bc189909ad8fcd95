"""Batches inflated into memory that is used again."""

import ctypes
from pathlib import Path

import pytest

from moldau.records import compression
from moldau.records.arena import BLOCK_BYTES, KEPT_BYTES, Arena, mapped
from moldau.records.compression import GZIP, LZ4, SNAPPY, ZSTD, DecompressionError, TooLarge

TEXT = b"the Moldau rises in the Bohemian Forest, " * 5000
codecs = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=compression.NAMES[1:])


@codecs
def test_what_was_inflated_stays_as_it_is_until_the_arena_is_cleared(codec: int) -> None:
    arena = Arena()
    contents = [TEXT[at:] for at in range(20)]
    views = [compression.decompress(codec, compression.compress(codec, one), 1 << 20, arena) for one in contents]
    assert [bytes(view) for view in views] == contents
    arena.clear()
    again = compression.decompress(codec, compression.compress(codec, b"short"), 1 << 20, arena)
    assert bytes(again) == b"short"


@codecs
def test_the_limit_is_exact_and_garbage_is_refused(codec: int) -> None:
    arena = Arena()
    packed = compression.compress(codec, TEXT)
    assert bytes(compression.decompress(codec, packed, len(TEXT), arena)) == TEXT
    with pytest.raises(TooLarge):
        compression.decompress(codec, packed, len(TEXT) - 1, arena)
    for bad in (b"", b"garbage" * 10, packed[:-1], packed[:9]):
        with pytest.raises(DecompressionError):
            compression.decompress(codec, bad, 1 << 20, arena)


def test_the_same_memory_is_used_again_and_a_giant_block_is_given_back() -> None:
    arena = Arena()
    block = arena.room(1000).obj
    arena.take(100)
    arena.clear()
    assert arena.room(1).obj is block
    giant = arena.room(KEPT_BYTES + 1).obj
    arena.clear()
    assert arena.room(1).obj is not giant


def test_a_mapped_block_is_a_multiple_of_a_block_and_zero() -> None:
    assert [len(mapped(size)) // BLOCK_BYTES for size in (0, 1, BLOCK_BYTES, BLOCK_BYTES + 1)] == [1, 1, 1, 2]
    assert not any(mapped(1)[:])


def test_a_mapped_block_is_not_shared_memory() -> None:
    block = mapped(1)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    mappings = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    (rights,) = [
        rights
        for ends, rights, *_ in mappings
        if int(ends.partition("-")[0], 16) <= address < int(ends.partition("-")[2], 16)
    ]
    assert rights == "rw-p"
