"""The requests of one connection that have had their effect and are not answered yet, in the order of their replies.

Requests behind an unanswered one may be handled if it admits them. Their replies wait here as well, so that all replies
leave in the order of the requests. A connection has at most `UNANSWERED_MAX` of both.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from moldau.net.outbox import Piece
from moldau.runtime import Reply, Unanswered

UNANSWERED_MAX = 8

Taken: TypeAlias = tuple[list[Piece], BaseException | None]
"""Replies that may leave, and the error of the request behind them if that one failed."""


class UnansweredQueue:
    """`on_ready` is called when a request can be answered, not necessarily the first."""

    __slots__ = ("_on_ready", "_waiting")

    def __init__(self, on_ready: Callable[[], None]):
        self._on_ready = on_ready
        self._waiting: deque[Unanswered | Sequence[Piece]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= UNANSWERED_MAX

    @property
    def requests(self) -> list[Unanswered]:
        return [one for one in self._waiting if isinstance(one, Unanswered)]

    def admits(self, frame: memoryview) -> bool:
        """Whether this frame may be handled now: there is room for its reply, and every unanswered request admits
        it."""
        return not self.is_full and all(one.admits(frame) for one in self._waiting if isinstance(one, Unanswered))

    def add(self, request: Unanswered) -> None:
        self._waiting.append(request)
        request.response.add_done_callback(lambda _: self._on_ready())

    def behind(self, reply: Reply) -> None:
        """Keep a reply until all before it have left."""
        if reply:
            self._waiting.append(reply)

    def take(self) -> Taken:
        """What may leave now, in order. Behind a request that failed nothing is answered."""
        pieces: list[Piece] = []
        waiting = self._waiting
        while waiting:
            first = waiting[0]
            if isinstance(first, Unanswered):
                if not first.response.done():
                    break
                try:
                    pieces += first.pack(first.response.result()) or ()
                except BaseException as error:
                    self.cancel()
                    return pieces, error
            else:
                pieces += first
            waiting.popleft()
        return pieces, None

    def cancel(self) -> None:
        """Nothing is answered any more."""
        for one in self.requests:
            one.response.cancel()
        self._waiting.clear()
