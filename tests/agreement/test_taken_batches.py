"""What our broker takes of batches, Kafka can read, and finds the same in: a batch that a Java consumer cannot read
would stop it for ever.

Batches with flipped bits and right checksums are checked as an append does, and given to Kafka's dump tool; so is every
shape that some encoder writes, since codecs have corners (frames behind frames, blocks that depend on each other,
windows, trailers) that not every decoder knows.
"""

import random
import struct
from collections import Counter
from pathlib import Path

import cramjam
import pytest

from moldau.errors import ErrorCode
from moldau.records import compression
from moldau.records.batch import read_header, stamp
from moldau.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from moldau.records.rows import iterate
from moldau.records.validation import Rules, assign_offsets, check_produce
from tests.agreement.dumping import DEEP, DumpTool
from tests.records import making
from tests.records.old_messages import bare_snappy

RECORDS = 3
FLIPPED = 300
SKIPPED = struct.pack("<II", 0x184D2A50, 4) + b"skip"


def plain() -> bytes:
    chance = random.Random(3)
    return b"".join(making.record(i, value=chance.randbytes(40) + b"x" * 200) for i in range(RECORDS))


def xerial(*blocks: bytes, version: int = 1) -> bytes:
    framed = (struct.pack(">i", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\0" + struct.pack(">ii", version, 1) + b"".join(framed)


def lz4(body: bytes, head: str = "6040 82", block: int = 200, end: bytes = bytes(4)) -> bytes:
    packed = [
        bytes(cramjam.lz4.compress_block(body[i : i + block], store_size=False)) for i in range(0, len(body), block)
    ]
    return bytes.fromhex("04224d18" + head) + b"".join(struct.pack("<I", len(one)) + one for one in packed) + end


def gzipped(body: bytes) -> bytes:
    """Without the time at which it was made."""
    return bytes(cramjam.gzip.compress(body))


def zstd_window(body: bytes, log: int) -> bytes:
    """A frame of one raw block that asks for a window of 2**log bytes."""
    block = struct.pack("<I", len(body) << 3 | 1)[:3] + body
    return bytes.fromhex("28b52ffd") + bytes([0, (log - 10) << 3]) + block


BODY = plain()
HALVES = BODY[: len(BODY) // 2], BODY[len(BODY) // 2 :]
SHAPES: dict[str, tuple[int, bytes]] = {
    **{f"ours, {compression.NAMES[codec]}": (codec, compression.compress(codec, BODY)) for codec in (1, 2, 3, 4)},
    "ours, lz4 at level 10": (LZ4, compression.compress(LZ4, BODY, 10)),
    "gzip, two members": (GZIP, b"".join(map(gzipped, HALVES))),
    "gzip, a last member of nothing": (GZIP, gzipped(BODY) + gzipped(b"")),
    "snappy, bare": (SNAPPY, bare_snappy(BODY)),
    "snappy, a block of nothing": (SNAPPY, xerial(bare_snappy(b""), *map(bare_snappy, HALVES))),
    "snappy, version 2": (SNAPPY, xerial(bare_snappy(BODY), version=2)),
    "lz4, many blocks": (LZ4, lz4(BODY)),
    "lz4, linked blocks": (LZ4, lz4(BODY, "4040 c0")),
    "lz4, of the library": (LZ4, bytes(cramjam.lz4.compress(BODY * 300))),
    "lz4, a dictionary": (LZ4, lz4(BODY, "6140 00000000 a0")),
    "lz4, two frames": (LZ4, b"".join(map(lz4, HALVES))),
    "lz4, something to be skipped before": (LZ4, SKIPPED + lz4(BODY)),
    "lz4, an empty block inside": (LZ4, lz4(HALVES[0], end=struct.pack("<I", 1 << 31)) + lz4(HALVES[1])[7:]),
    "zstd, two frames": (ZSTD, b"".join(bytes(cramjam.zstd.compress(half)) for half in HALVES)),
    "zstd, something to be skipped around": (ZSTD, SKIPPED + bytes(cramjam.zstd.compress(BODY)) + SKIPPED),
    "zstd, the best level": (ZSTD, bytes(cramjam.zstd.compress(BODY, 22))),
    **{f"zstd, a window of 2**{log}": (ZSTD, zstd_window(BODY, log)) for log in (10, 23, 27, 28, 31)},
}
TAKEN = [name for name in SHAPES if name.startswith(("ours", "gzip", "snappy", "lz4, many", "zstd"))]
NOT_READ_BY_LIBRDKAFKA = {"gzip, two members", "gzip, a last member of nothing"}
"""Kafka takes and reads these. librdkafka returns the first member's records only, without an error."""
REFUSED = {"zstd, a window of 2**28", "zstd, a window of 2**31", "snappy, version 2", *NOT_READ_BY_LIBRDKAFKA}


def outcomes(tool: DumpTool, folder: Path, data: bytes | bytearray, number: int) -> tuple[bool, bool]:
    """Whether we take the batch, and Kafka reads all of it; if both, the same must be in it."""
    path, placed = folder / f"{number:020}.log", bytearray(data)
    checked = check_produce(memoryview(placed), Rules(after_max_ms=1 << 62), making.NOW)
    taken = checked.error == ErrorCode.NONE
    if taken:
        assign_offsets(placed, 5, 3, None, checked.max_timestamp)
    path.write_bytes(placed)
    dump = tool.dump([path], *DEEP)
    path.unlink()
    read = not dump.complaints and len(dump.records()) == read_header(placed).count
    if taken and read:
        assert [_theirs(said) for said in dump.records()] == [
            (row.offset, row.timestamp_ms, hexadecimal(row.key), hexadecimal(row.value)) for row in iterate(placed)
        ]
    return taken, read


def _theirs(said: dict[str, str]) -> tuple[int, int, str | None, str | None]:
    key, value = said.get("key", ""), said.get("payload", "")
    contents = None if said["keySize"] == "-1" else key, None if said["valueSize"] == "-1" else value
    return int(said["offset"]), int(said["CreateTime"]), *contents


def hexadecimal(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


def packed_in_a_batch(codec: int, packed: bytes) -> bytearray:
    return making.batch(codec=codec, count=RECORDS, change=lambda _: packed)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_taken_only_if_kafka_reads_it(name: str, tool: DumpTool, tmp_path: Path) -> None:
    taken, read = outcomes(tool, tmp_path, packed_in_a_batch(*SHAPES[name]), 0)
    assert read or not taken
    if name in TAKEN and name not in REFUSED:
        assert taken
    if name in NOT_READ_BY_LIBRDKAFKA:
        assert read and not taken


def test_flipped_bits_in_codecs_are_never_taken_where_kafka_stumbles(tool: DumpTool, tmp_path: Path) -> None:
    chance = random.Random(11)
    found: Counter[tuple[bool, bool]] = Counter()
    for number in range(FLIPPED):
        codec, packed = chance.choice([shape for shape in SHAPES.values() if len(shape[1]) < 2000])
        flipped = bytearray(packed)
        for _ in range(chance.randrange(1, 3)):
            flipped[chance.randrange(min(len(flipped), chance.choice([12, 30, 2000])))] ^= 1 << chance.randrange(8)
        found[outcome := outcomes(tool, tmp_path, packed_in_a_batch(codec, bytes(flipped)), number)] += 1
        assert outcome != (True, False), f"flip {number}"
    assert found[True, True] > FLIPPED // 30 and found[False, False] > FLIPPED // 3


def test_flipped_bits_in_batches_are_never_taken_where_kafka_stumbles(tool: DumpTool, tmp_path: Path) -> None:
    chance = random.Random(7)
    found: Counter[tuple[bool, bool]] = Counter()
    for number in range(FLIPPED):
        data = any_batch(chance)
        for _ in range(chance.randrange(1, 4)):
            at = chance.choice([chance.randrange(21, 61), chance.randrange(61, len(data))])
            data[at] ^= 1 << chance.randrange(8)
        header = read_header(data)
        stamp(data, header.attributes, header.max_timestamp)
        found[outcome := outcomes(tool, tmp_path, data, number)] += 1
        assert outcome != (True, False), f"flip {number}"
    assert found[True, True] > FLIPPED // 10 and found[False, False] > FLIPPED // 3


def any_batch(chance: random.Random) -> bytearray:
    records = [
        making.record(
            i,
            timestamp=chance.choice([0, i, -i, 1000]),
            key=chance.choice([None, b"", b"k"]),
            value=chance.choice([None, b"", b"value"]),
            headers=chance.choice([(), [(b"h", b"1")], [(b"", None), (b"x", b"")]]),
        )
        for i in range(chance.randrange(1, 4))
    ]
    producer_id = chance.choice([-1, -1, 7])
    return making.batch(
        *records, codec=chance.choice([0, 0, 0, GZIP, ZSTD]), producer_id=producer_id, producer_epoch=0, sequence=0
    )
