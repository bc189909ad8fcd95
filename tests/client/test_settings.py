"""How settings are given: by keyword, in a mapping with Kafka's names, and what is said of wrong ones."""

import dataclasses
import inspect
import logging
import re

import pytest

import moldau
from moldau.client.administration.admin import AdminSettings
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.foreign_names import RENAMED
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.client.settings import ClientSettings, kafka_name, read_settings
from moldau.errors import ConfigError
from tests.client.settings_of_others import NAMES

KINDS = (ProducerSettings, ConsumerSettings, AdminSettings)


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
        ConfigError, match=r"setting queue\.buffering\.max\.ms: that is librdkafka's name, Kafka's is linger\.ms$"
    ):
        producer_settings({"bootstrap.servers": "a:1", "queue.buffering.max.ms": 5})
    with pytest.raises(ConfigError, match=r"Kafka's is delivery\.timeout\.ms$"):
        producer_settings(message_timeout_ms=5)


def test_every_name_that_kafka_has_instead_of_another_one_is_a_setting() -> None:
    ours = {kafka_name(f.name) for kind in KINDS for f in dataclasses.fields(kind)}
    assert not {name.split(" ")[0] for names in RENAMED.values() for name in names.values()} - ours


@pytest.mark.parametrize("library", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_of_another_client_is_known_by_name(library: str, kind: type[ClientSettings]) -> None:
    own = {field.name for field in dataclasses.fields(kind)}
    for name in NAMES[library]:
        if name.replace(".", "_") in own:
            continue
        for arguments, named in ((({name: "x"},), {}), ((), {name.replace(".", "_"): "x"})):
            said = ""
            try:
                read_settings(kind, "The client", arguments, named)
            except ConfigError as refused:
                said = str(refused)
            assert "did you mean" not in said and (not said or ": " in said), (name, said)


@pytest.mark.parametrize("kind", KINDS)
def test_a_setting_of_one_of_our_clients_has_no_effect_on_the_others(kind: type[ClientSettings]) -> None:
    fields = [field for other in KINDS for field in dataclasses.fields(other)]
    names = {field.name for field in fields if not field.metadata["internal"]}
    own = {field.name for field in dataclasses.fields(kind)}
    for name in names - own:
        assert read_settings(kind, "The client", ({kafka_name(name): "1"},), {}).client_id.startswith("moldau")


def test_a_value_that_asks_for_what_our_clients_do_anyway_has_no_effect_however_it_is_written() -> None:
    for value in ("True", " true ", True):
        assert ConsumerSettings("a:1") == read_settings(
            ConsumerSettings, "Consumer", ({"bootstrap.servers": "a:1", "exclude.internal.topics": value},), {}
        )
    for value in ("False", "false ", False):
        assert producer_settings({"bootstrap.servers": "a:1", "enable.gapless.guarantee": value})


def test_a_guarantee_that_our_producer_does_not_give_is_refused() -> None:
    with pytest.raises(ConfigError, match="records behind one that has failed are sent all the same"):
        producer_settings({"bootstrap.servers": "a:1", "enable.gapless.guarantee": "true"})


def test_all_settings_of_a_java_program_are_understood_by_each_client(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "moldau.client.settings")
    properties = {
        "bootstrap.servers": "a:1",
        "client.id": "billing",
        "security.protocol": "plaintext",
        "ssl.endpoint.identification.algorithm": "",
        "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        "value.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
        "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        "linger.ms": "20 ",
        "max.block.ms": "9223372036854775807",
        "group.id": "bills",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        "metadata.max.age.ms": "60000",
        "retry.backoff.ms": "250",
        "retry.backoff.max.ms": "2000",
        "socket.connection.setup.timeout.ms": "5000",
        "interceptor.classes": "",
        "send.buffer.bytes": "131072",
        "retries": "3",
    }
    made = [read_settings(kind, kind.__name__, (properties,), {}) for kind in KINDS]
    assert all(one.metadata_max_age_ms == 60_000 and one.retry_backoff_ms == 250 for one in made)
    assert all(one.retry_backoff_max_ms == 2_000 and one.socket_connection_setup_timeout_ms == 5_000 for one in made)
    producer, consumer, _ = made
    assert isinstance(producer, ProducerSettings) and isinstance(consumer, ConsumerSettings)
    assert (producer.linger_ms, producer.max_block_ms, producer.key_serializer) == (20, (1 << 31) - 1, None)
    assert consumer.key_deserializer is not None and consumer.key_deserializer(b"key") == "key"
    assert consumer.value_deserializer is None and consumer.group_id == "bills"
    assert "AdminSettings: these settings have no effect here: group.id, interceptor.classes, " in caplog.messages[2]


@pytest.mark.parametrize(
    ("client", "arguments", "named", "sentence"),
    [
        (ProducerSettings, [{"sasl.login.class": "com.x.Login"}], {}, "sasl_oauth_token_provider takes a function"),
        (ProducerSettings, [{"ssl.crl.location": "ca"}], {}, "lists of revoked certificates are not read"),
        (
            AdminSettings,
            [{"security.protocol": "SASL_SSL"}],
            {},
            "SASL_SSL needs sasl_mechanism: PLAIN",
        ),
        (ConsumerSettings, [], {"security_protocol": "TLS"}, "'TLS' is not one of PLAINTEXT, SSL, SASL_PLAINTEXT"),
        (ConsumerSettings, [], {"sasl_plain_password": "p"}, "sasl_password is given without security_protocol"),
        (ConsumerSettings, [], {"api_version": (2, 5)}, "api_version: each broker says which versions"),
        (ProducerSettings, [{"statistics.interval.ms": 5000}], {}, "metrics() of a producer or consumer returns them"),
        (ProducerSettings, [], {"error_cb": print}, "error_cb: errors are raised by the call that they concern"),
        (ProducerSettings, [], {"group_id": "x"}, "The client has no setting group_id: the consumer has it"),
        (ProducerSettings, [{"interceptor.classes": "com.x.Audit"}], {}, "interceptor.classes: interceptors takes obj"),
        (ProducerSettings, [{"key.serializer": "com.x.Made"}], {}, "key.serializer='com.x.Made' is a class of Java's"),
        (ConsumerSettings, [], {"something_else": 1}, "The client has no setting something_else$"),
        (ConsumerSettings, [{"some.interval.ms": 1}], {}, "The client has no setting some.interval.ms$"),
        (ConsumerSettings, ["orders"], {"group_id": "x"}, "and 'orders' has no port; if it is a topic, call subscribe"),
        (ConsumerSettings, [], {"brokers": ["a:1"]}, "that is KafkaJS's name, Kafka's is bootstrap.servers$"),
        (ConsumerSettings, [{"brokers": "a:1"}], {}, "that is KafkaJS's name, Kafka's is bootstrap.servers$"),
        (ConsumerSettings, [{"broker.list": "a:1"}], {}, "that is Kafka 0.7's name, Kafka's is bootstrap.servers$"),
        (ConsumerSettings, [], {"broker_list": "a:1"}, "that is Kafka 0.7's name, Kafka's is bootstrap.servers$"),
        (AdminSettings, [], {"bootstrap_server": "a:1"}, "another client's name, Kafka's is bootstrap.servers$"),
        (ConsumerSettings, [], {"sessionTimeout": 5}, "that is KafkaJS's name, Kafka's is session.timeout.ms$"),
        (ConsumerSettings, [], {"topics": ["t"]}, "has no setting topics: send of a producer takes one, and subscribe"),
        (ConsumerSettings, [], {"topic": "t"}, "has no setting topic: send of a producer and subscribe of a consumer"),
        (
            ConsumerSettings,
            [{"groupId": "g"}],
            {},
            "groupId: that is KafkaJS's name, Kafka's is group.id$",
        ),
        (ProducerSettings, [], {"groupid": "g"}, "has no setting groupid: the consumer has it$"),
        (AdminSettings, [], {"groupId": "g"}, "has no setting groupId: the consumer has it$"),
        (
            ProducerSettings,
            [],
            {"partitioner": "consistent_random"},
            "'consistent_random' is librdkafka's: it hashes",
        ),
        (ProducerSettings, [], {"partitioner": "murmur2"}, "hashes keys as murmur2_random does, the default here, and"),
        (ProducerSettings, [], {"partitioner": "random"}, "partitioner_ignore_keys=True spreads all records"),
        (ProducerSettings, [], {"partitioner": "fnv1a_random"}, "is librdkafka's: it hashes keys by FNV-1a"),
        (ProducerSettings, [], {"partitioner": "sticky"}, "'sticky' is not one of round_robin, murmur2_random$"),
    ],
)
def test_what_others_have_and_we_do_not_is_answered_without_a_far_guess(
    client: type[ClientSettings], arguments: list[object], named: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence).replace(re.escape("$"), "$")):
        read_settings(client, "The client", tuple(arguments), named)


def test_a_broker_may_be_given_without_a_port_where_no_topic_can_be_meant() -> None:
    assert read_settings(ConsumerSettings, "Consumer", ("localhost",), {"group_id": "x"}).group_id == "x"
    assert read_settings(ConsumerSettings, "Consumer", ("kafka",), {}).bootstrap_servers == "kafka"
    assert read_settings(ConsumerSettings, "Consumer", ({"bootstrap.servers": "kafka", "group.id": "x"},), {}).group_id
