"""The records of MirrorMaker's internal topics: offset syncs, checkpoints, heartbeats. Pure.

Their layout is the one of Kafka 4.3: big-endian numbers, text behind its length in two bytes. The values of
checkpoints and heartbeats begin with a version, 0. A record of another version, or of no such layout, is None: other
programs write into these topics as well.

    offset sync   key: topic, partition (4)             value: source offset (8), target offset (8)
    checkpoint    key: group, topic, partition (4)      value: version (2), source offset (8), target offset (8), text
    heartbeat     key: source's alias, target's alias   value: version (2), ms since 1970 (8)
"""

import struct
from typing import Final, NamedTuple

from moldau.names import TopicPartition

VERSION: Final = 0
TEXT_MAX: Final = 0x7FFF


class OffsetSync(NamedTuple):
    """The record at the offset `upstream` of a partition of the source is at `downstream` in its mirror."""

    tp: TopicPartition
    upstream: int
    downstream: int


class GroupCheckpoint(NamedTuple):
    """The position of a group: `upstream` in the source, `downstream` in the mirror `tp`."""

    group: str
    tp: TopicPartition
    upstream: int
    downstream: int
    metadata: str


def sync_record(sync: OffsetSync) -> tuple[bytes, bytes]:
    """Key and value."""
    return (
        _text(sync.tp.topic) + struct.pack(">i", sync.tp.partition),
        struct.pack(">qq", sync.upstream, sync.downstream),
    )


def read_sync(key: bytes | None, value: bytes | None) -> OffsetSync | None:
    try:
        topic, rest = _cut(key or b"")
        (partition,), (upstream, downstream) = struct.unpack(">i", rest), struct.unpack(">qq", value or b"")
    except (struct.error, ValueError):
        return None
    return OffsetSync(TopicPartition(topic, partition), upstream, downstream)


def checkpoint_record(one: GroupCheckpoint) -> tuple[bytes, bytes]:
    """Key and value."""
    return (
        _text(one.group) + _text(one.tp.topic) + struct.pack(">i", one.tp.partition),
        struct.pack(">hqq", VERSION, one.upstream, one.downstream) + _text(one.metadata),
    )


def read_checkpoint(key: bytes | None, value: bytes | None) -> GroupCheckpoint | None:
    try:
        group, rest = _cut(key or b"")
        topic, rest = _cut(rest)
        (partition,) = struct.unpack(">i", rest)
        version, upstream, downstream = struct.unpack_from(">hqq", value or b"")
        metadata, rest = _cut((value or b"")[18:])
    except (struct.error, ValueError):
        return None
    if version != VERSION or rest:
        return None
    return GroupCheckpoint(group, TopicPartition(topic, partition), upstream, downstream, metadata)


def heartbeat_record(source: str, target: str, now_ms: int) -> tuple[bytes, bytes]:
    """Key and value."""
    return _text(source) + _text(target), struct.pack(">hq", VERSION, now_ms)


def read_heartbeat(key: bytes | None, value: bytes | None) -> tuple[str, str, int] | None:
    """The aliases of source and target, and ms since 1970."""
    try:
        source, rest = _cut(key or b"")
        target, rest = _cut(rest)
        version, when_ms = struct.unpack(">hq", value or b"")
    except (struct.error, ValueError):
        return None
    return (source, target, when_ms) if version == VERSION and not rest else None


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _cut(data: bytes) -> tuple[str, bytes]:
    """The text at the front, and the rest. Raises `ValueError`, `struct.error`."""
    (length,) = struct.unpack_from(">h", data)
    if length < 0 or 2 + length > len(data):
        raise ValueError("a text that is longer than its record")
    return data[2 : 2 + length].decode(), data[2 + length :]
