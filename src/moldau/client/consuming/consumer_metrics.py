"""What a consumer has counted since it was started: `Consumer.metrics`, under the names of Kafka's consumer metrics.

Rates are those of the last 30 to 60 s. A consumer that was started later divides by the time since then, where Kafka
divides by 30 s.
"""

from collections.abc import Callable
from dataclasses import dataclass

WINDOW_S = 30.0
"""Half of the longest time that a rate covers (Kafka's metrics.sample.window.ms, with two samples)."""
AGE_S_MIN = 1.0
"""A rate divides by at least this much."""


@dataclass(frozen=True)
class ConsumerMetrics:
    """A snapshot of a consumer's counters. Sizes are in bytes, times in ms, rates per second."""

    records_consumed_total: int
    """Records that `poll`, iteration and tables have handed out."""
    records_consumed_rate: float
    bytes_consumed_total: int
    """Batches as they were fetched, compressed or not."""
    bytes_consumed_rate: float
    fetch_total: int
    """Fetch requests that brokers have answered."""
    fetch_rate: float
    fetch_size_avg: float
    """0 before the first reply, as all averages."""
    fetch_latency_avg_ms: float
    """From a Fetch request to its reply; a broker without new records waits for `fetch_max_wait_ms`."""
    fetch_latency_max_ms: float
    records_per_request_avg: float
    records_lag: int
    """Offsets between the positions and the ends of the assigned partitions, all together, as of the last Fetch."""
    records_lag_max: int
    """Those of the partition that has most."""
    buffered_bytes: int
    """Replies that are fetched and not handed out entirely."""
    assigned_partitions: int
    commit_total: int
    """Commits that the coordinator has answered, automatic ones included."""
    commit_failed_total: int
    commit_rate: float
    commit_latency_avg_ms: float
    """From the call to the coordinator's answer, retries included."""
    commit_latency_max_ms: float
    rebalance_total: int
    """Generations of the group (or member epochs) that this consumer has joined."""


class Meter:
    """A total, and its rate over the present window and the one before."""

    def __init__(self, now_s: float):
        self.total = 0
        self._window_began_s = now_s
        self._at_window = 0
        self._before_s, self._at_before = now_s, 0

    def add(self, amount: int, now_s: float) -> None:
        self._turn(now_s)
        self.total += amount

    def rate(self, now_s: float) -> float:
        """Per second."""
        self._turn(now_s)
        return (self.total - self._at_before) / max(now_s - self._before_s, AGE_S_MIN)

    def _turn(self, now_s: float) -> None:
        passed_s = now_s - self._window_began_s
        if passed_s < WINDOW_S:
            return
        idle = passed_s >= 2 * WINDOW_S
        self._before_s = now_s - WINDOW_S if idle else self._window_began_s
        self._at_before = self.total if idle else self._at_window
        self._window_began_s, self._at_window = now_s, self.total


class Latencies:
    """How many there were, their sum and the longest; in s."""

    def __init__(self) -> None:
        self.count, self.sum_s, self.max_s = 0, 0.0, 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum_s += seconds
        self.max_s = max(self.max_s, seconds)

    @property
    def avg_ms(self) -> float:
        return self.sum_s / self.count * 1000 if self.count else 0.0


class ConsumerCounters:
    """The counters of one consumer. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float]):
        self._now_s = now_s
        began_s = now_s()
        self._records, self._bytes, self._fetches, self._commits = (Meter(began_s) for _ in range(4))
        self._fetch_latency, self._commit_latency = Latencies(), Latencies()
        self._commits_failed = self._rebalances = 0

    def consumed(self, records: int) -> None:
        """Count records that are handed out. Called in the caller's thread."""
        self._records.add(records, self._now_s())

    def fetched(self, size: int, began_s: float) -> None:
        """Count the reply to a Fetch that was sent at `began_s`."""
        now_s = self._now_s()
        self._fetches.add(1, now_s)
        self._bytes.add(size, now_s)
        self._fetch_latency.add(now_s - began_s)

    def committed(self, began_s: float, failed: bool) -> None:
        """Count a commit that was begun at `began_s`."""
        if failed:
            self._commits_failed += 1
            return
        now_s = self._now_s()
        self._commits.add(1, now_s)
        self._commit_latency.add(now_s - began_s)

    def rebalanced(self) -> None:
        self._rebalances += 1

    def snapshot(self, *, lags: list[int], assigned: int, buffered_bytes: int) -> ConsumerMetrics:
        """`lags` are those of the partitions whose position and end are known."""
        now_s, fetches = self._now_s(), max(self._fetches.total, 1)
        return ConsumerMetrics(
            records_consumed_total=self._records.total,
            records_consumed_rate=self._records.rate(now_s),
            bytes_consumed_total=self._bytes.total,
            bytes_consumed_rate=self._bytes.rate(now_s),
            fetch_total=self._fetches.total,
            fetch_rate=self._fetches.rate(now_s),
            fetch_size_avg=self._bytes.total / fetches,
            fetch_latency_avg_ms=self._fetch_latency.avg_ms,
            fetch_latency_max_ms=self._fetch_latency.max_s * 1000,
            records_per_request_avg=self._records.total / fetches,
            records_lag=sum(lags),
            records_lag_max=max(lags, default=0),
            buffered_bytes=buffered_bytes,
            assigned_partitions=assigned,
            commit_total=self._commits.total,
            commit_failed_total=self._commits_failed,
            commit_rate=self._commits.rate(now_s),
            commit_latency_avg_ms=self._commit_latency.avg_ms,
            commit_latency_max_ms=self._commit_latency.max_s * 1000,
            rebalance_total=self._rebalances,
        )
