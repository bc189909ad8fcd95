"""A producer that writes small records steadily, and when each was acknowledged."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from types import TracebackType
from typing import Self

from moldau.client.producing.delivery import Delivery
from moldau.client.producing.producer import Producer
from moldau.errors import MoldauError

EVERY_S = 0.005


class SteadyWrites:
    """Writes a record to each partition of a topic every 5 ms, with acks=all, between `with` and its end. `sent` has
    the records, which are different ones; `acknowledged` the time of each acknowledgement (by `now_s`), by partition.
    `failed` has what could not be delivered."""

    def __init__(self, address: str, topic: str, partitions: int, now_s: Callable[[], float] = time.monotonic):
        self.now_s = now_s
        self.sent: list[bytes] = []
        self.acknowledged: list[list[float]] = [[] for _ in range(partitions)]
        self.failed: list[MoldauError] = []
        self._topic = topic
        self._producer = Producer(
            address, acks="all", enable_idempotence=True, linger_ms=0, delivery_timeout_ms=120_000
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        with suppress(MoldauError):  # it is in `failed`
            self._producer.close()

    def longest_gap_s(self, since_s: float) -> float:
        """The longest time without an acknowledgement in any partition, from `since_s` (by `now_s`) to now."""
        now_s, longest = self.now_s(), 0.0
        for times in self.acknowledged:
            moments = [since_s, *(one for one in list(times) if one > since_s), now_s]
            longest = max(longest, *(later - one for one, later in pairwise(moments)))
        return longest

    def first_after(self, moment_s: float) -> float | None:
        """When every partition has had an acknowledgement after that moment; None before that."""
        firsts = [next((one for one in list(times) if one > moment_s), None) for times in self.acknowledged]
        found = [one for one in firsts if one is not None]
        return max(found) if len(found) == len(firsts) else None

    def _write(self) -> None:
        while not self._over.is_set():
            for partition, times in enumerate(self.acknowledged):

                def note(delivery: Delivery, times: list[float] = times) -> None:
                    failure = delivery.exception(0)
                    if failure is None:
                        times.append(self.now_s())
                    else:
                        self.failed.append(failure)

                self.sent.append(b"%d" % len(self.sent))
                self._producer.send(self._topic, self.sent[-1], partition=partition).add_done_callback(note)
            time.sleep(EVERY_S)
