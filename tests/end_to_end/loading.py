"""Sends numbered messages with a client until all are settled, as a process of its own: `python loading.py CLIENT
ADDRESS TOPIC COUNT ACKS RESULT`.

CLIENT is `ours` or `confluent`; ACKS is `all` (idempotent) or `1` (not). Every 10,000 messages it prints how many it
has sent. At the end RESULT holds the offset of each message as int64 of this machine, -1 where none was acknowledged.
The environment of confluent-kafka has nothing of ours, so nothing of ours is imported for it.
"""

import sys
from array import array

STEP = 10_000
VALUE_BYTES = 100


def value_of(number: int) -> bytes:
    return b"%09d" % number + b"." * (VALUE_BYTES - 9)


def progress(number: int) -> None:
    if number % STEP == 0:
        print(number, flush=True)


def load_ours(address: str, topic: str, count: int, acks: str) -> "array[int]":
    from moldau.client.producing.producer import Producer
    from moldau.errors import KafkaError

    deliveries = []
    offsets = array("q", [-1]) * count
    with Producer(address, acks=acks, request_timeout_ms=10_000) as producer:
        for number in range(count):
            deliveries.append(producer.send(topic, value_of(number)))
            progress(number)
        for number, delivery in enumerate(deliveries):
            try:
                offsets[number] = delivery.result().offset
            except KafkaError as failure:
                print(failure, file=sys.stderr)
    return offsets


def load_confluent(address: str, topic: str, count: int, acks: str) -> "array[int]":
    from confluent_kafka import Producer

    offsets = array("q", [-1]) * count

    def settled(error: object, message: object) -> None:
        if error is None:
            offsets[int(message.value()[:9])] = message.offset()  # type: ignore[attr-defined]

    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": acks,
            "enable.idempotence": acks == "all",
            "reconnect.backoff.max.ms": 500,
            "linger.ms": 5,
            "log_level": 2,
        }
    )
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value_of(number), on_delivery=settled)
                break
            except BufferError:
                producer.poll(0.1)
        progress(number)
        if number % 100 == 0:
            producer.poll(0)
    producer.flush()
    return offsets


def main() -> None:
    client, address, topic, count, acks, result = sys.argv[1:]
    load = {"ours": load_ours, "confluent": load_confluent}[client]
    offsets = load(address, topic, int(count), acks)
    with open(result, "wb") as file:
        offsets.tofile(file)


if __name__ == "__main__":
    main()
