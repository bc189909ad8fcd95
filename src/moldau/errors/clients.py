"""The exceptions of our clients, for what no broker has answered with an error code."""

from typing import Any

from moldau.error_codes import ErrorCode
from moldau.errors.bases import KafkaError, MoldauError
from moldau.errors.kafka import AuthenticationFailed, CorruptMessage, RequestTimedOut, UnknownTopicOrPartition
from moldau.names import TopicPartition


class ConcurrentUse(MoldauError, RuntimeError):
    """Two threads asked one consumer for records at the same time. Also a `RuntimeError`."""


class WrongLoop(MoldauError, RuntimeError):
    """A client of `moldau.aio` was used on another event loop than the one it belongs to. Also a `RuntimeError`."""


class NotAssigned(MoldauError, LookupError):
    """The consumer was asked about a partition that it does not read, or for records while it reads none."""


class NoSuchPartition(UnknownTopicOrPartition):
    """The topic or partition does not exist, and asking again does not help: metadata was requested just before, or the
    topic has been missing for longer than a new one takes to appear."""

    def __init__(self, sentence: str):
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, sentence)

    @property
    def retriable(self) -> bool:
        return False


class ChangeTimedOut(RequestTimedOut):
    """A broker answered that a change was not made in time, and why if it knows. It has tried by itself, so the client
    does not ask again; the change may still be made."""

    def __init__(self, sentence: str):
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, sentence)

    @property
    def retriable(self) -> bool:
        return False


class SslHandshakeFailed(AuthenticationFailed):
    """The TLS handshake with a broker failed: one end does not trust the other's certificate, or the other end does not
    speak TLS. Asking again does not help."""

    def __init__(self, sentence: str):
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, sentence)


class DamagedBatch(CorruptMessage):
    """A batch that was fetched cannot be read. `first` and `last` are the offsets that its header names: seek to `last
    + 1` to leave it out."""

    def __init__(self, first: int, last: int, sentence: str):
        super().__init__(ErrorCode.CORRUPT_MESSAGE, sentence)
        self.first = first
        self.last = last


class NotDelivered(KafkaError):
    """Records were not delivered, and nobody had asked for their results. `count` is their number, `first` the first
    failure."""

    def __init__(self, count: int, first: MoldauError):
        code = first.code if isinstance(first, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        many = "1 record was" if count == 1 else f"{count} records were"
        super().__init__(code, f"{many} not delivered: {first}")
        self.count = count
        self.first = first


class DeserializationFailed(MoldauError):
    """A deserializer raised on a record; `__cause__` is its exception. `raw_key` and `raw_value` are the record's
    bytes. The record stays the next one to read: seek to `offset + 1` to leave it out."""

    def __init__(
        self,
        tp: TopicPartition,
        offset: int,
        raw_key: bytes | None,
        raw_value: bytes | None,
        part: str,
        cause: Exception,
    ):
        super().__init__(f"the {part} of the record at offset {offset} of {tp} cannot be read: {cause!r}")
        self.topic_partition = tp
        self.offset = offset
        self.raw_key = raw_key
        self.raw_value = raw_value

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(kind: type[MoldauError], args: tuple[str, ...], state: dict[str, Any]) -> MoldauError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class LogTruncated(KafkaError):
    """Records that were read are no longer in the log. `position` is the next offset to read, `offset` the first one
    that is lost, or None if the leader does not know. A consumer seeks to go on."""

    topic_partition: TopicPartition

    def __init__(self, tp: TopicPartition, position: int, offset: int | None, hint: str, *, is_new_topic: bool = False):
        lost = "an unknown offset" if offset is None else f"offset {offset}"
        what = f"truncated at {lost}, before position {position}"
        if is_new_topic:
            what = f"deleted and created again: its position {position} was one of the topic before"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"{tp} was {what}, {hint}")
        self.topic_partition = tp
        self.position = position
        self.offset = offset
        self.is_new_topic = is_new_topic


class BrokerFailed(MoldauError):
    """The broker under test has failed by itself; the cause is the first error of its thread."""


# -- a schema registry, and framed records


class RegistryError(MoldauError):
    """The schema registry refused a request. `status` is the HTTP status, `code` the registry's own error code (40401,
    for example), or 0 where no registry has answered."""

    def __init__(self, sentence: str, status: int = 0, code: int = 0):
        super().__init__(sentence)
        self.status = status
        self.code = code


class RegistryUnavailable(RegistryError, ConnectionError):
    """None of the registry's addresses answered. Also a `ConnectionError`."""


class RegistryUnauthorized(RegistryError):
    """The registry wants other credentials, or the user may not do this."""


class SchemaNotFound(RegistryError):
    """The registry has no such subject, version, schema or id."""


class SchemaIncompatible(RegistryError):
    """The subject's compatibility level does not allow this schema after its earlier versions."""


class SchemaInvalid(RegistryError, ValueError):
    """The text is not a schema, or not one that the registry accepts. Also a `ValueError`."""


class NotFramed(MoldauError, ValueError):
    """The bytes do not begin with the magic byte 0 and a schema id of 4 bytes. Also a `ValueError`."""


class DoesNotFit(MoldauError, ValueError):
    """A value or its bytes do not fit the schema. Also a `ValueError`."""
