"""Interceptors of a producer, which see records before they are sent and what became of them."""

import pytest

from harness.patience import stretched
from moldau.client.administration.admin import Admin
from moldau.client.producing.delivery import Delivered
from moldau.client.producing.interceptors import ProducerInterceptor
from moldau.client.producing.outgoing import OutgoingRecord
from moldau.client.producing.producer import Producer
from moldau.errors import MessageTooLarge, MoldauError, NotDelivered
from tests.client.producing.beside import stored, values


class Stamping(ProducerInterceptor):
    def __init__(self) -> None:
        self.told: list[tuple[MoldauError | None, Delivered | None]] = []

    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        return record._replace(headers=[("by", b"interceptor")], value={"wrapped": record.value})

    def on_acknowledgement(self, error: MoldauError | None, delivered: Delivered | None) -> None:
        self.told.append((error, delivered))


class Failing:
    def on_send(self, record: OutgoingRecord) -> OutgoingRecord:
        raise ZeroDivisionError


class Forgetful:
    def on_send(self, record: OutgoingRecord) -> None:
        """Returns nothing."""


def test_an_interceptor_changes_the_record_before_it_is_serialized_and_hears_of_its_offset(
    bootstrap: str, topic: str
) -> None:
    stamping, told = Stamping(), []
    with Producer(bootstrap, interceptors=[stamping], value_serializer=lambda value: repr(value).encode()) as producer:
        producer.send(topic, 1, on_delivery=lambda error, delivered: told.append(delivered))
    [record] = stored(bootstrap, topic)
    assert (record["value"], record["headers"]) == (b"{'wrapped': 1}", [{"key": "by", "value": b"interceptor"}])
    [(error, delivered)] = stamping.told
    assert (error, delivered) == (None, told[0])


def test_what_an_interceptor_raises_is_logged_and_the_record_is_sent_as_it_was(
    bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Producer(bootstrap, interceptors=[Failing(), Forgetful()]) as producer:
        producer.send(topic, b"as it was").result(stretched(10))
    assert values(bootstrap, topic) == [b"as it was"]
    assert "ZeroDivisionError" in caplog.text
    assert "on_send returned None, not an OutgoingRecord" in caplog.text


def test_a_failure_that_only_an_interceptor_has_heard_of_is_still_raised(bootstrap: str, topic: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, configs={"max.message.bytes": "1000"})
    interceptor = Stamping()

    def run() -> None:
        with Producer(bootstrap, interceptors=[interceptor], value_serializer=lambda _: b"x" * 5_000) as producer:
            producer.send(topic, 1)

    with pytest.raises(NotDelivered):
        run()
    [(error, _)] = interceptor.told
    assert isinstance(error, MessageTooLarge)
