"""The requests of one connection that have had their effect and are not answered yet, in the order of their replies.

Requests behind an unanswered one may be handled if it admits them. Their replies wait here as well, so that all replies
leave in the order of the requests. A connection has at most `UNANSWERED_MAX` of both, and of small requests, which
cost little memory while they wait, `SMALL_MAX`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from moldau.net.outbox import Piece
from moldau.replies import Muting, Reply, Unanswered

UNANSWERED_MAX = 8
SMALL_MAX = 64
SMALL_BYTES = 1 << 20
"""Requests are small as long as their frames have no more bytes than this together."""


class Taken(NamedTuple):
    """Replies that may leave, for how many milliseconds they mute their connection, and the error of the request behind
    them if that one failed."""

    pieces: list[Piece]
    muting_ms: int = 0
    error: BaseException | None = None


class UnansweredQueue:
    """`on_ready` is called in a turn of the loop of its own after requests could be answered, not necessarily the
    first one."""

    __slots__ = ("_admits", "_bytes", "_is_ready", "_loop", "_on_ready", "_waiting")

    def __init__(self, on_ready: Callable[[], None], loop: asyncio.AbstractEventLoop):
        self._on_ready = on_ready
        self._loop = loop
        self._is_ready = False
        self._waiting: deque[tuple[Unanswered | Sequence[Piece], int]] = deque()
        """Each with the size of its request's frame."""
        self._bytes = 0
        self._admits: Callable[[memoryview], bool]
        """Of the latest request, and so of all."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def requests(self) -> list[Unanswered]:
        return [one for one, _ in self._waiting if isinstance(one, Unanswered)]

    def admits(self, frame: memoryview) -> bool:
        """Whether this frame may be handled now: nothing is unanswered, or there is room for its reply and the
        unanswered requests admit it."""
        count = len(self._waiting)
        if not count:
            return True
        if count >= UNANSWERED_MAX and (count >= SMALL_MAX or self._bytes + len(frame) > SMALL_BYTES):
            return False
        return self._admits(frame)

    def add(self, request: Unanswered, size: int = SMALL_BYTES) -> None:
        """`size`: of the request's frame, if that is known."""
        self._admits = request.admits
        self._waiting.append((request, size))
        self._bytes += size
        request.response.add_done_callback(self._one_is_there)

    def behind(self, reply: Reply, size: int = SMALL_BYTES) -> None:
        """Keep a reply until all before it have left. `size`: as for `add`."""
        if reply:
            self._waiting.append((reply, size))
            self._bytes += size

    def _one_is_there(self, _: Any) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._loop.call_soon(self._ready)

    def _ready(self) -> None:
        self._is_ready = False
        self._on_ready()

    def take(self) -> Taken:
        """What may leave now, in order. Behind a request that failed nothing is answered."""
        pieces: list[Piece] = []
        muting_ms, waiting = 0, self._waiting
        while waiting:
            first, size = waiting[0]
            if isinstance(first, Unanswered):
                if not first.response.done():
                    break
                try:
                    reply = first.pack(first.response.result())
                except BaseException as error:
                    self.cancel()
                    return Taken(pieces, muting_ms, error)
                if isinstance(reply, Muting):
                    muting_ms = max(muting_ms, reply.ms)
                    reply = reply.reply
                if isinstance(reply, Unanswered):
                    waiting[0] = reply, size
                    reply.response.add_done_callback(self._one_is_there)
                    break
                pieces += reply or ()
            else:
                pieces += first
            waiting.popleft()
            self._bytes -= size
        return Taken(pieces, muting_ms)

    def cancel(self) -> None:
        """Nothing is answered any more."""
        for one in self.requests:
            one.response.cancel()
        self._waiting.clear()
        self._bytes = 0
