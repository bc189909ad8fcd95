"""Connections that measure how long their requests take, for metrics. A server without `RequestTimes` makes none.

A request takes from the moment that the loop turns to what its connection has sent, until its reply is handed to the
socket. The replies to the frames of one read leave together, so these frames all take as long as the read, which every
connection measures anyway. Requests (as -1 - the key of their API) and the seconds of reads are noted in one list, and
counted when it is long or somebody asks:

    -1 -1 -1 0.00021 -4 0.00009 -1 -2 0.00013     four Produces, a Metadata and a Fetch, in three reads

So a request costs its hot path one `append`, and a read another one. A request whose reply has to wait (for records,
replicas, members) is taken out again, and takes until its answer is there.
"""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Set
from itertools import groupby
from typing import Any

from moldau.net.accepted import Connection
from moldau.net.durations import Durations
from moldau.net.unanswered import UnansweredQueue
from moldau.replies import Muting, Reply, Unanswered


class RequestTimes:
    """The times of all requests of a server, by the keys of their APIs. In `noted` are the requests of each read, and
    behind them its seconds; the last read may go on (reads do not overlap)."""

    def __init__(self) -> None:
        self.noted: list[float] = []
        self._by_key: defaultdict[int, Durations] = defaultdict(Durations)
        self.unanswered: Counter[int] = Counter()
        """How many requests wait for their answers, or never got one since their connections ended."""

    def answered(self) -> Mapping[int, Durations]:
        """The times of all requests that were answered."""
        self.count()
        return self._by_key

    def seen(self) -> Set[int]:
        """The APIs that were asked for."""
        return self.answered().keys() | self.unanswered.keys()

    def requests(self, key: int) -> int:
        """How many requests have come."""
        answered = self.answered().get(key)
        return self.unanswered[key] + (0 if answered is None else answered.count)

    def add(self, key: int, seconds: float) -> None:
        """A request that waited was answered."""
        self._by_key[key].add(seconds)

    def count(self) -> None:
        """Count what is noted. Call it between two reads."""
        noted = self.noted
        if not noted:
            return
        keys, seconds = noted[::2], sorted(noted[1::2])
        # By far the commonest: each read has brought one request, of one API. Then Python's own loops do all of it.
        if len(seconds) == len(keys) == keys.count(keys[0]) and keys[0] < 0 <= seconds[0]:
            self._by_key[~int(keys[0])].add_all(seconds)
        else:
            self._count_reads()
        noted.clear()

    def _count_reads(self) -> None:
        """Count them read by read."""
        by_key, of_read = defaultdict[int, list[float]](list), list[tuple[int, int]]()
        for one, run in groupby(self.noted):
            if one < 0:
                of_read.append((~int(one), len(list(run))))
                continue
            for key, count in of_read:
                by_key[key] += [one] * count
            of_read.clear()
        for key, seconds in by_key.items():
            self._by_key[key].add_all(sorted(seconds))


class MeasuredConnection(Connection):
    """An accepted connection that counts the times of its requests in `times`."""

    times: RequestTimes

    def _count_noted(self) -> None:
        self.times.count()

    def _pause_for(self, later: Awaitable[Reply | Muting | Unanswered]) -> None:
        noted, key = self.times.noted, int.from_bytes(self.asked[:2], "big")
        if noted and noted[-1] == ~key:  # else it is a login's message, and no request
            noted.pop()
            later = self._answer_of(key).awaited(later)
        super()._pause_for(later)

    def _leave_unanswered(self, request: Unanswered, *size: int) -> UnansweredQueue:
        if size:  # it was handled in this read, where it was noted last
            request = self._answer_of(~int(self.times.noted.pop())).packed(request)
        return super()._leave_unanswered(request, *size)

    def _answer_of(self, key: int) -> "_AnswerTime":
        return _AnswerTime(self.times, key, self._stopwatch)


class _AnswerTime:
    """The time of one request whose answer has to wait; it runs from now on."""

    __slots__ = ("_began", "_key", "_stopwatch", "_times")

    def __init__(self, times: RequestTimes, key: int, stopwatch: Callable[[], float]):
        self._times = times
        self._key = key
        self._stopwatch = stopwatch
        self._began = stopwatch()
        times.unanswered[key] += 1

    def _ends(self) -> None:
        self._times.unanswered[self._key] -= 1
        self._times.add(self._key, self._stopwatch() - self._began)

    async def awaited(self, later: Awaitable[Reply | Muting | Unanswered]) -> Reply | Muting | Unanswered:
        """The same answer; the time ends when it is there."""
        answer = await later
        if isinstance(answer, Unanswered):
            return self.packed(answer)
        self._ends()
        return answer

    def packed(self, request: Unanswered) -> Unanswered:
        """The same request; the time ends when its reply is packed. (Its response has room for one callback only.)"""
        response, pack, admits = request

        def packed(answer: Any) -> Reply | Muting | Unanswered:
            reply = pack(answer)
            if isinstance(reply, Unanswered):
                return self.packed(reply)
            self._ends()
            return reply

        return Unanswered(response, packed, admits)


def measured(kind: type[Connection], times: RequestTimes) -> type[Connection]:
    """The class of such connections that are counted there."""
    return type(f"Measured{kind.__name__}", (MeasuredConnection, kind), {"times": times, "_noted": times.noted})
