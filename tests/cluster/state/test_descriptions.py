"""Where values come from, as DescribeConfigs tells it: what Kafka 4.3.1 answered to the same settings."""

import pytest

from moldau.cluster.state.descriptions import ConfigSource, ConfigSources, ConfigSynonym, DescribedConfig
from moldau.config import OURS, SETTINGS, TOPIC_SETTINGS, broker_config

STATIC = {
    "log.retention.hours": "24",
    "log.retention.minutes": "100",
    "log.roll.hours": "5",
    "message.max.bytes": "2000000",
    "log.roll.jitter.hours": "1",
}


def sources(own: dict[str, str] | None = None, everyone: dict[str, str] | None = None) -> ConfigSources:
    static, _ = broker_config(STATIC)
    in_force, _ = broker_config({**STATIC, **(everyone or {}), **(own or {})})
    return ConfigSources(static, in_force, own or {}, everyone or {})


def one(found: list[DescribedConfig], name: str) -> tuple[str | None, int, list[tuple[str, str | None, int]]]:
    (described,) = [each for each in found if each.setting.name == name]
    return described.value, described.source, [(each.name, each.value, each.source) for each in described.synonyms]


MAX_BYTES = [("message.max.bytes", "2000000", 4), ("message.max.bytes", "1048588", 5)]
RETENTION = [("log.retention.minutes", "100", 4), ("log.retention.hours", "24", 4), ("log.retention.hours", "168", 5)]


@pytest.mark.parametrize(
    ("overrides", "name", "told"),
    [
        ({}, "retention.ms", ("6000000", 5, [])),
        ({}, "segment.ms", ("18000000", 5, [])),
        ({}, "segment.jitter.ms", ("3600000", 5, [])),
        ({}, "max.message.bytes", ("2000000", 4, MAX_BYTES)),
        ({}, "min.insync.replicas", ("1", 3, [("min.insync.replicas", "1", 3), ("min.insync.replicas", "1", 5)])),
        ({}, "leader.replication.throttled.replicas", ("", 5, [])),
        ({"retention.ms": " 77 "}, "retention.ms", ("77", 1, [("retention.ms", "77", 1)])),
        ({"max.message.bytes": "99"}, "max.message.bytes", ("99", 1, [("max.message.bytes", "99", 1), *MAX_BYTES])),
    ],
)
def test_a_topics_setting_tells_its_own_value_and_the_brokers(
    overrides: dict[str, str], name: str, told: object
) -> None:
    assert one(sources().topic(overrides), name) == told


def test_what_was_changed_on_the_running_broker_comes_before_what_it_started_with() -> None:
    changed = sources({"log.retention.ms": "88888"}, {"log.retention.ms": "99999", "log.roll.ms": "7777777"})
    dynamic = [("log.retention.ms", "88888", 2), ("log.retention.ms", "99999", 3)]
    assert one(changed.topic({}), "retention.ms") == ("88888", 2, dynamic + RETENTION)
    assert one(changed.broker(), "log.retention.ms") == ("88888", 2, dynamic + RETENTION)
    roll = [("log.roll.ms", "7777777", 3), ("log.roll.hours", "5", 4), ("log.roll.hours", "168", 5)]
    assert one(changed.topic({}), "segment.ms") == ("7777777", 3, roll)
    assert [(each.setting.name, each.value, each.source) for each in changed.all_brokers()] == [
        ("log.retention.ms", "99999", 3),
        ("log.roll.ms", "7777777", 3),
        ("min.insync.replicas", "1", 3),
    ]


def test_the_replicas_that_must_be_in_sync_count_as_said_for_all_brokers_until_somebody_says_otherwise() -> None:
    name = "min.insync.replicas"
    assert one(sources().broker(), name) == ("1", 3, [(name, "1", 3), (name, "1", 5)])
    changed = sources(everyone={name: "2"})
    assert one(changed.broker(), name) == ("2", 3, [(name, "2", 3), (name, "1", 5)])
    assert one(changed.all_brokers(), name) == ("2", 3, [(name, "2", 3)])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("log.retention.ms", (None, 5, [])),
        ("log.retention.minutes", ("100", 4, RETENTION)),
        ("log.retention.hours", ("24", 4, RETENTION[1:])),
        ("num.partitions", ("1", 5, [("num.partitions", "1", 5)])),
    ],
)
def test_a_brokers_setting_tells_its_weaker_names_too(name: str, told: object) -> None:
    assert one(sources().broker(), name) == told


def test_every_setting_is_described_once_in_the_order_of_names() -> None:
    assert [each.setting.name for each in sources().topic({})] == sorted(TOPIC_SETTINGS.keys() - set(OURS))
    assert [each.setting.name for each in sources().broker()] == sorted(SETTINGS)


def test_sources_have_kafkas_numbers() -> None:
    assert [source.value for source in ConfigSource] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert ConfigSynonym("a", None, ConfigSource.TOPIC).source == 1


def test_a_setting_that_is_only_set_while_a_broker_runs_is_described_where_it_was_set() -> None:
    rate = "leader.replication.throttled.rate"
    assert all(each.setting.name != rate for each in sources().broker())
    told = sources({rate: " 5 "}, {rate: "7"})
    assert one(told.broker(), rate) == ("5", 2, [(rate, "5", 2), (rate, "7", 3)])
    assert one(told.all_brokers(), rate) == ("7", 3, [(rate, "7", 3)])
    assert [each.setting.name for each in told.broker()] == sorted([*SETTINGS, rate])


def test_a_brokers_number_was_said_by_somebody_even_where_it_is_the_default() -> None:
    everything = sources().broker()
    assert one(everything, "broker.id") == ("1", 4, [("broker.id", "1", 4), ("broker.id", "-1", 5)])
    assert one(everything, "node.id")[1] == 4
