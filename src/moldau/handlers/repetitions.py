"""A bound on how often one request may name the same thing.

Apache Kafka 4.3.1 describes a topic, broker or group as often as the request names it: 2 MB that name one topic 100,000
times make a reply of 400 MB. Its clients name each one once. Here the first `NAMED_MAX` are answered as by Kafka, and
every further one with INVALID_REQUEST.
"""

from collections import Counter
from collections.abc import Hashable

NAMED_MAX = 10
TOO_OFTEN = f"the request names this more than {NAMED_MAX} times"


class Repetitions:
    """Counts the names in one request."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()

    def exceed(self, name: Hashable) -> bool:
        """Count `name`; whether the request has named it more than `NAMED_MAX` times by now."""
        self._counts[name] += 1
        return self._counts[name] > NAMED_MAX
