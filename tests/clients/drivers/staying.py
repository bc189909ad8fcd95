"""A client that stays logged in: it sends numbers for some seconds, each acknowledged before the next, and reads them
meanwhile: `staying.py ours|confluent BOOTSTRAP USER PASSWORD SECONDS`.

Its last line is `ok` and how many there were, or its error. Every number must come once and in order.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import round_trips

PAUSE_S = 0.02


def send(seconds: float, one: Callable[[bytes], None]) -> int:
    ends_at, sent = time.monotonic() + seconds, 0
    while time.monotonic() < ends_at:
        one(b"%d" % sent)
        sent += 1
        time.sleep(PAUSE_S)
    return sent


def read(poll: Callable[[], bytes | None], sender: threading.Thread, sent: list[int]) -> None:
    """Until the sender has ended, and then what is left. A number that comes twice, or not, ends it."""
    found, ends_at = 0, float("inf")
    while not sent or found < sent[0]:
        value = poll()
        if not sender.is_alive() and ends_at == float("inf"):
            assert sent, "the sender has failed"
            ends_at = time.monotonic() + round_trips.SECONDS
        assert time.monotonic() < ends_at, f"{found} of {sent} numbers came"
        if value is not None:
            assert int(value) == found, f"{value!r} came in place of {found}"
            found += 1
    assert poll() is None
    print(f"{found} numbers")


def sending(work: Callable[[], int]) -> tuple[threading.Thread, list[int]]:
    sent: list[int] = []
    thread = threading.Thread(target=lambda: sent.append(work()))
    thread.start()
    return thread, sent


def ours(bootstrap: str, user: str, password: str, seconds: str) -> None:
    import moldau

    settings: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": user,
        "sasl_password": password,
    }
    with (
        moldau.Producer(bootstrap, acks="all", **settings) as producer,
        moldau.Consumer(bootstrap, group_id="ours", auto_offset_reset="earliest", **settings) as consumer,
    ):
        consumer.subscribe(["ours"])
        found: list[bytes] = []

        def poll() -> bytes | None:
            if not found:
                found.extend(record.value or b"" for record in consumer.poll(timeout=0.5))
            return found.pop(0) if found else None

        read(poll, *sending(lambda: send(float(seconds), lambda value: producer.send("ours", value).result(20))))


def confluent(bootstrap: str, user: str, password: str, seconds: str) -> None:
    from confluent_kafka import Consumer, KafkaError, Producer

    failed: list[str] = []

    def seen(error: KafkaError) -> None:
        failed.append(str(error))

    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
        "error_cb": seen,
    }
    producer = Producer({**settings, "enable.idempotence": True})
    consumer = Consumer({**settings, "group.id": "confluent", "auto.offset.reset": "earliest"})
    consumer.subscribe(["confluent"])

    def one(value: bytes) -> None:
        producer.produce("confluent", value, on_delivery=lambda error, _: failed.append(str(error)) if error else None)
        assert producer.flush(round_trips.SECONDS) == 0 and not failed, failed

    def poll() -> bytes | None:
        message = consumer.poll(0.5)
        if message is None:
            return None
        if message.error() is not None:
            failed.append(str(message.error()))
            return None
        return bytes(message.value())

    read(poll, *sending(lambda: send(float(seconds), one)))
    consumer.close()
    assert not failed, failed


if __name__ == "__main__":
    round_trips.told({"ours": ours, "confluent": confluent})
