import pytest

from moldau.client.failures import Backoff, check, error_of
from moldau.errors import ErrorCode, KafkaError
from tests.client.test_partitioning import Dice


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
    backoff = Backoff(Dice(1), first_ms=100, last_ms=1000)
    waits = [backoff.next_ms() for _ in range(6)]
    assert all(full * 0.8 <= wait <= full for wait, full in zip(waits, [100, 200, 400, 800, 1000, 1000], strict=True))
    backoff.reset()
    assert backoff.next_ms() <= 100
