"""For how long answers of a cluster are kept, and `SharedAnswer`, one that several pages share."""

import asyncio
from collections.abc import Callable
from typing import Any

KEPT_S = 5.0
"""Lists of names are kept for this long: pages of one list agree, and typing in its filter asks nothing."""
READERS_KEPT_S = 15.0
"""The same of the topics that each group reads, for which all groups are asked."""
KEPT_TIMES = 300
"""An answer is kept for this many times as long as it took: what is asked about a whole cluster takes less than 1% of
its time, so that the 99th percentile of other requests stays what it is."""
KEPT_MAX_S = 300.0
"""Nothing is kept for longer than this: an answer may have waited for a broker that is down."""
UNHEALTHY_TIMES, UNHEALTHY_MAX_S = 60, 30.0
"""In place of `KEPT_TIMES` and `KEPT_MAX_S` for the counts of a cluster that has partitions without a leader or an
in-sync replica: somebody waits for them to change."""
LAGS_KEPT_S, LAGS_MAX = 60.0, 20_000
"""A group that stands still waits for the same records: their timestamps are not fetched again at each look."""
ROWS_KEPT_S, ROWS_TIMES = 2.0, 100
"""The same of the rows of one part of a list, for which all its partitions are asked for offsets."""
PULSE_KEPT_S = 1.9
"""Plots ask every two seconds: one answer serves all browsers."""
QUESTIONS_MAX = 200
"""Beyond this number, answers that are there are forgotten."""


class SharedAnswer:
    """An answer that several requests share, on its way or there. `now_s` is the loop's clock."""

    def __init__(self, task: "asyncio.Task[Any]", now_s: Callable[[], float]):
        self.task = task
        self._began_s, self._ended_s, self._now_s = now_s(), 0.0, now_s
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[Any]") -> None:
        self._ended_s = self._now_s()
        if not task.cancelled():
            task.exception()  # the loop would log a failure that no page has waited for

    def is_over(self, now_s: float, kept_s: float, times: int, most_s: float = KEPT_MAX_S) -> bool:
        """Whether the answer has failed or is too old. An answer that took long is kept longer, up to `most_s`."""
        if not self.task.done():
            return False
        failed = self.task.cancelled() or self.task.exception() is not None
        slow_s = min(times * (self._ended_s - self._began_s), most_s)
        return failed or now_s - self._ended_s > max(kept_s, slow_s)
