"""A group's settings: its own, else the broker's, else the default."""

import pytest

from moldau.config import GROUP_SETTINGS, SETTINGS, GroupConfig, broker_config, group_config
from moldau.errors import ConfigError

DEFAULTS = broker_config({})[0]
SESSION = "consumer.session.timeout.ms"


def test_nothing_said_anywhere_is_every_default() -> None:
    assert group_config(DEFAULTS, {}) == GroupConfig()
    for setting in GROUP_SETTINGS.values():
        assert setting.default == SETTINGS[setting.broker_names[0]].default


def test_a_group_inherits_from_the_broker_and_its_own_value_is_stronger() -> None:
    broker = broker_config({"group.consumer.session.timeout.ms": "50000"})[0]
    assert group_config(broker, {}).consumer_session_timeout_ms == 50_000
    assert group_config(broker, {SESSION: " 47000 "}).consumer_session_timeout_ms == 47_000


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({SESSION: "44999"}, r"must be within group\.consumer\.min\.session\.timeout\.ms and .*: 45000 to 60000"),
        ({SESSION: "60001"}, r"must be within .*: 45000 to 60000"),
        ({"consumer.heartbeat.interval.ms": "15001"}, "5000 to 15000"),
        ({"consumer.assignment.interval.ms": "15001"}, "0 to 15000"),
        ({SESSION: "soon"}, "must be a whole number"),
        ({"consumer.session.timeout": "1"}, f"no group setting .*did you mean {SESSION}"),
        ({"share.session.timeout.ms": "1"}, "no group setting"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        group_config(DEFAULTS, overrides)


def test_what_was_accepted_once_stays_when_the_brokers_bounds_change() -> None:
    narrow = broker_config({"group.consumer.max.session.timeout.ms": "46000"})[0]
    assert (
        group_config(narrow, {SESSION: "50000", "gone.by.now": "1"}, judge=False).consumer_session_timeout_ms == 50_000
    )
