"""A record on its way out: what `send` is given, and the checks that it passes before it joins a batch.

All checks are made when `send` is called, so that a wrong record is its caller's `TypeError` or `ValueError` and never
fails the records beside it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from moldau.client.partitions import why_no_topic
from moldau.client.producing.batching import Headers
from moldau.client.producing.producer_settings import Serializer
from moldau.client.producing.serializers import Content, to_bytes
from moldau.errors import ErrorCode, KafkaError, NoSuchPartition

TIMESTAMP_MAX = (1 << 63) - 1
GivenHeaders = Iterable[tuple[str, Content]] | Mapping[str, Content] | None


class _ByName:
    def __repr__(self) -> str:
        return "<by name>"


BY_NAME: Final[Any] = _ByName()
"""For `send_table`: the column of the table that has the argument's name, if there is one."""


class Header(NamedTuple):
    """A header of a record."""

    key: str
    value: bytes | None


class OutgoingRecord(NamedTuple):
    """The arguments of `send`; interceptors may return changed ones."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: GivenHeaders = ()


def no_such_partition(topic: str, partition: int, count: int) -> NoSuchPartition:
    """The error for a partition that a topic with that number of partitions does not have."""
    has = "1 partition, 0" if count == 1 else f"{count} partitions, 0 to {count - 1}"
    return NoSuchPartition(f"topic {topic} has no partition {partition}: it has {has}")


def content(value: Any, what: str, serializer: Serializer | None) -> bytes | None:
    """The bytes of a key or value (`what`). Raises `TypeError` for a type that needs a serializer."""
    if serializer is not None:
        made = serializer(value)
        if made is None or type(made) is bytes:
            return made
        if isinstance(made, bytes | bytearray | memoryview):
            return bytes(made)
        raise TypeError(f"{what}_serializer returned {type(made).__name__}, not bytes or None")
    try:
        return to_bytes(value)
    except TypeError:
        raise TypeError(
            f"the {what} is {type(value).__name__}, not bytes, str or None: the setting {what}_serializer says how to"
            f" make bytes of it, for example {what}_serializer=moldau.serializers.to_json"
        ) from None


def checked_headers(given: GivenHeaders) -> Headers:
    """The headers as pairs of name and bytes. Raises `TypeError`."""
    if not given:
        return ()
    try:
        pairs = [*given.items()] if isinstance(given, Mapping) else [(name, value) for name, value in given]
    except (TypeError, ValueError):
        raise TypeError(f"headers={given!r} is neither a mapping nor a sequence of pairs of name and value") from None
    checked = []
    for name, value in pairs:
        if not isinstance(name, str):
            raise TypeError(f"the name of a header is {type(name).__name__}, not str")
        name.encode()  # raises for text that UTF-8 cannot hold
        try:
            checked.append((name, to_bytes(value)))
        except TypeError:
            raise TypeError(f"header {name!r} is {type(value).__name__}, not bytes, str or None") from None
    return checked


def check_timestamp(timestamp_ms: Any) -> None:
    """Raise `TypeError` or `ValueError` unless this is a time in ms since 1970 that a record can hold, or -1: none, as
    in old message formats."""
    if type(timestamp_ms) is not int:
        raise TypeError(f"timestamp_ms={timestamp_ms!r} is {type(timestamp_ms).__name__}, not int: ms since 1970")
    if not -1 <= timestamp_ms <= TIMESTAMP_MAX:
        raise ValueError(f"timestamp_ms={timestamp_ms} is not between 0 and {TIMESTAMP_MAX}, nor -1 for none")


def check_partition(partition: Any) -> None:
    """Raise `TypeError` or `ValueError` unless this is a number that a partition can have."""
    if type(partition) is not int:
        raise TypeError(f"partition={partition!r} is {type(partition).__name__}, not int")
    if partition < 0:
        raise ValueError(f"partition={partition} is below 0")


def check_topic(topic: Any) -> None:
    """Raise `TypeError` unless this is text, and `InvalidTopic` unless a topic can have this name."""
    if not isinstance(topic, str):
        raise TypeError(f"the topic is {type(topic).__name__}, not str")
    if why := why_no_topic(topic):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
