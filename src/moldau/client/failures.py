"""What a client does with error codes: names for those it does not know, and how long to wait before the next try."""

from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.runtime import Random

STALE_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""After these, ask who leads before the next try."""


_ERRORS: dict[int, ErrorCode] = {int(error): error for error in ErrorCode}


class ClientClosed(MoldauError):
    """A producer, consumer or admin client was used after it was closed."""


def error_of(code: int) -> ErrorCode:
    """The error code of that number; one that a newer broker made up is UNKNOWN_SERVER_ERROR."""
    return _ERRORS.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def check(code: int, about: str, message: str | None = None) -> None:
    """Raise `KafkaError` unless the code is NONE; its text is `about: what is wrong`."""
    if code:
        error = error_of(code)
        raise KafkaError(error, f"{about}: {message or sentence(error)}")


def sentence(error: ErrorCode) -> str:
    """An error code for people: `NOT_LEADER_OR_FOLLOWER` is "not leader or follower"."""
    return error.name.lower().replace("_", " ")


class Backoff:
    """Waits that double from `first_ms` to `last_ms`, each shortened by up to a fifth so that clients do not march in
    step."""

    def __init__(self, random: Random, first_ms: int = 50, last_ms: int = 1_000):
        self._random = random
        self._first_ms = first_ms
        self._last_ms = last_ms
        self._next_ms = first_ms

    def next_ms(self) -> int:
        wait_ms = self._next_ms
        self._next_ms = min(wait_ms * 2, self._last_ms)
        return wait_ms - self._random.below(max(wait_ms // 5, 1))

    def reset(self) -> None:
        self._next_ms = self._first_ms
