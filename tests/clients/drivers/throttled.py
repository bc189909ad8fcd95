"""A client that sends or reads as fast as it may for some seconds, and prints how many bytes it had got through, every
tenth of a second, as JSON: `throttled.py ours|confluent produce|consume BOOTSTRAP TOPIC SECONDS`."""

import json
import sys
import time

VALUE = bytes(range(256)) * 40
"""Ten kilobytes."""


class Progress:
    def __init__(self) -> None:
        self.began = time.monotonic()
        self.bytes = 0
        self.seen: list[tuple[float, int]] = []

    def add(self, size: int) -> None:
        self.bytes += size

    def goes_on(self, seconds: float) -> bool:
        now = time.monotonic() - self.began
        if not self.seen or now - self.seen[-1][0] >= 0.1:
            self.seen.append((now, self.bytes))
        return now < seconds


def ours_produces(bootstrap: str, topic: str, seconds: float, progress: Progress) -> None:
    import moldau

    with moldau.Producer(bootstrap, client_id="slow") as producer:
        while progress.goes_on(seconds):
            sent = [producer.send(topic, VALUE) for _ in range(20)]
            producer.flush()
            progress.add(len(sent) * len(VALUE))


def ours_consumes(bootstrap: str, topic: str, seconds: float, progress: Progress) -> None:
    import moldau

    with moldau.Consumer(bootstrap, group_id="slow", client_id="slow", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        while progress.goes_on(seconds):
            for record in consumer.poll(timeout=0.1):
                progress.add(len(record.value or b""))


def confluent_produces(bootstrap: str, topic: str, seconds: float, progress: Progress) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "slow", "queue.buffering.max.kbytes": 2000})
    while progress.goes_on(seconds):
        try:
            producer.produce(topic, VALUE, on_delivery=lambda error, _: progress.add(0 if error else len(VALUE)))
        except BufferError:
            producer.poll(0.02)
        producer.poll(0)


def confluent_consumes(bootstrap: str, topic: str, seconds: float, progress: Progress) -> None:
    from confluent_kafka import Consumer

    settings = {
        "bootstrap.servers": bootstrap,
        "client.id": "slow",
        "group.id": "slow",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while progress.goes_on(seconds):
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            progress.add(len(message.value()))
    consumer.close()


library, what, bootstrap_servers, topic_name, for_seconds = sys.argv[1:]
its = Progress()
globals()[f"{library}_{what}s"](bootstrap_servers, topic_name, float(for_seconds), its)
print(json.dumps(its.seen), flush=True)
