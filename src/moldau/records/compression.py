"""The four codecs of record batches: gzip, snappy, lz4 (frames) and zstd, by their numbers in a batch's attributes.

Inflating is bounded: it never returns more than `limit` bytes, and does not allocate that much memory before the data
has proved to need it. `cramjam` does the work and lets other threads run meanwhile.

Snappy has two framings. Kafka's Java and Python clients use that of xerial's snappy-java (so does this module):
    "\\x82SNAPPY\\0" | version int32 1 | compatible int32 1 | blocks: length int32, snappy block ...
librdkafka and Go clients write one bare snappy block; the magic decides. Kafka never uses snappy's own stream format.

Some data is valid for its codec, but some clients cannot read it (several gzip members, LZ4 with dependent blocks). It
is inflated here, because existing logs contain it; `flaw` returns the reason why an append refuses it.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from mmap import mmap
from typing import Final, TypeAlias

import cramjam

from moldau.errors import MoldauError
from moldau.records.arena import Arena

Buffer: TypeAlias = bytes | bytearray | memoryview

NONE, GZIP, SNAPPY, LZ4, ZSTD = 0, 1, 2, 3, 4
CODECS: Final = {"none": NONE, "uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_LZ4_HEADER: Final = bytes.fromhex("04224d18 60 40 82")
_LZ4_BLOCK: Final = 64 * 1024
_LZ4_WIDE_HEADER: Final = bytes.fromhex("04224d18 60 50 fb")
_LZ4_WIDE_BLOCK: Final = 256 * 1024
_LZ4_BLOCK_MOST: Final = _LZ4_BLOCK + _LZ4_BLOCK // 255 + 16
"""The most bytes of a compressed block, which the compressor wants to have room for."""
_LZ4_STORED: Final = 1 << 31
_LZ4_MAGIC: Final = _LZ4_HEADER[:4]
_LZ4_INDEPENDENT, _LZ4_BLOCK_CHECKSUMS, _LZ4_CONTENT_SIZE, _LZ4_CHECKSUM, _LZ4_RESERVED = 0x20, 0x10, 0x08, 0x04, 0x03
_LZ4_FAST: Final = (None, 9)
"""The levels for which Kafka uses LZ4's fast compressor (9 is its default); the others select high compression."""
_UINT32_LE = struct.Struct("<I")
_INT32 = struct.Struct(">i")
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_GZIP_START: Final = 1 << 12
"""More than a gzip member's header and the data for its first byte need, unless its file name is absurdly long."""
_SMALLEST: Final = 4096
MAPPED_BYTES: Final = 8 << 20
_CRAMPED: Final = "failed to write whole buffer"


class DecompressionError(MoldauError):
    """The bytes are not valid for their codec."""


class TooLarge(DecompressionError):
    """The inflated bytes would exceed the limit."""


class UnknownCodec(DecompressionError):
    """No codec has that number."""


def codec_named(name: str) -> int:
    """The number of a codec by its name in settings; `KeyError` for others."""
    return CODECS[name]


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` in that codec's format. `level`: the codec's own scale, its default if None."""
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data, level=level))
    if codec == SNAPPY:
        return _compress_xerial(data)
    if codec == LZ4:
        return _compress_lz4(data, level)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=level))
    if codec == NONE:
        return bytes(data)
    raise UnknownCodec(f"no codec has the number {codec}")


class Compressor:
    """Compresses batch after batch into memory that is used again: fresh memory costs more than copying into it. One
    thread at a time."""

    def __init__(self, codec: int):
        self._codec = codec
        self._out = bytearray()

    def compress(self, data: Buffer) -> Buffer:
        """As `compress` does; the result is valid until the next call."""
        if self._codec not in (LZ4, ZSTD):
            return compress(self._codec, data)
        most = _most(self._codec, len(data))
        if len(self._out) < most:
            self._out = bytearray(most)
        out = memoryview(self._out)
        size = cramjam.zstd.compress_into(data, out) if self._codec == ZSTD else _lz4_into(data, out)
        return out[:size]


def decompress(codec: int, data: Buffer, limit: int, arena: Arena | None = None) -> Buffer:
    """`data`, inflated into the arena's memory if there is one. Raises `TooLarge` for more than `limit` bytes,
    `DecompressionError` for invalid data."""
    if codec == SNAPPY:
        return _decompress_snappy(data, limit, arena)
    if codec == NONE:
        return data
    decompress_into = _INTO.get(codec)
    if decompress_into is None:
        raise UnknownCodec(f"no codec has the number {codec}")
    if arena is not None:
        return _grow_in(arena, decompress_into, data, limit)
    return _grow(decompress_into, data, limit)


def exceeds(codec: int, data: Buffer, limit: int) -> bool:
    """Whether `data` inflates to more than `limit` bytes; costs at most inflating `limit` bytes."""
    try:
        decompress(codec, data, limit)
    except TooLarge:
        return True
    except DecompressionError:
        return False
    return False


_Into: TypeAlias = Callable[[Buffer, bytearray | memoryview | mmap], int]
_INTO: Final[dict[int, _Into]] = {
    GZIP: cramjam.gzip.decompress_into,
    LZ4: cramjam.lz4.decompress_into,
    ZSTD: cramjam.zstd.decompress_into,
}


def _grow_in(arena: Arena, decompress_into: _Into, data: Buffer, limit: int) -> memoryview:
    """Inflate into the arena's room, and into four times as much whenever it was too small, up to the limit."""
    room = arena.room(min(max(_SMALLEST, 8 * len(data)), limit))[:limit]
    while (size := _inflated(decompress_into, data, room)) is None:
        if len(room) == limit:
            raise TooLarge(f"the batch holds more than {limit} bytes")
        size, room = min(4 * len(room), limit), memoryview(b"")  # the smaller block is given back first
        room = arena.room(size)[:limit]
    return arena.take(size)


def _inflated(decompress_into: _Into, data: Buffer, out: bytearray | memoryview | mmap) -> int | None:
    """Inflate into `out`: the number of bytes, or None if it was too small."""
    try:
        return decompress_into(data, out)
    except cramjam.DecompressionError as error:
        if _CRAMPED not in str(error):
            raise DecompressionError(str(error)) from None
        return None


def _grow(decompress_into: _Into, data: Buffer, limit: int) -> Buffer:
    """Inflate into a buffer, and into one four times as large whenever it was too small, up to the limit. A giant
    buffer is mapped: the allocator would keep it for every thread that ever inflated a decompression bomb."""
    size = max(_SMALLEST, 8 * len(data))
    while True:
        room = min(size, limit)
        out = mmap(-1, room) if room > MAPPED_BYTES else bytearray(room)
        inflated = _inflated(decompress_into, data, out)
        if inflated is not None:
            return memoryview(out)[:inflated]
        if size >= limit:
            raise TooLarge(f"the batch holds more than {limit} bytes")
        del out
        size *= 4


def flaw(codec: int, data: Buffer, inflated_bytes: int) -> str | None:
    """The reason why some clients cannot read `data`, which `decompress` inflated to `inflated_bytes`; None if all
    can."""
    if codec == LZ4:
        why = _lz4_flaw(data)
        return None if why is None else f"Java's consumers cannot read this LZ4: {why}"
    if codec == GZIP and not _is_one_member(data, inflated_bytes):
        return "librdkafka's consumers cannot read this gzip: it must be one member"
    return None


def _is_one_member(data: Buffer, inflated_bytes: int) -> bool:
    """Whether gzip data is a single non-empty member, which all clients can read. Of several members librdkafka returns
    the first and silently drops the rest; if the first is empty, it ends its process.

    The last member ends with its inflated size. If that is the whole size, other members can only be empty and come
    before it.
    """
    (size,) = _UINT32_LE.unpack(bytes(data[-_UINT32_LE.size :]))
    try:
        first = zlib.decompressobj(_GZIP_WINDOW).decompress(data[:_GZIP_START], 1)
    except zlib.error:
        return False
    return size == inflated_bytes & 0xFFFFFFFF and first != b""


def _lz4_flaw(data: Buffer) -> str | None:
    """The reason why Java's clients cannot read `data`, which `decompress` could read as LZ4; None if they can.

    They read one frame of independent blocks, without a dictionary, and stop at an empty block.
    """
    view = memoryview(data)
    if bytes(view[:4]) != _LZ4_MAGIC:
        return "its frame does not come first"
    flags = view[4]
    if not flags & _LZ4_INDEPENDENT:
        return "its blocks depend on each other"
    if flags & _LZ4_RESERVED:
        return "it needs a dictionary"
    at = len(_LZ4_HEADER) + (8 if flags & _LZ4_CONTENT_SIZE else 0)
    between = 4 if flags & _LZ4_BLOCK_CHECKSUMS else 0
    while at + 4 <= len(view) and (size := _UINT32_LE.unpack_from(view, at)[0] & ~_LZ4_STORED):
        at += 4 + size + between
    at += 4 + (4 if flags & _LZ4_CHECKSUM else 0)
    return None if at == len(view) else "its end is not where it should be"


def _compress_xerial(data: Buffer) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for at in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _most(codec: int, size: int) -> int:
    """The most bytes that `size` bytes are compressed to."""
    if codec == ZSTD:
        return size + size // 256 + 1024
    blocks = size // _LZ4_BLOCK + 1
    return len(_LZ4_HEADER) + blocks * (4 + _LZ4_BLOCK_MOST) + 4


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    out = bytearray(_most(LZ4, len(data)))
    return bytes(memoryview(out)[: _lz4_into(data, memoryview(out), level)])


def _lz4_into(data: Buffer, out: memoryview, level: int | None = None) -> int:
    """Write a frame of independent blocks, the only ones that Kafka's Java client can read, without checksums, as it
    does. Blocks are 64 KiB, as that client's; data that is larger is compressed fast in blocks of 256 KiB: this halves
    the time (the library compresses larger blocks another way) and takes up to 7% more bytes. Returns its size."""
    view = memoryview(data)
    fast = level in _LZ4_FAST
    wide = fast and len(view) > _LZ4_BLOCK
    header, block_bytes = (_LZ4_WIDE_HEADER, _LZ4_WIDE_BLOCK) if wide else (_LZ4_HEADER, _LZ4_BLOCK)
    out[: len(header)] = header
    end = len(header)
    for at in range(0, len(view), block_bytes):
        plain = view[at : at + block_bytes]
        start, length = end + 4, len(plain)
        if fast:
            size = cramjam.lz4.compress_block_into(plain, out[start:], store_size=False)
        else:
            block = _thorough_lz4_block(plain, level)
            size = len(block)
            out[start : start + size] = block
        if size < length:
            _UINT32_LE.pack_into(out, end, size)
        else:
            size = length
            _UINT32_LE.pack_into(out, end, size | _LZ4_STORED)
            out[start : start + size] = plain
        end = start + size
    _UINT32_LE.pack_into(out, end, 0)
    return end + 4


def _thorough_lz4_block(plain: memoryview, level: int | None) -> bytes:
    """One block compressed at a level: the library takes levels only for frames, and a frame of up to 64 KiB has one
    block."""
    frame = bytes(cramjam.lz4.compress(plain, level=level))
    at = len(_LZ4_HEADER) + (8 if frame[4] & _LZ4_CONTENT_SIZE else 0)
    (size,) = _UINT32_LE.unpack_from(frame, at)
    return frame[at + 4 : at + 4 + (size & ~_LZ4_STORED)]


def _decompress_snappy(data: Buffer, limit: int, arena: Arena | None) -> Buffer:
    """Each snappy block starts with its inflated size: all sizes are added up before anything is allocated."""
    view = memoryview(data)
    framed = bytes(view[: len(XERIAL_MAGIC)]) == XERIAL_MAGIC
    try:
        size = sum(cramjam.snappy.decompress_raw_len(block) for block in _blocks(view, framed))
        if size > limit:
            raise TooLarge(f"the batch holds more than {limit} bytes")
        out = bytearray(size) if arena is None else arena.room(size)[:size]
        rest = memoryview(out)
        for block in _blocks(view, framed):
            rest = rest[cramjam.snappy.decompress_raw_into(block, rest) :]
    except cramjam.DecompressionError as error:
        raise DecompressionError(str(error)) from None
    return out if arena is None else arena.take(size)


def _blocks(view: memoryview, framed: bool) -> Iterator[memoryview]:
    """The snappy blocks in xerial's framing, or the one bare block."""
    if not framed:
        yield view
        return
    at, end = len(_XERIAL_HEADER), len(view)
    while at != end:
        (length,) = _INT32.unpack_from(view, at) if at + 4 <= end else (0,)
        at += 4
        if not 0 < length <= end - at:
            raise DecompressionError("a snappy block is cut off")
        yield view[at : at + length]
        at += length
