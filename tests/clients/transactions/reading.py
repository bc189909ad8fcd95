"""What lies in a topic, to its end, for the judges: and a load that is written meanwhile."""

import threading
from collections.abc import Sequence
from itertools import count

from harness.patience import Deadline
from moldau.client.consuming.consumer import Consumer
from moldau.client.fetching import EARLIEST, LATEST
from moldau.client.producing.delivery import Delivery
from moldau.client.producing.producer import Producer
from moldau.errors import KafkaError
from moldau.names import TopicPartition

SECONDS_MAX = 60

Contents = dict[int, list[tuple[str, str]]]
"""By partition, keys and values in the order of the log."""


def contents(address: str, topic: str, partitions: int, isolation: str = "read_committed") -> Contents:
    """Everything up to where the partitions end for such a reader now."""
    found: Contents = {number: [] for number in range(partitions)}
    places = [TopicPartition(topic, number) for number in found]
    with Consumer(address, isolation_level=isolation) as consumer:
        consumer.assign(places)
        consumer.seek_to(dict.fromkeys(places, LATEST))
        ends = {place: consumer.position(place) or 0 for place in places}
        consumer.seek_to(dict.fromkeys(places, EARLIEST))
        until = Deadline(SECONDS_MAX)
        while any((consumer.position(place) or 0) < ends[place] for place in places):
            assert not until.passed, f"{topic} is not read to {ends}"
            for record in consumer.poll(200):
                if record.offset < ends[TopicPartition(topic, record.partition)]:
                    key, value = record.key or b"", record.value or b""
                    found[record.partition].append((key.decode(), value.decode()))
    return found


def size(found: Contents) -> int:
    return sum(len(rows) for rows in found.values())


class Feeder:
    """Sends numbered records, evenly over the partitions and steadily, until it is told that it is enough."""

    def __init__(self, address: str, topic: str, partitions: int, per_s: int = 150, values: Sequence[str] = ()):
        self.sent = 0
        self._partitions = partitions
        self._values = values
        self._enough = threading.Event()
        self._failures: list[Delivery] = []
        self._thread = threading.Thread(target=self._run, args=(address, topic, 1 / per_s), daemon=True)
        self._thread.start()

    def _run(self, address: str, topic: str, pause_s: float) -> None:
        deliveries = []
        with Producer(address, acks="all") as producer:
            for number in count():
                if self._enough.wait(pause_s):
                    break
                value = self._values[number % len(self._values)] if self._values else f"{number:06}"
                deliveries.append(producer.send(topic, value, str(number), partition=number % self._partitions))
                self.sent += 1
        self._failures = [delivery for delivery in deliveries if failed(delivery)]

    def stop(self) -> int:
        """How many it sent; all of them were acknowledged."""
        self._enough.set()
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive() and not self._failures, self._failures[:3]
        return self.sent


def failed(delivery: Delivery) -> bool:
    try:
        delivery.result(0)
    except KafkaError:
        return True
    return False
