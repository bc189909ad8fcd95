"""The exceptions that Moldau's others derive from: `MoldauError`, those for what has no error code of Kafka's, and
`KafkaError`.

`KafkaError(code, message)` makes an instance of the class that `kafka` declares for the code, and so does that class
itself, given a message alone. Codes that a client's user does not meet have no class and are plain `KafkaError`. A
fault of the peer (`ProtocolViolation`) and a fault of ours (an `assert`, or any other exception) are never the same
type.
"""

from typing import Any, Self, cast

from moldau.error_codes import ErrorCode
from moldau.names import TopicPartition


class MoldauError(Exception):
    """Base of Moldau's exceptions; the text is one sentence that says what to do."""


class ProtocolViolation(MoldauError):
    """The peer sent bytes that are not a valid message of the protocol; its connection is closed."""


class ConfigError(MoldauError):
    """A setting is unknown or its value is not allowed."""


class StorageError(MoldauError):
    """Reading or writing a log folder failed, or another process holds it."""


class CannotListen(OSError):
    """A listener's address was not bound; `strerror` is a sentence about its host and port."""


class StartInterrupted(MoldauError):
    """The broker was asked to stop before it had started."""


class ClientClosed(MoldauError):
    """A producer, consumer or admin client was used after it was closed."""


_CLASSES: dict[ErrorCode, type["KafkaError"]] = {}


class KafkaError(MoldauError):
    """A request was, or is to be, answered with one of Kafka's error codes.

    `code` is the error code and `message` the text given, None for the code's own sentence. `topic_partition` is what a
    consumer could not read, None for other errors.
    """

    topic_partition: TopicPartition | None = None
    _own_code: ErrorCode | None = None

    def __new__(cls, code: ErrorCode | str | None = None, *_: Any, **__: Any) -> Self:
        kind = _CLASSES.get(code) if isinstance(code, ErrorCode) else None
        if cls is KafkaError and kind is not None:
            return cast(Self, kind.__new__(kind, code))
        return super().__new__(cls)

    def __init__(self, code: ErrorCode | str | None = None, message: str | None = None):
        if not isinstance(code, ErrorCode):  # the class says the code, and the text came alone
            if self._own_code is None or message is not None:
                raise TypeError(f"{type(self).__name__} takes an ErrorCode and then a text, not {code!r}")
            message, code = code, self._own_code
        self.args = (message or f"{code.sentence} ({code.name})",)
        self.code = code
        self.message = message

    def __init_subclass__(cls, *, code: ErrorCode | None = None) -> None:
        if code is not None:
            _CLASSES[code] = cls
            cls._own_code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args, self.__dict__)

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code.retriable


def _unpickled(kind: type[KafkaError], args: tuple[str, ...], state: dict[str, Any]) -> KafkaError:
    error = kind.__new__(kind, None)
    error.args = args
    error.__dict__.update(state)
    return error
