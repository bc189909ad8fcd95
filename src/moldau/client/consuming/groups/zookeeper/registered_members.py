"""What members of a group register in ZooKeeper: paths and texts, as Kafka 0.7.2 and 0.8.2 have them. Pure.

    /consumers/GROUP/ids/MEMBER              ephemeral: what the member subscribes to, with how many streams
    /consumers/GROUP/owners/TOPIC/PARTITION  ephemeral: the id of the stream (`MEMBER-0`, `MEMBER-1` ...) that reads it
    /consumers/GROUP/offsets/TOPIC/PARTITION lasting: the offset of the next record, as decimal text

The id of a member is `GROUP_HOST-MILLIS-8HEX`. Its registration is JSON:

    0.8  {"version":1,"subscription":{"TOPIC":STREAMS},"pattern":"static","timestamp":"MILLIS"}; of a filter the
         subscription is {"REGEX":STREAMS}, and the pattern `white_list` or `black_list`
    0.7  { "TOPIC": STREAMS,"TOPIC": STREAMS }; of a filter the text `*STREAMS*REGEX` (white list), `!STREAMS!REGEX`

The name of a partition is its number in 0.8, and `BROKER-NUMBER` in 0.7, where a partition lived on one broker. Here
the broker is the first of the partition's replicas, which a fail-over does not change.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from moldau.client.consuming.groups.streams_wanted import BLACK_LIST, STATIC, WHITE_LIST, StreamsWanted
from moldau.client.zookeeper.group_names import GroupLayout
from moldau.errors import ConfigError
from moldau.names import INTERNAL_TOPICS

EXPRESSION_BYTES_MAX = 1 << 20
"""The memory that a compiled expression may take."""
STREAMS_MAX = 10_000
"""A registration that asks for more is not one."""
_MARKS = {"*": WHITE_LIST, "!": BLACK_LIST}


class GroupNodes(NamedTuple):
    """The paths of one group."""

    group: str
    layout: GroupLayout

    @property
    def members(self) -> str:
        return f"/consumers/{self.group}/ids"

    def owner(self, topic: str, name: str) -> str:
        """The node of the owner of a partition, by its `partition_name`."""
        return f"{self.owners(topic)}/{name}"

    def owners(self, topic: str) -> str:
        return f"/consumers/{self.group}/owners/{topic}"

    def offsets(self, topic: str) -> str:
        return f"/consumers/{self.group}/offsets/{topic}"

    def partition_name(self, partition: int, first_replica: int) -> str:
        return f"{first_replica}-{partition}" if self.layout is GroupLayout.KAFKA_0_7 else str(partition)


def member_id(group: str, host: str, now_ms: int, random: bytes) -> str:
    """The id of a new member; `random` has at least four bytes."""
    return f"{group}_{host}-{now_ms}-{random[:4].hex()}"


def stream_ids(member: str, streams: int) -> list[str]:
    return [f"{member}-{number}" for number in range(streams)]


def registration(wanted: StreamsWanted, layout: GroupLayout, now_ms: int) -> bytes:
    """The text of a member's node."""
    if layout is GroupLayout.KAFKA_0_8:
        fields = {
            "version": 1,
            "subscription": dict(wanted.streams),
            "pattern": wanted.pattern,
            "timestamp": str(now_ms),
        }
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    if wanted.pattern == STATIC:
        topics = ",".join(f"{json.dumps(topic)}: {streams}" for topic, streams in wanted.streams.items())
        return f"{{ {topics} }}".encode()
    [(regex, streams)] = wanted.streams.items()
    mark = "*" if wanted.pattern == WHITE_LIST else "!"
    return f"{mark}{streams}{mark}{regex}".encode()


def read_registration(data: bytes) -> StreamsWanted | None:
    """What a member subscribes to, in the texts of either version; None if the text is not a registration."""
    try:
        text = data.decode()
        if text[:1] in _MARKS:
            _, streams, regex = text.split(text[0], 2)
            return _checked(_MARKS[text[0]], {regex: int(streams)})
        read = json.loads(text)
        subscription, pattern = read.get("subscription"), read.get("pattern", STATIC)
        if not isinstance(subscription, dict):
            return _checked(STATIC, read)
        return _checked(pattern, subscription)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _checked(pattern: object, streams: Mapping[str, object]) -> StreamsWanted | None:
    numbers = {name: count for name, count in streams.items() if type(count) is int and 0 < count <= STREAMS_MAX}
    if len(numbers) < len(streams) or not isinstance(pattern, str):
        return None
    if pattern == STATIC or (pattern in _MARKS.values() and len(numbers) == 1 and _compiled(next(iter(numbers)))):
        return StreamsWanted(pattern, numbers)
    return None


def topics_of(wanted: StreamsWanted, existing: Mapping[str, object]) -> dict[str, int]:
    """The topics that exist and that are wanted, with the number of streams of each."""
    if wanted.pattern == STATIC:
        return {topic: streams for topic, streams in wanted.streams.items() if topic in existing}
    [(regex, streams)] = wanted.streams.items()
    pattern, wants = _compiled(regex), wanted.pattern == WHITE_LIST
    if pattern is None:
        return {}
    return {
        topic: streams
        for topic in existing
        if topic not in INTERNAL_TOPICS and (pattern.fullmatch(topic) is not None) == wants
    }


def check_filter(wanted: StreamsWanted) -> None:
    """Raise `ConfigError` if other members could not read the expression of a filter."""
    if wanted.pattern != STATIC:
        [regex] = wanted.streams
        if _compiled(regex) is None:
            raise ConfigError(
                f"{regex!r} is not an expression that RE2 (the package google-re2) knows: with zookeeper_connect all"
                " members of a group have to read it alike"
            )


@lru_cache(maxsize=64)
def _compiled(regex: str) -> Any:
    """The expression, as Kafka 0.8 reads it: a comma stands for `|`, and spaces and quotes around it for nothing. None
    if it is not one. RE2 alone matches it, since an expression of another member could take for ever elsewhere."""
    try:
        import re2
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors, options.max_mem = False, EXPRESSION_BYTES_MAX
    try:
        return re2.compile(regex.strip().replace(",", "|").replace(" ", "").strip("\"'"), options=options)
    except (re2.error, UnicodeEncodeError):
        return None
