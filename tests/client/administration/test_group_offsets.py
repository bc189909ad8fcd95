"""The ways to say where a group shall go on."""

import pytest

from moldau.client.administration.group_offsets import duration_ms, parse_offsets, parse_partitions, time_ms, within
from moldau.errors import ConfigError
from moldau.names import OffsetAndMetadata, TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("a", 1)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT30M", 1_800_000),
        ("PT1H30M", 5_400_000),
        ("pt1h30m", 5_400_000),
        ("P7D", 604_800_000),
        ("P1W", 604_800_000),
        ("P1DT1H0.5S", 90_000_500),
        ("P1DT0.5S", 86_400_500),
        ("PT0S", 0),
    ],
)
def test_durations_are_iso_8601(text: str, ms: int):
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "p1dt", "-PT1H", "1h", "PT1H ", "P1M", "PT٣H", "PT1.2345S"])
def test_what_is_no_duration_is_refused(text: str):
    with pytest.raises(ConfigError, match="is not an ISO 8601 duration"):
        duration_ms(text)


def test_a_duration_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(ConfigError, match="is longer than any log"):
        duration_ms(f"P{'9' * 400}D")


def test_times_are_utc_unless_they_say_otherwise():
    assert time_ms("1970-01-01T00:00:01") == 1000
    assert time_ms("1970-01-01T01:00:01+01:00") == 1000
    assert time_ms("1970-01-02") == 86_400_000
    with pytest.raises(ConfigError, match="is not an ISO 8601 time"):
        time_ms("yesterday")


def test_a_file_names_partitions_and_offsets():
    assert parse_offsets(["a,0,5", "", " a , 1, 7"], "f.csv") == {A: OffsetAndMetadata(5), B: OffsetAndMetadata(7)}
    assert parse_offsets(["a,0,5,2"], "f.csv") == {A: OffsetAndMetadata(5, leader_epoch=2)}
    for line in ("a,0", "a,0,x", "a,-1,5", "g,a,0,5", "a,0,5,-1", "a,0,5,6,7", f"a,0,5,{2**31}"):
        with pytest.raises(ConfigError, match=r"line 2 of f\.csv"):
            parse_offsets(["a,0,5", line], "f.csv")


def test_a_topic_may_name_its_partitions():
    assert parse_partitions("a") == ("a", None)
    assert parse_partitions("a:0,12") == ("a", [0, 12])
    for text in ("a:", "a:x", "a:0,", "a:-1"):
        with pytest.raises(ConfigError, match="is neither TOPIC"):
            parse_partitions(text)


def test_offsets_stay_within_what_is_there():
    starts, ends = {A: 10, B: 10}, {A: 20, B: 20}
    outside = {A: OffsetAndMetadata(5, leader_epoch=1), B: OffsetAndMetadata(25, leader_epoch=1)}
    assert within(outside, starts, ends) == {A: OffsetAndMetadata(10), B: OffsetAndMetadata(20)}
    inside = {A: OffsetAndMetadata(10, leader_epoch=1), B: OffsetAndMetadata(20)}
    assert within(inside, starts, ends) == inside
