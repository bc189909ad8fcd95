"""A Fetch request as it is read by hand: tuples instead of an object per topic and partition."""

from typing import NamedTuple, TypeAlias

CONSUMER = -1
"""The replica id of a client that is not a broker."""

FetchPartition: TypeAlias = tuple[int, int, int, int]
"""A partition's number, the leader epoch that the reader knows (-1: none), the fetch offset, the most bytes."""
FetchTopic: TypeAlias = tuple[str | None, bytes | None, list[FetchPartition]]
"""A topic's name (None from version 13 on), its id (None before), and its partitions."""


ForgottenTopic: TypeAlias = tuple[str | None, bytes | None, list[int]]
"""Partitions that the session must drop: a topic's name or id, and partition numbers."""


FollowerPart: TypeAlias = tuple[int, int, int, int, int, int]
"""A partition's number, the follower's leader epoch, its fetch offset, the epoch of its last record, the start of its
log, the most bytes."""
FollowerTopic: TypeAlias = tuple[bytes, list[FollowerPart]]
"""A topic's id, and its partitions."""


class FollowerPositions(NamedTuple):
    """What the request of a follower says in addition: its broker epoch, and by topic id where it is."""

    broker_epoch: int
    topics: list[FollowerTopic]


class Fetch(NamedTuple):
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]
    is_wide: bool = False
    """The request has more topics and partitions than one turn of the loop answers."""
    follower: FollowerPositions | None = None
    """If a broker sent it."""
    rack: str | None = None
    """The reader's rack (KIP-392), empty if it names none; None before version 11, which has no such field."""
