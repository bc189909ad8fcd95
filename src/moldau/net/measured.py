"""Connections that measure how long their requests take, for metrics. A server without `RequestTimes` makes none.

A request takes from the moment that the loop turns to what its connection has sent, until its reply is handed to the
socket. The replies to the frames of one read leave together, so these frames all take as long as the read: two readings
of the clock and one addition, whatever their number. A request whose reply has to wait (for records, replicas,
members) takes until its answer is there.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from moldau.net.accepted import Connection, Handle
from moldau.net.durations import BUCKETS, Durations
from moldau.net.fair_share import SHARE_S
from moldau.replies import Answer, Muting, Reply, Unanswered

PLACES = 256
"""API keys below 128 have places of their own; those of our own APIs, which have two bytes, the others."""


class RequestTimes:
    """The times of all requests of a server. `by_place` has a histogram for each API: see `place`."""

    def __init__(self) -> None:
        self.by_place = [Durations() for _ in range(PLACES)]

    @staticmethod
    def place(key: int) -> int:
        """Where the requests with that API key are counted."""
        return key & 0xFF if key < 128 else key & 0xFF | 128


class MeasuredConnection(Connection):
    """An accepted connection that counts the times of its requests in `times`."""

    times: RequestTimes

    def begin(self, sent: bytes = b"") -> None:
        self._places = bytearray()
        """The APIs of the frames that were answered in the read being served."""
        super().begin(sent)
        if not self._closed:
            self._handle = self._measuring(self._handle)

    def _measuring(self, handle: Handle) -> Handle:
        note, later = self._places.append, self._later

        def measured(frame: memoryview) -> Answer:
            answer = handle(frame)
            place = frame[1] if not frame[0] else frame[1] | 128
            if type(answer) is list or answer is None:
                note(place)
                return answer
            return later(place, answer)

        return measured

    def _serve(self, nbytes: int, share_ends_at: float) -> None:
        places = self._places
        super()._serve(nbytes, share_ends_at)
        if not places:
            return
        seconds = self._stopwatch() - share_ends_at + SHARE_S
        first, times = places[0], self.times.by_place
        count = places.count(first)
        one = times[first]
        bits = int(seconds * 1e6).bit_length() if seconds > 0 else 0
        one.counts[bits if bits < BUCKETS else BUCKETS - 1] += count
        one.sum_s += seconds * count
        if count < len(places):
            for place in places:
                if place != first:
                    times[place].add(seconds)
        places.clear()

    def _later(self, place: int, answer: Any) -> Answer:
        """An answer that has to wait, or mutes its connection: counted once it is there."""
        if type(answer) is Muting:
            self._places.append(place)
            return answer
        began, stopwatch, durations = self._stopwatch(), self._stopwatch, self.times.by_place[place]
        if type(answer) is Unanswered:
            answer.response.add_done_callback(lambda _: durations.add(stopwatch() - began))
            return answer
        return _timed(cast("Awaitable[Reply | Muting | Unanswered]", answer), durations, stopwatch, began)


async def _timed(
    answer: Awaitable[Reply | Muting | Unanswered],
    durations: Durations,
    stopwatch: Callable[[], float],
    began: float,
) -> Reply | Muting | Unanswered:
    try:
        return await answer
    finally:
        durations.add(stopwatch() - began)


def measured(kind: type[Connection], times: RequestTimes) -> type[Connection]:
    """The class of such connections that are counted there."""
    return type(f"Measured{kind.__name__}", (MeasuredConnection, kind), {"times": times})
