"""Files of the old message formats, made by hand, as Kafka's dump tool and as we read them.

Where both read a file to its end they find the same; where one of them stops, what it gave before is what the other
gave first. (We stop where Kafka goes on in some places: it looks at fewer fields of damaged records.)
"""

import random
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from moldau.files import legacy
from moldau.files.legacy import Damaged
from moldau.records import compression
from tests.agreement.dumping import DEEP, Dump, DumpTool, pairs
from tests.records import old_messages as old
from tests.records.old_messages import message, mixed, resealed, set_v0, set_v1, wrapper

TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}
MESSAGE = re.compile(r"^offset: -?\d+ position: \d+ \w+: -?\d+ size: \d+ magic: [01] compresscodec: \w+ crc: \d+ ")
DAMAGED_FILES = 200


class Row(NamedTuple):
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: str | None
    value: str | None


def timestamp_of(said: dict[str, str]) -> tuple[int, int]:
    [name] = TYPES.keys() & said.keys()
    return int(said[name]), TYPES[name]


def kafkas(dump: Dump) -> list[Row]:
    """What the tool printed, without a last record that it could not finish."""
    rows = []
    for said in dump.records():
        if {"keySize", "valueSize"} <= said.keys():
            key, value = said.get("key", ""), said.get("payload", "")
            null_key, null_value = int(said["keySize"]) < 0, int(said["valueSize"]) < 0
            contents = None if null_key else key, None if null_value else value
            rows.append(Row(int(said["offset"]), *timestamp_of(said), *contents))
    return rows


def ours(data: bytes) -> tuple[list[Row], bool]:
    """The records, and whether that is all; up to a control batch, of which the tool prints other things."""
    rows = []
    try:
        for entry in legacy.entries(data):
            if entry.magic == 2 and entry.attributes & 0x20:
                return rows, False
            for offset, *timestamp, key, value, _ in legacy.rows(entry, check_crcs=False):
                contents = None if key is None else key.hex(), None if value is None else value.hex()
                rows.append(Row(offset, *timestamp, *contents))
    except Damaged:
        return rows, False
    return rows, True


def written(folder: Path, data: bytes, number: int = 0) -> Path:
    path = folder / f"{number:020}.log"
    path.write_bytes(data)
    return path


def kinds() -> bytes:
    """Messages and wrappers of both formats in every codec, with every way to count that there is."""
    contents = [(b"k1", b"v1"), (None, b"v2"), (b"k3", None), (b"", b"")]
    parts, offset = [], 0
    for codec in (0, old.GZIP, old.SNAPPY, old.LZ4):
        parts.append(set_v0([offset, offset + 1, offset + 5, offset + 6], contents, codec)[0])
        for how in ({}, {"absolute": True}, {"append_time": 5_000}, {"first": 4}):
            offset += 10
            stamps = [1_000, 1_002, 999, -1]
            parts.append(set_v1([offset, offset + 2, offset + 5, offset + 6], contents, codec, stamps, **how)[0])
        offset += 10
    inner = [message(0, b"k", b"v0"), message(1, None, b"v1", magic=1, timestamp=3)]
    parts += [wrapper(offset + 10 * i, *inner, magic=i % 2, timestamp=9, attributes=8 * (i // 2)) for i in range(4)]
    bare = old.bare_snappy(message(offset + 50, b"k", b"v"))
    return b"".join([*parts, wrapper(offset + 50, codec=old.SNAPPY, packed=bare)])


def test_kafka_finds_the_same_messages_and_records_in_every_kind_of_them(tool: DumpTool, tmp_path: Path) -> None:
    data = kinds()
    dump = tool.dump([written(tmp_path, data)], *DEEP)
    rows, all_read = ours(data)
    assert all_read and kafkas(dump) == rows and len(rows) > 80
    assert all(said["isValid"] == "true" for said in dump.records())
    assert all(MESSAGE.match(line) and line.endswith("isvalid: true") for line in dump.complaints), dump.complaints
    found = list(legacy.entries(data))
    shallow = [pairs(line) for line in dump.complaints]
    assert [tuple(int(said[name]) for name in ("offset", "position", "size", "magic", "crc")) for said in shallow] == [
        (entry.offset, entry.position, entry.size, entry.magic, entry.crc) for entry in found
    ]
    assert [said["compresscodec"] for said in shallow] == [compression.NAMES[entry.codec] for entry in found]
    assert [timestamp_of(said) for said in shallow] == [(entry.timestamp_ms, entry.timestamp_type) for entry in found]


def test_kafka_reads_a_segment_of_all_three_formats_as_we_do(tool: DumpTool, tmp_path: Path) -> None:
    data, _ = mixed()
    assert kafkas(tool.dump([written(tmp_path, data)], *DEEP)) == ours(data)[0]


@pytest.mark.parametrize("inner", [b"", message(0, magic=1)[:-1]], ids=["empty", "cut off"])
def test_a_wrapper_without_a_message_is_refused_by_both(inner: bytes, tool: DumpTool, tmp_path: Path) -> None:
    data = wrapper(5, packed=old.pack(old.GZIP, inner, 1), magic=1)
    dump = tool.dump([written(tmp_path, data)], *DEEP)
    assert "no inner records" in dump.complaints[-1]
    assert ours(data) == ([], False)


def damaged(chance: random.Random) -> bytes:
    """A file, or a wrapper of messages of no order, with some bits flipped, checksums mostly made right again."""
    if chance.random() < 0.5:
        data = bytearray(mixed()[0])
        flip(data, chance, chance.randrange(1, 4))
    else:
        inner = bytearray(b"".join(any_message(chance) for _ in range(chance.randrange(1, 4))))
        flip(inner, chance, chance.randrange(3))
        del inner[chance.randrange(len(inner), len(inner) + 9) - 8 :]
        offset, codec, magic = chance.choice([0, 9, 20]), chance.choice([1, 2, 3]), chance.randrange(2)
        attributes = chance.choice([0, old.LOG_APPEND_TIME])
        data = bytearray(wrapper(offset, bytes(inner), codec=codec, magic=magic, timestamp=5, attributes=attributes))
    if chance.random() < 0.7:
        resealed(data)
    return bytes(data)


def any_message(chance: random.Random) -> bytes:
    key, value = chance.choice([None, b"", b"k"]), chance.choice([None, b"", b"value"])
    return message(chance.choice([0, 1, 5, 9]), key, value, magic=chance.randrange(2), timestamp=chance.randrange(9))


def flip(data: bytearray, chance: random.Random, times: int) -> None:
    for _ in range(times):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def test_damaged_files_are_read_as_far_as_kafka_reads_them(tool: DumpTool, tmp_path: Path) -> None:
    chance = random.Random(1)
    whole = 0
    for number in range(DAMAGED_FILES):
        data = damaged(chance)
        dump = tool.dump([written(tmp_path, data, number)], *DEEP)
        theirs, (rows, all_read) = kafkas(dump), ours(data)
        if any(row.offset < 0 for row in rows):
            continue
        both_whole = all_read and not any(line.startswith("the tool failed") for line in dump.complaints)
        common = min(len(theirs), len(rows))
        assert theirs[:common] == rows[:common], f"file {number}"
        assert not both_whole or len(theirs) == len(rows), f"file {number}"
        whole += both_whole
    assert whole > DAMAGED_FILES // 10
