"""IncrementalAlterConfigs, decided: settings and what to do with them in, other settings or Kafka's code out."""

import pytest

from moldau.cluster.controlling import alterations
from moldau.cluster.controlling.alterations import Alteration, OpType, Replacement, broker_overrides, topic_overrides
from moldau.cluster.controlling.controller import Refusal
from moldau.config import SETTINGS, TOPIC_SETTINGS, WHILE_RUNNING, broker_config, with_changes
from moldau.errors import ConfigError, ErrorCode

CONFIG = broker_config({})[0]
SET, DELETE, APPEND, SUBTRACT = OpType
THROTTLED = "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("now", "alteration", "then"),
    [
        ({}, ("retention.ms", SET, "5"), {"retention.ms": "5"}),
        ({"retention.ms": "5"}, ("retention.ms", SET, "6"), {"retention.ms": "6"}),
        ({"retention.ms": "5"}, ("retention.ms", DELETE, None), {}),
        ({"retention.ms": "5"}, ("retention.ms", DELETE, "whatever"), {}),
        ({}, ("retention.ms", DELETE, None), {}),
        ({}, ("nothing.known", DELETE, None), {}),
        ({}, ("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": "compact"}, ("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "compact"}),
        ({"cleanup.policy": "delete,compact"}, ("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": "compact"}),
        ({}, ("cleanup.policy", SUBTRACT, "compact"), {"cleanup.policy": "delete"}),
        ({"cleanup.policy": "delete"}, ("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": ""}),
        ({}, (THROTTLED, APPEND, "0:1,1:1"), {THROTTLED: "0:1,1:1"}),
        ({THROTTLED: "0:1"}, (THROTTLED, APPEND, "1:1"), {THROTTLED: "0:1,1:1"}),
    ],
)
def test_a_setting_is_set_deleted_added_to_or_taken_from(
    now: dict[str, str], alteration: tuple[str, int, str | None], then: dict[str, str]
) -> None:
    before = dict(now)
    assert topic_overrides(CONFIG, now, [Alteration(*alteration)]) == then
    assert now == before


@pytest.mark.parametrize(
    ("alterations", "code"),
    [
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "5")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", -1, "5")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "5"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SUBTRACT, "5")], ErrorCode.INVALID_CONFIG),
        ([("nothing.known", APPEND, "5")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_done_is_refused_with_kafkas_code(
    alterations: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    result = topic_overrides(CONFIG, {}, [Alteration(*one) for one in alterations])
    assert isinstance(result, Refusal)
    assert result.code is code


@pytest.mark.parametrize(
    ("alteration", "then"),
    [
        (("log.segment.bytes", SET, "2000000"), {"log.segment.bytes": "2000000"}),
        (("log.cleanup.policy", APPEND, "compact"), {"log.cleanup.policy": "delete,compact"}),
        (("num.partitions", DELETE, None), {}),
    ],
)
def test_what_topics_inherit_can_be_changed_on_a_running_broker(
    alteration: tuple[str, int, str | None], then: dict[str, str]
) -> None:
    assert broker_overrides(CONFIG, {}, [Alteration(*alteration)]) == then


@pytest.mark.parametrize(
    "alteration",
    [
        ("num.partitions", SET, "3"),
        ("log.retention.hours", SET, "3"),
        ("node.id", SET, "2"),
        ("listeners", SET, "PLAINTEXT://:1"),
        ("foo.bar", SET, "3"),
        ("log.segment.bytes", SET, None),
    ],
)
def test_nothing_else_can(alteration: tuple[str, int, str | None]) -> None:
    result = broker_overrides(CONFIG, {}, [Alteration(*alteration)])
    assert isinstance(result, Refusal)
    assert result.code is ErrorCode.INVALID_REQUEST


def test_a_replacement_sets_what_it_names_and_takes_the_rest_back() -> None:
    now = {"retention.ms": "5", "segment.ms": "7", "unknown.by.now": "1"}
    assert topic_overrides(CONFIG, now, Replacement([("retention.ms", "6")])) == {"retention.ms": "6"}
    assert topic_overrides(CONFIG, now, Replacement([])) == {}


@pytest.mark.parametrize("settings", [[("retention.ms", None)], [("retention.ms", "1"), ("retention.ms", "2")]])
def test_a_replacement_without_a_value_or_with_two_is_refused(settings: list[tuple[str, str | None]]) -> None:
    result = topic_overrides(CONFIG, {}, Replacement(settings))
    assert isinstance(result, Refusal)
    assert result.code is ErrorCode.INVALID_REQUEST


def test_a_replacement_of_a_brokers_settings_may_not_name_those_that_are_read_at_start() -> None:
    result = broker_overrides(CONFIG, {}, Replacement([("num.partitions", "2")]))
    assert isinstance(result, Refusal)
    assert broker_overrides(CONFIG, {"message.max.bytes": "1"}, Replacement([])) == {}


@pytest.mark.parametrize("name", WHILE_RUNNING)
def test_what_is_only_set_while_a_broker_runs_is_kept_if_its_value_could_have_a_meaning(name: str) -> None:
    assert broker_overrides(CONFIG, {}, [Alteration(name, SET, "1000")]) == {name: "1000"}
    with_changes(CONFIG, {name: "1000"})
    for wrong in ("soon", "-1"):
        with pytest.raises(ConfigError, match=name):
            with_changes(CONFIG, {name: wrong})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("remote.log.metadata.custom.metadata.max.bytes", "a Kafka setting that this broker does not have"),
        ("ssl.keystore.location", "cannot be changed while the broker runs"),
        ("num.partitions", "cannot be changed while the broker runs"),
        ("no.such", "is not a setting of this broker"),
    ],
)
def test_what_a_broker_cannot_take_is_refused_with_the_reason(name: str, why: str) -> None:
    result = broker_overrides(CONFIG, {}, [Alteration(name, SET, "1")])
    assert isinstance(result, Refusal)
    assert why in (result.message or "")


def test_what_kafka_changes_on_a_running_broker_is_changed_here_too() -> None:
    """As Kafka 4.3.1 answers for every setting that we have, set to its own value for one broker and for all."""
    of_topics = {name for topic in TOPIC_SETTINGS.values() for name in topic.broker_names}
    kafkas = {
        "group.consumer.assignment.interval.ms",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "num.recovery.threads.per.data.dir",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
    }
    assert alterations.DYNAMIC - of_topics == kafkas | {"client.metrics.topic"}, "a setting of ours"
    assert all(not SETTINGS[name].read_only for name in alterations.DYNAMIC)
    assert {name for name in of_topics if not SETTINGS[name].read_only} <= alterations.DYNAMIC
