"""How text becomes a value, for every kind of setting, and what is said when it cannot."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moldau.config import SETTINGS, TOPIC_SETTINGS, Setting, SettingType, Value
from moldau.errors import ConfigError

ALL = [*SETTINGS.values(), *TOPIC_SETTINGS.values()]
INTEGER = Setting("some.size", SettingType.INT, 1, "A size.", low=0)
LONG = Setting("some.time.ms", SettingType.LONG, 1, "A time.")
RATIO = Setting("some.ratio", SettingType.DOUBLE, 0.5, "A ratio.", low=0, high=1)
FLAG = Setting("some.flag", SettingType.BOOLEAN, False, "A flag.")
POLICY = Setting("some.policy", SettingType.LIST, (), "A policy.", choices=("compact", "delete"))
NAMES = Setting("some.names", SettingType.LIST, (), "Names.")
LEVEL = Setting("some.level", SettingType.INT, -1, "A level.", low=1, high=9, also=-1)


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (INTEGER, " +5 ", 5),
        (INTEGER, "2147483647", 2147483647),
        (LONG, "-9223372036854775808", -(1 << 63)),
        (RATIO, "0.50", 0.5),
        (RATIO, "1e-1", 0.1),
        (FLAG, "TRUE", True),
        (FLAG, " false ", False),
        (POLICY, " compact , delete ", ("compact", "delete")),
        (POLICY, "delete,delete", ("delete",)),
        (POLICY, "", ()),
        (NAMES, "a, b,a", ("a", "b", "a")),
        (LEVEL, "-1", -1),
    ],
)
def test_a_value_is_what_kafka_takes_it_for(setting: Setting, text: str, value: Value) -> None:
    assert setting.parse(text) == value


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (INTEGER, "x"),
        (INTEGER, ""),
        (INTEGER, "1_000"),
        (INTEGER, "1e3"),
        (INTEGER, "٣"),
        (INTEGER, "-1"),
        (INTEGER, "2147483648"),
        (LONG, "9223372036854775808"),
        (LONG, "9" * 1000),
        (RATIO, "1.5"),
        (RATIO, "nan"),
        (RATIO, "1_0"),
        (FLAG, "1"),
        (FLAG, "yes"),
        (POLICY, "none"),
        (POLICY, "compact,"),
        (LEVEL, "0"),
        (LEVEL, "10"),
        (NAMES, "a" * 100_000),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_a_sentence_that_names_the_setting(setting: Setting, text: str) -> None:
    with pytest.raises(ConfigError, match=setting.name.replace(".", r"\.")) as refused:
        setting.parse(text)
    assert len(str(refused.value)) < 200
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_every_default_is_what_its_own_text_says(setting: Setting) -> None:
    text = setting.text(setting.default)
    if text is not None and not (setting.name == "broker.id" and setting.default == -1):
        assert setting.parse(text) == setting.default


@given(st.sampled_from(ALL), st.text(max_size=40))
def test_any_text_is_a_value_or_a_config_error(setting: Setting, text: str) -> None:
    try:
        value = setting.parse(text)
    except ConfigError:
        return
    again = setting.text(value)
    assert again is not None
    assert setting.parse(again) == value


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (INTEGER, "at least 0"),
        (LONG, ""),
        (RATIO, "0 to 1"),
        (POLICY, "compact, delete"),
        (LEVEL, "-1, or 1 to 9"),
    ],
)
def test_bounds_are_said_for_people(setting: Setting, said: str) -> None:
    assert setting.bounds == said
