"""What a producer has counted since it was started."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ProducerMetrics:
    """A snapshot of a producer's counters. Sizes are in bytes, times in ms."""

    records_delivered: int
    """Records that the broker acknowledged; with acks=0, records that were sent."""
    records_failed: int
    records_retried: int
    """Records of batches that were sent again, once for each time."""
    records_waiting: int
    """Records in the buffer or on their way."""
    batches_delivered: int
    bytes_delivered: int
    """Batches as they were sent, after compression."""
    requests: int
    request_latency_avg_ms: float
    """From a Produce request to its reply; 0 before the first reply."""
    request_latency_max_ms: float
    buffer_used_bytes: int
    buffer_total_bytes: int


class Counters:
    """The counters of one producer; they are changed on its loop."""

    def __init__(self) -> None:
        self.records_delivered = self.records_failed = self.records_retried = 0
        self.batches_delivered = self.bytes_delivered = 0
        self.requests = self.replies = 0
        self.latency_s = self.latency_max_s = 0.0

    def replied(self, latency_s: float) -> None:
        """Count the reply to a request."""
        self.replies += 1
        self.latency_s += latency_s
        self.latency_max_s = max(self.latency_max_s, latency_s)

    def snapshot(self, *, records_waiting: int, used_bytes: int, total_bytes: int) -> ProducerMetrics:
        return ProducerMetrics(
            records_delivered=self.records_delivered,
            records_failed=self.records_failed,
            records_retried=self.records_retried,
            records_waiting=records_waiting,
            batches_delivered=self.batches_delivered,
            bytes_delivered=self.bytes_delivered,
            requests=self.requests,
            request_latency_avg_ms=self.latency_s / self.replies * 1000 if self.replies else 0.0,
            request_latency_max_ms=self.latency_max_s * 1000,
            buffer_used_bytes=used_bytes,
            buffer_total_bytes=total_bytes,
        )
