"""What a broker counts of the metrics that clients push, for its own metrics."""

from moldau.errors import ErrorCode


class TelemetryCounts:
    """Since the start."""

    def __init__(self) -> None:
        self.pushes = self.throttled = self.unknown_subscriptions = self.refused = self.crowded = 0
        self.written = self.lost = self.bytes = 0

    def count(self, error: ErrorCode) -> None:
        """A push was judged."""
        self.pushes += 1
        if error is ErrorCode.THROTTLING_QUOTA_EXCEEDED:
            self.throttled += 1
        elif error is ErrorCode.UNKNOWN_SUBSCRIPTION_ID:
            self.unknown_subscriptions += 1
        elif error:
            self.refused += 1
