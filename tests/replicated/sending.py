"""Sends numbered records with a client, as a process of its own: `python sending.py CLIENT ADDRESSES TOPIC NAME RATE
RESULT`.

CLIENT is `ours`, `confluent` or `aiokafka`, all idempotent with acks=all. RATE records a second are sent until standard
input has a line with a number; then the rest up to that number, as fast as possible. Every 0.2 s it prints how many
records are acknowledged. At the end RESULT holds the place of each record as int64 of this machine, see `place_of`.
The environments of the other two have nothing of ours, so nothing of ours is imported for them.
"""

import asyncio
import os
import sys
import threading
import time
import zlib
from array import array
from collections.abc import Callable
from typing import Any

KEYS = 500
VALUE_BYTES = 100
UNKNOWN = -1
SOMEWHERE = -2
"""It is acknowledged, and the client does not know where."""
PARTITION_SHIFT = 48
PRINT_S, PACE_S = 0.2, 0.02
FOREVER_MS = 3_600_000
"""No record is given up."""
PATIENT_MS = 300_000
REQUEST_MS = 5_000
"""A request to a broker that stands still is sent anew after that time."""


def key_of(name: str, number: int) -> bytes:
    return b"%s-%d" % (name.encode(), zlib.crc32(b"%d" % number) % KEYS)


def value_of(name: str, number: int) -> bytes:
    return b"%s:%d:" % (name.encode(), number) + b"." * (VALUE_BYTES - number % 50)


def place_of(partition: int, offset: int) -> int:
    return partition << PARTITION_SHIFT | offset


class Sending:
    """One producer. `send(key, value, acknowledged)` is the client's; the client calls `acknowledged(place)`."""

    def __init__(self, name: str, rate: int):
        self.places = array("q")
        self.acknowledged = 0
        self.failure = ""
        self._name = name
        self._rate = rate
        self._until: int | None = None
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._tell, daemon=True).start()

    def _listen(self) -> None:
        line = sys.stdin.readline()
        if not line:  # whoever started this is gone
            os._exit(1)
        self._until = int(line)

    def _tell(self) -> None:
        while True:
            print(self.acknowledged, flush=True)
            time.sleep(PRINT_S)

    def settled(self, number: int, place: int) -> None:
        self.places[number] = place
        self.acknowledged += 1

    def run(self, send: Callable[[int, bytes, bytes], None], turn: Callable[[], object]) -> None:
        """Send, and call `turn` now and then."""
        began_s = time.monotonic()
        while self._until is None or len(self.places) < self._until:
            due = int((time.monotonic() - began_s) * self._rate) if self._until is None else self._until
            for _ in range(min(due - len(self.places), 1000)):
                number = len(self.places)
                self.places.append(UNKNOWN)
                send(number, key_of(self._name, number), value_of(self._name, number))
            turn()
            if self._until is None:
                time.sleep(PACE_S)


def send_ours(sending: Sending, addresses: str, topic: str) -> None:
    from moldau.client.producing.producer import Producer

    def send(number: int, key: bytes, value: bytes) -> None:
        def settled(failure: object, delivered: object) -> None:
            if failure is not None:
                sending.failure = f"number {number}: {failure!r}"
            else:
                sending.settled(number, place_of(delivered.partition, delivered.offset))  # type: ignore[attr-defined]

        producer.send(topic, value, key, on_delivery=settled)

    with Producer(
        addresses, request_timeout_ms=REQUEST_MS, delivery_timeout_ms=FOREVER_MS, max_block_ms=FOREVER_MS
    ) as producer:
        sending.run(send, lambda: None)


def send_confluent(sending: Sending, addresses: str, topic: str) -> None:
    from confluent_kafka import Producer

    def send(number: int, key: bytes, value: bytes) -> None:
        def settled(failure: object, message: object) -> None:
            if failure is not None:
                sending.failure = f"number {number}: {failure!r}"
            else:
                partition, offset = message.partition(), message.offset()  # type: ignore[attr-defined]
                # None: librdkafka concludes from the success of a later batch that this record was appended
                sending.settled(number, SOMEWHERE if offset is None else place_of(partition, offset))

        while True:
            try:
                producer.produce(topic, value, key, on_delivery=settled)
                return
            except BufferError:
                producer.poll(0.1)

    # One request at a time. When a batch comes behind a refused one of its partition, librdkafka (2.16.1) begins a new
    # epoch in all partitions, and sends batches again there that brokers may have appended: records come twice, on
    # Apache Kafka as well.
    producer = Producer(
        {
            "bootstrap.servers": addresses,
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": 1,
            "message.timeout.ms": FOREVER_MS,
            "request.timeout.ms": REQUEST_MS,
            "socket.timeout.ms": REQUEST_MS,
            "reconnect.backoff.max.ms": 1000,
            "linger.ms": 5,
            "log_level": 2,
        }
    )
    sending.run(send, lambda: producer.poll(0))
    producer.flush()


def send_aiokafka(sending: Sending, addresses: str, topic: str) -> None:
    from aiokafka import AIOKafkaProducer

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    async def made() -> Any:
        # A batch is given up after the time-out of requests.
        producer = AIOKafkaProducer(
            bootstrap_servers=addresses, enable_idempotence=True, request_timeout_ms=PATIENT_MS, linger_ms=5
        )
        await producer.start()
        return producer

    def in_loop(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def send(number: int, key: bytes, value: bytes) -> None:
        def settled(delivery: Any) -> None:
            if delivery.exception() is not None:
                sending.failure = f"number {number}: {delivery.exception()!r}"
            else:
                sending.settled(number, place_of(delivery.result().partition, delivery.result().offset))

        async def sent() -> None:
            (await producer.send(topic, value, key)).add_done_callback(settled)

        in_loop(sent())

    producer = in_loop(made())
    sending.run(send, lambda: None)
    in_loop(producer.stop())


def main() -> None:
    client, addresses, topic, name, rate, result = sys.argv[1:]
    sending = Sending(name, int(rate))
    {"ours": send_ours, "confluent": send_confluent, "aiokafka": send_aiokafka}[client](sending, addresses, topic)
    if sending.failure:
        raise SystemExit(sending.failure)
    print(sending.acknowledged, flush=True)
    with open(result, "wb") as file:
        sending.places.tofile(file)


if __name__ == "__main__":
    main()
