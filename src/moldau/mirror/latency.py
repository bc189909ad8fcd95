"""How long records take into the mirror: from their timestamps to the time when the target has committed them. Pure.

Times are read from batches, not from records: a few additions for a batch. As in MirrorMaker (replication-latency-ms),
a record whose producer gave it an old timestamp counts as late.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from moldau.metrics.families import Family, counter, gauge, labels
from moldau.names import TopicPartition
from moldau.records.batch import BatchHeader

WINDOW_S: Final = 30.0
"""The largest latency is that of the window that is running and of the one before it."""


class RecordTimes(NamedTuple):
    """Of records that are on their way: their number, the sum of their timestamps, and the oldest one, in ms."""

    records: int = 0
    total_ms: float = 0.0
    oldest_ms: float = float("inf")

    def with_batch(self, header: BatchHeader) -> "RecordTimes":
        """With the records of a batch, each at the batch's newest timestamp. Markers, and records that have no time, do
        not count."""
        newest = header.max_timestamp
        if header.is_control or newest < 0 or header.count <= 0:
            return self
        return RecordTimes(
            self.records + header.count, self.total_ms + header.count * newest, min(self.oldest_ms, newest)
        )


class ReplicationLatency:
    """Of one partition. `records`: how many have arrived; `total_s`: their latencies, added up."""

    __slots__ = ("_before_s", "_since_s", "_window_s", "records", "total_s")

    def __init__(self) -> None:
        self.records = 0
        self.total_s = 0.0
        self._since_s = 0.0
        self._window_s = self._before_s = 0.0

    def arrived(self, times: RecordTimes, wall_ms: float, now_s: float) -> None:
        """The target has these records. `wall_ms`: the time of day; `now_s`: of a clock that only goes forward. A
        timestamp in the future counts as no latency."""
        if times.records:
            self.records += times.records
            self.total_s += max(times.records * wall_ms - times.total_ms, 0.0) / 1000
            self._turn(now_s)
            self._window_s = max(self._window_s, (wall_ms - times.oldest_ms) / 1000)

    def max_s(self, now_s: float) -> float:
        """The largest latency of the last `WINDOW_S` to twice that; 0 without records."""
        self._turn(now_s)
        return max(self._window_s, self._before_s)

    def _turn(self, now_s: float) -> None:
        age_s = now_s - self._since_s
        if age_s >= WINDOW_S:
            self._before_s = self._window_s if age_s < 2 * WINDOW_S else 0.0
            self._since_s, self._window_s = now_s, 0.0


def latency_families(latencies: Mapping[TopicPartition, ReplicationLatency], now_s: float) -> list[Family]:
    """What Prometheus is told of partitions that records have arrived in."""
    known = [
        (labels(topic=tp.topic, partition=tp.partition), one) for tp, one in sorted(latencies.items()) if one.records
    ]
    return [
        counter(
            "moldau_mirror_partition_records",
            "Records that have arrived in the mirror.",
            [(where, one.records) for where, one in known],
        ),
        counter(
            "moldau_mirror_partition_latency_seconds",
            "From the timestamps of these records to their arrival, added up: divided by their number, the average.",
            [(where, one.total_s) for where, one in known],
        ),
        gauge(
            "moldau_mirror_partition_latency_max_seconds",
            "The longest time from a record's timestamp to its arrival, of the last 30 to 60 seconds.",
            [(where, one.max_s(now_s)) for where, one in known],
        ),
    ]
