"""How settings are given: by keyword, in a mapping with Kafka's names, and what is said of wrong ones."""

import dataclasses
import inspect

import pytest

import moldau
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.foreign_names import KAFKAS_NAMES
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.client.settings import kafka_name, read_settings
from moldau.errors import ConfigError


def producer_settings(*arguments: object, **named: object) -> ProducerSettings:
    return read_settings(ProducerSettings, "Producer", arguments, named)


def test_keywords_and_kafkas_names_mean_the_same() -> None:
    by_keyword = producer_settings("a:1,b:2", linger_ms=20, enable_idempotence=False, acks=1)
    kafka = {"bootstrap.servers": "a:1,b:2", "linger.ms": "20", "enable.idempotence": "false", "acks": "1"}
    assert by_keyword.acks_number == producer_settings(kafka).acks_number == 1
    assert producer_settings(kafka).linger_ms == by_keyword.linger_ms == 20
    assert producer_settings(kafka).enable_idempotence is by_keyword.enable_idempotence is False
    assert producer_settings(kafka).bootstrap_servers == by_keyword.bootstrap_servers == "a:1,b:2"


def test_a_mapping_and_keywords_may_be_combined() -> None:
    assert producer_settings({"bootstrap.servers": ["a:1", "b:2"]}, linger_ms=1).bootstrap_servers == "a:1,b:2"
    with pytest.raises(ConfigError, match="linger_ms is given both in the mapping and as an argument"):
        producer_settings({"linger.ms": 1}, linger_ms=1)


def test_without_an_address_the_environment_names_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOLDAU_BOOTSTRAP_SERVER", raising=False)
    assert producer_settings().bootstrap_servers == "localhost:9092"
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", "there:1")
    assert producer_settings().bootstrap_servers == "there:1"


@pytest.mark.parametrize(
    ("arguments", "named", "sentence"),
    [
        ([], {"linger": 5}, "Producer has no setting linger; did you mean linger_ms?"),
        ([], {"linger_ms": "5"}, "linger_ms='5' is not a whole number"),
        ([], {"linger_ms": 5.0}, "linger_ms=5.0 is not a whole number"),
        ([], {"linger_ms": True}, "linger_ms=True is not a whole number"),
        ([], {"linger_ms": None}, "linger_ms cannot be None"),
        ([], {"linger_ms": -5}, "linger_ms=-5 is not between 0 and 2147483647"),
        ([], {"linger_ms": 1 << 31}, "linger_ms=2147483648 is not between 0 and 2147483647"),
        ([], {"batch_size": 0}, "batch_size=0 is not between 1 and 2147483647"),
        ([], {"enable_idempotence": "true"}, "enable_idempotence='true' is not True or False"),
        ([], {"enable_idempotence": True, "acks": 1}, "enable_idempotence=True needs acks=all"),
        ([], {"acks": 2}, "acks='2' is not one of all, 1, 0, -1"),
        ([], {"compression_type": "zip"}, "compression_type='zip' is not one of none"),
        ([{"linger.mss": 5}], {}, "Producer has no setting linger.mss; did you mean linger.ms?"),
        ([{"linger.ms": "soon"}], {}, "linger.ms='soon' is not a whole number"),
        ([{"enable.idempotence": "yes"}], {}, "enable.idempotence='yes' is not true or false"),
        ([{"linger.ms": 5, "linger_ms": 5}], {}, "Producer was given linger_ms twice"),
        ([{"runtime": None}], {}, "Producer has no setting runtime"),
        (["a:1", "b:2"], {}, "Producer takes one argument without a name, the bootstrap servers or a mapping"),
        (["a:1"], {"bootstrap_servers": "b:1"}, "Producer was given bootstrap_servers twice"),
        ([5], {}, "bootstrap_servers=5 is not text, a list of host:port, or a mapping of settings"),
        ([[5]], {}, r"bootstrap_servers=\[5\] is not a list of host:port"),
    ],
)
def test_a_wrong_setting_is_one_sentence(arguments: list[object], named: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence.replace("?", r"\?")):
        producer_settings(*arguments, **named)


def test_wrong_settings_are_refused_before_anything_is_started() -> None:
    with pytest.raises(ConfigError, match="Producer has no setting linger; did you mean linger_ms"):
        moldau.Producer("localhost:9092", linger=5)
    with pytest.raises(ConfigError, match="'somewhere:' is not HOST:PORT"):
        moldau.Producer("somewhere:")


@pytest.mark.parametrize(
    ("clients", "settings_class"),
    [
        ((moldau.Producer, moldau.aio.Producer), ProducerSettings),
        ((moldau.Consumer, moldau.aio.Consumer), ConsumerSettings),
    ],
)
def test_every_setting_is_in_the_signature(clients: tuple[type, ...], settings_class: type) -> None:
    expected = inspect.signature(settings_class).parameters
    assert {"bootstrap_servers", "client_id"} < set(expected)
    for client in clients:
        assert inspect.signature(client).parameters == expected
        help_text = inspect.getdoc(client.__init__) or ""
        assert "request_timeout_ms (request.timeout.ms), default 30000: Wait this long" in help_text


def test_a_name_of_librdkafkas_is_answered_with_kafkas() -> None:
    with pytest.raises(
        ConfigError, match=r"queue\.buffering\.max\.ms, a name of librdkafka's: Kafka's name is linger\.ms$"
    ):
        producer_settings({"bootstrap.servers": "a:1", "queue.buffering.max.ms": 5})
    with pytest.raises(ConfigError, match=r"Kafka's name is delivery\.timeout\.ms$"):
        producer_settings(message_timeout_ms=5)


def test_every_name_that_kafka_has_instead_of_librdkafkas_is_a_setting() -> None:
    ours = {kafka_name(f.name) for kind in (ProducerSettings, ConsumerSettings) for f in dataclasses.fields(kind)}
    named = {name.split(" ")[0] for name in KAFKAS_NAMES.values() if "," not in name}
    assert not named - ours
