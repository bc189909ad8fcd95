"""Failures in a client: checking of error codes, the wait before the next attempt, and the log lines."""

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from moldau.error_codes import error_of as error_of
from moldau.errors import ClientClosed as ClientClosed
from moldau.errors import DamagedBatch, ErrorCode, KafkaError, MoldauError, NoSuchPartition, UnknownTopicOrPartition
from moldau.names import TopicPartition
from moldau.randomness import Random

logger = logging.getLogger(__name__)
K = TypeVar("K")
V = TypeVar("V")

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
"""After one of these errors the client refreshes its metadata before it tries again."""


def check(code: int, about: str, message: str | None = None) -> None:
    """Raise `KafkaError` unless the code is NONE. Its text is `about: message`; without a message, the code's name."""
    if code:
        error = error_of(code)
        raise KafkaError(error, f"{about}: {message or sentence(error)}")


def of_partition(tp: TopicPartition, code: ErrorCode, text: str) -> KafkaError:
    """The error for a partition that cannot be read."""
    failure = KafkaError(code, text)
    failure.topic_partition = tp
    return failure


def unread(tp: TopicPartition, failure: KafkaError) -> KafkaError:
    """The error for fetched bytes of a partition that cannot be read."""
    text = f"reading {tp}: {failure}"
    if not isinstance(failure, DamagedBatch):
        return of_partition(tp, failure.code, text)
    damaged = DamagedBatch(failure.first, failure.last, text)
    damaged.topic_partition = tp
    return damaged


def own_fault(who: str, fault: Exception) -> KafkaError:
    """Log a fault of the client's own, and return the error that its caller is told. It is not retriable."""
    logger.error("%s met a fault of its own", who, exc_info=fault)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{who} met a fault of its own: {fault!r}")


def missing(about: str, more: str = "") -> NoSuchPartition:
    """The error for what does not exist, with `more` behind its text. The controller answered this, so asking again
    would not help."""
    return NoSuchPartition(f"{about}: unknown topic or partition{more}")


def unasked(what: str) -> KafkaError:
    """The error for a reply that does not have what was asked for."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker's reply {what}")


def all_of(results: Mapping[K, V], wanted: Collection[K]) -> dict[K, V]:
    """The result of each wanted item, in their order. Raises `KafkaError` if a reply has left one out."""
    missed = [one for one in wanted if one not in results]
    if missed:
        more = f" and {len(missed) - 1:,} more" if missed[1:] else ""
        raise unasked(f"leaves out {missed[0]}{more}")
    return {one: results[one] for one in wanted}


def only_one(results: Sequence[V], about: str) -> V:
    """The result of the only part that was asked for. Raises `KafkaError` if the reply has none, or others."""
    if len(results) != 1:
        raise unasked(f"has {len(results)} results for {about}")
    return results[0]


def sentence(error: ErrorCode) -> str:
    """The name of an error code as words: `NOT_LEADER_OR_FOLLOWER` is "not leader or follower"."""
    return error.name.lower().replace("_", " ")


def tried(failure: KafkaError, for_s: float) -> KafkaError:
    """The last failure of a call that was retried for this long, in seconds: from a second on its text says so."""
    if for_s >= 1:
        failure.args = (f"{failure} (after {for_s:.0f} s of retries)",)
    return failure


class RetryLog:
    """Writes the log lines about failures that one client retries.

    Each failure is logged at DEBUG. Once failures have lasted `QUIET_S` seconds, at most one in `QUIET_S` seconds is
    logged as a WARNING: a broker's restart causes no warning, a longer absence does. Until a broker was `reached` for
    the first time, and for topics that do not exist, `UNREACHABLE_S` are enough: an address or a name is wrong, or no
    broker runs there. `latest` is the text of the last failure. `client_id` begins each line; `now_s` is a monotonic
    clock.
    """

    QUIET_S = 5.0
    UNREACHABLE_S = 1.0

    def __init__(self, client_id: str, now_s: Callable[[], float]):
        self._client_id = client_id
        self.now_s = now_s
        self.latest = ""
        self.reached = False
        self._warned_s = -math.inf

    def failed(self, what: str, attempt: int, since_s: float, wait_ms: int, *, is_named_wrong: bool = False) -> None:
        """Log that `what` failed for the `attempt`th time in a row, the first time at `since_s`. `is_named_wrong`: a
        topic does not exist."""
        self.latest = what
        now_s = self.now_s()
        quiet_s = self.QUIET_S if self.reached and not is_named_wrong else self.UNREACHABLE_S
        loud = now_s - since_s >= quiet_s and now_s - self._warned_s >= self.QUIET_S
        if loud:
            self._warned_s = now_s
        level = logging.WARNING if loud else logging.DEBUG
        line = "%s: %s (attempt %d in %.1f s, next in %d ms)"
        logger.log(level, line, self._client_id, what, attempt, now_s - since_s, wait_ms)

    def no_answer(self, address: object) -> None:
        """Warn that a broker is dialled and does not answer, unless one was reached before."""
        if not self.reached:
            self._warned_s = self.now_s()
            logger.warning("%s: %s does not answer; connecting goes on", self._client_id, address)


class Backoff:
    """Waits that double from `first_ms` to `last_ms`. Each is shortened by up to a fifth at random, so that clients do
    not retry in step. `about` names the attempted action in the log, for failures that do not name it themselves."""

    def __init__(self, random: Random, log: RetryLog, about: str = "", first_ms: int = 50, last_ms: int = 1_000):
        self._random = random
        self._log = log
        self._about = about
        self._first_ms = first_ms
        self._last_ms = last_ms
        self._next_ms = first_ms
        self._attempts = 0
        self._since_s = 0.0

    def next_ms(self) -> int:
        """The wait before the next attempt, in ms."""
        wait_ms = self._next_ms
        self._next_ms = min(wait_ms * 2, self._last_ms)
        if not self._attempts:
            self._since_s = self._log.now_s()
        self._attempts += 1
        return wait_ms - self._random.below(max(wait_ms // 5, 1))

    def say(self, failure: MoldauError, wait_ms: int) -> None:
        """Log the failure that causes this wait."""
        what = f"{self._about}: {failure}" if self._about else str(failure)
        missing = isinstance(failure, UnknownTopicOrPartition)
        self._log.failed(what, self._attempts, self._since_s, wait_ms, is_named_wrong=missing)

    def after_ms(self, failure: MoldauError) -> int:
        """Log this failure and return the wait before the next attempt, in ms."""
        wait_ms = self.next_ms()
        self.say(failure, wait_ms)
        return wait_ms

    def reset(self) -> None:
        """Start again at the shortest wait, because an attempt succeeded."""
        self._next_ms = self._first_ms
        self._attempts = 0
