import gzip
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.patience import stretched
from harness.tiers import LONG
from moldau.records import compression
from moldau.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, DecompressionError, TooLarge, UnknownCodec
from tests.records.making import batch, record

TEXT = b"the Moldau rises in the Bohemian Forest, " * 5000
codecs = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=compression.NAMES[1:])


def xerial(*blocks: bytes) -> bytes:
    return (
        b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
    )


def snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


@codecs
@given(data=st.binary(max_size=2000) | st.binary(min_size=1, max_size=3).map(lambda part: part * 60_000))
def test_what_goes_in_comes_out(codec: int, data: bytes) -> None:
    assert bytes(compression.decompress(codec, compression.compress(codec, data), len(data))) == data


@codecs
def test_the_limit_is_exact(codec: int) -> None:
    packed = compression.compress(codec, TEXT)
    assert bytes(compression.decompress(codec, packed, len(TEXT))) == TEXT
    assert not compression.exceeds(codec, packed, len(TEXT))
    assert compression.exceeds(codec, packed, len(TEXT) - 1)
    with pytest.raises(TooLarge):
        compression.decompress(codec, packed, len(TEXT) - 1)


@codecs
def test_a_buffer_of_any_kind_will_do(codec: int) -> None:
    packed = compression.compress(codec, memoryview(bytearray(b"??" + TEXT))[2:])
    assert bytes(compression.decompress(codec, memoryview(bytearray(b"??" + packed))[2:], len(TEXT))) == TEXT


@codecs
def test_a_compressor_returns_what_compress_does_batch_after_batch(codec: int) -> None:
    compressor = compression.Compressor(codec)
    for data in (TEXT, b"", TEXT[:100], os.urandom(70_000), bytes(1 << 17), TEXT * 3, os.urandom(300_000), TEXT):
        packed = compressor.compress(data)
        assert bytes(compression.decompress(codec, packed, 1 << 20)) == data
        assert packed == compression.compress(codec, data)


@codecs
def test_random_bytes_do_not_shrink_and_come_back(codec: int) -> None:
    noise = os.urandom(200_000)
    assert bytes(compression.decompress(codec, compression.compress(codec, noise), 200_000)) == noise


@codecs
def test_garbage_and_cut_data_are_refused(codec: int) -> None:
    packed = compression.compress(codec, TEXT)
    for bad in (b"", b"\xff", b"garbage" * 10, packed[:-1], packed[: len(packed) // 2], packed[:9]):
        with pytest.raises(DecompressionError):
            compression.decompress(codec, bad, 1 << 20)
        assert not compression.exceeds(codec, bad, 1 << 20)


def test_no_codec_changes_nothing_and_others_are_unknown() -> None:
    assert compression.compress(NONE, TEXT) == TEXT
    assert compression.decompress(NONE, TEXT, len(TEXT)) == TEXT
    for codec in (5, 6, 7):
        with pytest.raises(UnknownCodec):
            compression.decompress(codec, TEXT, 1 << 20)
        with pytest.raises(UnknownCodec):
            compression.compress(codec, TEXT)


def test_codecs_have_kafkas_names() -> None:
    assert [compression.codec_named(name) for name in compression.NAMES] == [0, 1, 2, 3, 4]
    assert compression.codec_named("uncompressed") == NONE
    with pytest.raises(KeyError):
        compression.codec_named("brotli")


def test_levels_are_the_codecs_own() -> None:
    for codec, low, high in ((GZIP, 1, 9), (LZ4, 1, 12), (ZSTD, 1, 19)):
        sizes = [len(compression.compress(codec, TEXT, level)) for level in (low, high)]
        assert sizes[0] >= sizes[1]
        assert bytes(compression.decompress(codec, compression.compress(codec, TEXT, high), 1 << 20)) == TEXT


def test_every_level_that_a_topic_may_have_works() -> None:
    for codec, levels in ((GZIP, range(1, 10)), (LZ4, range(1, 18)), (ZSTD, (-131072, -7, -1, 0, 1, 22))):
        for level in levels:
            for data in (TEXT, os.urandom(70_000), b""):
                packed = compression.compress(codec, data, level)
                assert bytes(compression.decompress(codec, packed, 1 << 20)) == data
                assert not data or compression.flaw(codec, packed, len(data)) is None


def test_kafkas_default_level_of_lz4_is_the_fast_one() -> None:
    words = b"".join(b"%d %d," % (i * i % 7919, i) for i in range(20_000))
    fast, other, thorough = (compression.compress(LZ4, words, level) for level in (9, None, 10))
    assert fast == other
    assert len(thorough) < len(fast)


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        (GZIP, gzip.compress(TEXT)),
        (GZIP, gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])),
        (SNAPPY, snappy(TEXT)),
        (SNAPPY, xerial(snappy(TEXT))),
        (SNAPPY, xerial(snappy(TEXT[:5]), snappy(b""), snappy(TEXT[5:]))),
        (LZ4, bytes(cramjam.lz4.compress(TEXT))),
        (ZSTD, bytes(cramjam.zstd.compress(TEXT))),
    ],
    ids=["gzip", "two gzip members", "bare snappy", "one block", "blocks", "lz4 linked, checksums", "zstd with size"],
)  # fmt: skip
def test_what_other_clients_write_is_read(codec: int, packed: bytes) -> None:
    assert bytes(compression.decompress(codec, packed, len(TEXT))) == TEXT
    with pytest.raises(TooLarge):
        compression.decompress(codec, packed, len(TEXT) - 1)


def streamed(compressor: Callable[[], "cramjam.zstd.Compressor"]) -> bytes:
    """What a client writes that does not know the size beforehand."""
    stream = compressor()
    stream.compress(TEXT)
    first = bytes(stream.flush())
    stream.compress(TEXT)
    return first + bytes(stream.finish())


def test_streams_without_a_size_are_read() -> None:
    for codec, module in ((ZSTD, cramjam.zstd), (LZ4, cramjam.lz4), (GZIP, cramjam.gzip)):
        assert bytes(compression.decompress(codec, streamed(module.Compressor), 2 * len(TEXT))) == TEXT * 2


def test_snappy_is_written_in_the_java_clients_framing() -> None:
    packed = compression.compress(SNAPPY, bytes(70_000))
    assert packed.startswith(b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01")
    (first,) = struct.unpack_from(">i", packed, 16)
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == 32 * 1024


def test_lz4_is_written_in_independent_blocks_as_java_needs() -> None:
    packed = compression.compress(LZ4, TEXT[:60_000])
    assert packed[:7].hex(" ") == "04 22 4d 18 60 40 82"
    assert packed.endswith(bytes(4))
    assert bytes(cramjam.lz4.decompress(packed)) == TEXT[:60_000]


@pytest.mark.parametrize("size", [64 * 1024, 64 * 1024 + 1, 256 * 1024, 256 * 1024 + 1, 1_000_003])
@pytest.mark.parametrize("contents", ["words", "noise"])
def test_lz4_blocks_are_of_256_kib_where_there_is_more_than_one_of_64(size: int, contents: str) -> None:
    data = (TEXT * (size // len(TEXT) + 1))[:size] if contents == "words" else random.Random(size).randbytes(size)
    packed = compression.compress(LZ4, data)
    blocks, at = 0, 7
    while length := struct.unpack_from("<I", packed, at)[0] & 0x7FFF_FFFF:
        blocks, at = blocks + 1, at + 4 + length
    assert packed[:7].hex(" ") == ("04 22 4d 18 60 50 fb" if size > 64 * 1024 else "04 22 4d 18 60 40 82")
    assert (blocks, at + 4) == (-(-size // (256 * 1024)), len(packed))
    assert bytes(cramjam.lz4.decompress(packed)) == data == compression.decompress(LZ4, packed, size)
    assert bytes(compression.Compressor(LZ4).compress(data)) == packed


def test_snappy_blocks_that_lie_about_their_length_are_refused() -> None:
    fine = snappy(b"abc")
    for bad in (
        xerial(fine)[:-1],
        xerial(fine) + b"\0\0",
        xerial(fine) + struct.pack(">i", 0),
        xerial(fine) + struct.pack(">i", -5) + fine,
        xerial(fine) + struct.pack(">i", 1 << 30) + fine,
        xerial(fine)[:12],
        xerial(b"\xff" * 6),
    ):
        with pytest.raises(DecompressionError):
            compression.decompress(SNAPPY, bad, 1 << 20)
    for bomb in (b"\xff\xff\xff\xff\x0f" + bytes(50), xerial(*[b"\x80\x80\x40" + bytes(9)] * 3)):
        with pytest.raises(TooLarge):
            compression.decompress(SNAPPY, bomb, 1 << 20)


def bomb(codec: int) -> bytes:
    """200 MiB of zeros; for snappy, which holds its sizes, the claim of many GiB."""
    if codec == SNAPPY:
        return xerial(*[b"\xff\xff\xff\xff\x07\0"] * 9)
    stream = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}[codec].Compressor()
    out = b""
    for _ in range(200):
        stream.compress(bytes(1 << 20))
        out += bytes(stream.flush())
    return out + bytes(stream.finish())


CHECKS = """
import sys, time
from moldau.records.validation import Rules, check_produce

def peak_kib():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

frames = [memoryview(bytearray(open(name, "rb").read())) for name in sys.argv[1:]]
before, started = peak_kib(), time.process_time()
for frame in frames:
    print(check_produce(frame, Rules(), 0).error.name, end=" ")
print(peak_kib() - before, time.process_time() - started)
"""
"""Not by getrusage, whose largest size is also that of the process that started this one."""


def test_bombs_take_neither_memory_nor_time(tmp_path: Path) -> None:
    bodies = [bomb(codec) for codec in (GZIP, SNAPPY, LZ4, ZSTD)] + [xerial(*[b"\x01\0A"] * 140_000)]
    names = [str(tmp_path / str(i)) for i in range(len(bodies))]
    for codec, body, name in zip((GZIP, SNAPPY, LZ4, ZSTD, SNAPPY), bodies, names, strict=True):
        Path(name).write_bytes(batch(record(), codec=codec, change=lambda _, body=body: body))
    command = [sys.executable, "-c", CHECKS, *names]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60), check=True, env=paths)
    *codes, kib, seconds = done.stdout.split()
    assert codes == ["MESSAGE_TOO_LARGE"] * 4 + ["INVALID_RECORD"]
    assert int(kib) <= 64 * 1024, kib
    assert not LONG or float(seconds) <= 2 * len(codes)  # a processor's speed is for the long tier
