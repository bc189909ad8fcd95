"""A topic's settings: its own, else the broker's, else the default."""

import pytest

from moldau.config import SETTINGS, TOPIC_SETTINGS, TopicConfig, broker_config, topic_config
from moldau.errors import ConfigError

DEFAULTS = broker_config({})[0]
HOUR_MS = 3_600_000


def test_nothing_said_anywhere_is_every_default() -> None:
    assert topic_config(DEFAULTS, {}) == TopicConfig()


@pytest.mark.parametrize(
    ("broker", "field", "value"),
    [
        ({"log.retention.hours": "2"}, "retention_ms", 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "5"}, "retention_ms", 300_000),
        ({"log.retention.minutes": "5", "log.retention.ms": "7"}, "retention_ms", 7),
        ({"log.retention.hours": "-1"}, "retention_ms", -1),
        ({"log.retention.minutes": "-1"}, "retention_ms", -1),
        ({"log.roll.hours": "1"}, "segment_ms", HOUR_MS),
        ({"log.roll.hours": "1", "log.roll.ms": "9"}, "segment_ms", 9),
        ({"log.roll.jitter.hours": "1"}, "segment_jitter_ms", HOUR_MS),
        ({"log.flush.scheduler.interval.ms": "5"}, "flush_ms", 5),
        ({"log.flush.scheduler.interval.ms": "5", "log.flush.interval.ms": "6"}, "flush_ms", 6),
        ({"message.max.bytes": "77"}, "max_message_bytes", 77),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup_policy", ("compact", "delete")),
    ],
)
def test_a_topic_inherits_from_the_strongest_setting_of_the_broker(
    broker: dict[str, str], field: str, value: object
) -> None:
    assert getattr(topic_config(broker_config(broker)[0], {}), field) == value


def test_what_the_topic_says_is_stronger() -> None:
    config = topic_config(
        broker_config({"log.retention.ms": "7"})[0], {"retention.ms": "9", "cleanup.policy": "compact"}
    )
    assert (config.retention_ms, config.compacts, config.deletes) == (9, True, False)


@pytest.mark.parametrize(
    "overrides",
    [
        {"retentoin.ms": "1"},
        {"retention.ms": "x"},
        {"segment.bytes": "1"},
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        {"remote.storage.enable": "true"},
        {"leader.replication.throttled.replicas": "x"},
        {"follower.replication.throttled.replicas": "1:2,*"},
        {"mirror.source": "somewhere"},
        {"mirror.source": "gZW1xyrxToKXBiAjZfFIVg/a topic"},
    ],
)
def test_what_cannot_be_meant_is_refused(overrides: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        topic_config(DEFAULTS, overrides)


@pytest.mark.parametrize("replicas", ["*", "", "0:1,1:2"])
def test_replicas_to_throttle_are_all_none_or_named(replicas: str) -> None:
    topic_config(DEFAULTS, {"leader.replication.throttled.replicas": replicas})


def test_an_unknown_name_is_answered_with_the_closest() -> None:
    with pytest.raises(ConfigError, match=r"retention\.ms"):
        topic_config(DEFAULTS, {"retenton.ms": "1"})


def test_every_broker_setting_that_a_topic_inherits_has_the_same_default() -> None:
    for setting in TOPIC_SETTINGS.values():
        if setting.broker_names:
            assert set(setting.broker_names) <= SETTINGS.keys()
            assert getattr(topic_config(DEFAULTS, {}), setting.field) == setting.default
