"""Buckets of tokens and the sensors of clients, in exact numbers."""

import pytest

from moldau.rates import RateWindow
from moldau.security.quotas import sensors as sensors_module
from moldau.security.quotas.buckets import TokenBucket
from moldau.security.quotas.sensors import IDLE_MS, Sensors

START_MS = 3_000_000


def test_a_burst_of_eleven_seconds_is_free_and_debts_are_waited_for() -> None:
    """As Kafka 4.3.1: at rate 1, 8 and 8 pass, and then 5 s are to be waited for."""
    bucket = TokenBucket(RateWindow())
    for _ in range(2):
        assert bucket.throttle_ms(1, START_MS) == 0
        bucket.spend(8, 1, START_MS)
    assert bucket.throttle_ms(1, START_MS) == 5000
    assert bucket.throttle_ms(1, START_MS + 121) == 4879
    bucket.spend(8, 1, START_MS + 121)
    assert bucket.throttle_ms(1, START_MS + 121) == 12_879
    assert bucket.throttle_ms(1, START_MS + 13_000) == 0


def test_a_bucket_holds_no_more_than_its_burst() -> None:
    bucket = TokenBucket(RateWindow(3, 2000))
    assert bucket.throttle_ms(2, START_MS) == 0
    bucket.spend(12, 2, START_MS + 100_000)
    assert bucket.throttle_ms(2, START_MS + 100_000) == 0
    bucket.spend(1, 2, START_MS + 100_000)
    assert bucket.throttle_ms(2, START_MS + 100_000) == 500


def test_another_rate_holds_at_once() -> None:
    bucket = TokenBucket(RateWindow())
    bucket.spend(111, 1, START_MS)
    assert bucket.throttle_ms(1, START_MS) == 100_000
    assert bucket.throttle_ms(10, START_MS) == 10_000


def test_sensors_that_are_idle_for_an_hour_are_forgotten() -> None:
    sensors: Sensors[list[int]] = Sensors(list)
    first = sensors.of("a", 0)
    assert sensors.of("b", 10) is not first
    assert sensors.of("a", IDLE_MS - 1) is first
    sensors.of("c", IDLE_MS + 10)
    assert len(sensors) == 2
    assert sensors.of("a", 2 * IDLE_MS - 2) is first
    assert sensors.of("a", 3 * IDLE_MS) is not first


def test_too_many_sensors_drop_the_longest_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors_module, "SENSORS_MAX", 3)
    sensors: Sensors[list[int]] = Sensors(list)
    kept = sensors.of("kept", 0)
    for number in range(100):
        sensors.of(number, number)
        assert sensors.of("kept", number) is kept
    assert len(sensors) == 3
