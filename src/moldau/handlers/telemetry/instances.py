"""The clients that ask for subscriptions and push metrics, and what each of them may do now. Pure.

A client is known by the id that it was given, until it has been silent for three of its intervals, or a minute; one too
many puts out the one that was silent longest. A client that is not known, because it came from another broker, begins
anew: what it is asked for depends on nothing but the subscriptions and itself. Source: the order and the codes of Kafka
4.3.1.
"""

import uuid
from typing import Final

from moldau.errors import ErrorCode
from moldau.handlers.telemetry.subscribing import AskedMetrics

INSTANCES_MAX: Final = 16_384
SILENT_MIN_MS: Final = 60_000
SWEEP_MS: Final = 60_000
"""How often all clients are looked at for those that went silent."""
CODECS: Final = (4, 3, 1, 2)
"""zstd, lz4, gzip, snappy: what a client may compress with, the best first."""
KNOWN_CODECS: Final = (0, *CODECS)
NO_IDS: Final = (uuid.UUID(int=0), uuid.UUID(int=1))
"""Ids that Kafka reserves."""
_ASKS_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""After these a client asks what it should push before its interval is over."""
_NEVER: Final = -(1 << 62)


class TelemetryInstance:
    """One client. `version`: that of the subscriptions that `asked` comes from. Times are in milliseconds."""

    __slots__ = ("asked", "got_ms", "is_terminating", "last_error", "number", "pushed_ms", "seen_ms", "version")

    def __init__(self, client: uuid.UUID, asked: AskedMetrics, version: int):
        self.asked = asked
        self.number = asked.number(client)
        self.version = version
        self.got_ms = self.pushed_ms = _NEVER
        self.seen_ms = 0
        self.is_terminating = False
        self.last_error = ErrorCode.NONE

    def get(self, now_ms: int) -> ErrorCode:
        """The client asks what it should push: may it, now?"""
        if now_ms - max(self.got_ms, self.pushed_ms) >= self.asked.interval_ms:
            self.got_ms = now_ms
        elif self.last_error not in _ASKS_AGAIN:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        self.last_error = ErrorCode.NONE
        return ErrorCode.NONE

    def push(self, now_ms: int, number: int, codec: int, size: int, size_max: int, *, terminating: bool) -> ErrorCode:
        """The client pushes that many bytes for the subscription of that number: may it, now? Its last push before it
        ends need not wait for its interval."""
        error = self._judged(now_ms, number, codec, size, size_max, terminating)
        self.last_error, self.is_terminating = error, terminating
        return error

    def _judged(self, now_ms: int, number: int, codec: int, size: int, size_max: int, terminating: bool) -> ErrorCode:
        if self.is_terminating:
            return ErrorCode.INVALID_REQUEST
        # The first push after a client was told what to push comes at a random part of its interval.
        if self.got_ms > self.pushed_ms or now_ms - self.pushed_ms >= self.asked.interval_ms:
            self.pushed_ms = now_ms
        elif not terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if number != self.number:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if codec not in KNOWN_CODECS:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        return ErrorCode.TELEMETRY_TOO_LARGE if size > size_max else ErrorCode.NONE

    def is_silent(self, now_ms: int) -> bool:
        """Whether it has not asked or pushed for so long that it is forgotten."""
        return now_ms - self.seen_ms >= max(SILENT_MIN_MS, 3 * self.asked.interval_ms)


class TelemetryInstances:
    """The known clients by their ids, the one that was silent longest first."""

    def __init__(self, most: int = INSTANCES_MAX):
        self._known: dict[uuid.UUID, TelemetryInstance] = {}
        self._most = most
        self._swept_ms = 0

    def __len__(self) -> int:
        return len(self._known)

    def find(self, client: uuid.UUID, version: int, now_ms: int) -> TelemetryInstance | None:
        """The client, seen now; None if it is not known, or was asked by other subscriptions than those of today."""
        found = self._known.pop(client, None)
        if found is None or found.version != version or found.is_silent(now_ms):
            return None
        found.seen_ms = now_ms
        self._known[client] = found
        return found

    def put(self, client: uuid.UUID, asked: AskedMetrics, version: int, now_ms: int) -> TelemetryInstance:
        """A client that begins, or begins anew, and is seen now."""
        if now_ms - self._swept_ms >= SWEEP_MS:
            self._swept_ms = now_ms
            self._known = {one: known for one, known in self._known.items() if not known.is_silent(now_ms)}
        made = TelemetryInstance(client, asked, version)
        made.seen_ms = now_ms
        self._known.pop(client, None)
        if len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[client] = made
        return made
