import logging

import pytest

from moldau.client.failures import Backoff, RetryLog, check, error_of
from moldau.errors import ErrorCode, KafkaError
from tests.client.producing.test_partitioning import Dice


def test_a_code_that_nobody_knows_yet_is_an_unknown_error() -> None:
    assert error_of(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(9999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_failure_says_what_it_is_about_and_prefers_the_brokers_own_words() -> None:
    check(0, "nothing")
    with pytest.raises(KafkaError, match=r"^topic t: unknown topic or partition$"):
        check(3, "topic t")
    with pytest.raises(KafkaError, match=r"^topic t: no such thing$"):
        check(3, "topic t", "no such thing")


def test_waits_double_up_to_a_bound_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(Dice(1), RetryLog("client", lambda: 0.0), first_ms=100, last_ms=1000)
    waits = [backoff.next_ms() for _ in range(6)]
    assert all(full * 0.8 <= wait <= full for wait, full in zip(waits, [100, 200, 400, 800, 1000, 1000], strict=True))
    backoff.reset()
    assert backoff.next_ms() <= 100


class Clock:
    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def test_every_failure_that_is_tried_again_has_a_line_and_those_that_last_have_a_warning_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "moldau.client")
    clock, refused = Clock(), KafkaError(ErrorCode.NETWORK_EXCEPTION, "cannot connect to there:9092")
    log = RetryLog("client", clock)
    one, other = Backoff(Dice(1), log, "asking who leads"), Backoff(Dice(2), log)
    for _ in range(120):
        one.after_ms(refused)
        other.after_ms(refused)
        clock.now_s += 0.1
    loud = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(caplog.records) == 240
    assert 2 <= len(loud) <= 3, "one in five seconds, for both together"
    assert caplog.messages[0].startswith("client: asking who leads: cannot connect to there:9092 (attempt 1 in 0.0 s, ")
    assert caplog.messages[1].startswith("client: cannot connect to there:9092 (attempt 1 in 0.0 s, next in ")
    assert all(record.name == "moldau.client.failures" for record in caplog.records)


def test_failures_that_do_not_last_have_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "moldau.client")
    clock = Clock()
    backoff = Backoff(Dice(1), RetryLog("client", clock), "fetching")
    for _ in range(50):
        backoff.after_ms(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here"))
        backoff.reset()
        clock.now_s += 1
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}
