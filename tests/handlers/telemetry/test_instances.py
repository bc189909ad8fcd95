"""What a client may do now: asking, pushing, too early, too much, after its last push, after a long silence."""

import uuid
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.telemetry.instances import SILENT_MIN_MS, TelemetryInstance, TelemetryInstances
from moldau.handlers.telemetry.subscribing import AskedMetrics

ME = uuid.UUID(int=7 << 70 | 5)
ASKED = AskedMetrics(("a.",), 1000)
NONE, EARLY = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED


class Client:
    """A client of the broker's, and its clock."""

    def __init__(self) -> None:
        self.seen = TelemetryInstance(ME, ASKED, 1)
        self.now_ms = 10_000

    def get(self) -> ErrorCode:
        return self.seen.get(self.now_ms)

    def push(self, **more: Any) -> ErrorCode:
        sent = {"number": self.seen.number, "codec": 4, "size": 10, "size_max": 100, "terminating": False, **more}
        return self.seen.push(self.now_ms, **sent)


def test_a_client_asks_once_in_its_interval() -> None:
    client = Client()
    assert [client.get(), client.get()] == [NONE, EARLY]
    client.now_ms += 999
    assert client.get() is EARLY
    client.now_ms += 1
    assert client.get() is NONE


def test_the_first_push_after_an_answer_comes_when_it_likes_and_each_later_one_after_the_interval() -> None:
    client = Client()
    client.get()
    client.now_ms += 1
    assert [client.push(), client.push()] == [NONE, EARLY]
    client.now_ms += 1000
    assert [client.push(), client.push()] == [NONE, EARLY]
    assert client.get() is EARLY, "a push counts as well"


def test_a_client_that_another_broker_answered_may_push_at_once() -> None:
    assert Client().push() is NONE


def test_a_last_push_may_come_at_any_time_and_nothing_after_it() -> None:
    client = Client()
    assert [client.push(), client.push(terminating=True)] == [NONE, NONE]
    client.now_ms += 5000
    assert client.push() is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("sent", "error", "asks_again"),
    [
        ({"number": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID, True),
        ({"codec": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, True),
        ({"codec": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, True),
        ({"size": 101}, ErrorCode.TELEMETRY_TOO_LARGE, False),
        ({"size": 100, "codec": 0}, NONE, False),
    ],
)
def test_a_push_is_refused_with_the_code_that_says_what_to_do(
    sent: dict[str, int], error: ErrorCode, asks_again: bool
) -> None:
    client = Client()
    client.get()
    assert client.push(**sent) is error
    client.now_ms += 1
    assert client.get() is (NONE if asks_again else EARLY)


def test_of_several_faults_kafkas_first_is_told() -> None:
    client = Client()
    wrong = {"number": 1, "codec": 9, "size": 1000}
    assert client.push(**wrong) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert client.push(**wrong) is EARLY
    client.push(**wrong, terminating=True)
    assert client.push(**wrong) is ErrorCode.INVALID_REQUEST


def test_a_client_is_forgotten_after_three_intervals_of_silence_or_a_minute() -> None:
    known = TelemetryInstances()
    often, rarely = uuid.UUID(int=5), uuid.UUID(int=6)
    known.put(often, ASKED, 1, 0)
    known.put(rarely, AskedMetrics((), 60_000), 1, 0)
    assert known.find(often, 1, SILENT_MIN_MS - 1) is not None
    assert known.find(often, 1, 2 * SILENT_MIN_MS) is None
    assert known.find(rarely, 1, 3 * 60_000 - 1) is not None
    assert known.find(rarely, 1, 6 * 60_000) is None
    assert len(known) == 0


def test_clients_of_other_subscriptions_begin_anew() -> None:
    known = TelemetryInstances()
    known.put(ME, ASKED, 1, 0)
    assert known.find(ME, 2, 1) is None


def test_no_more_are_known_than_the_bound_and_the_one_that_was_silent_longest_goes_first() -> None:
    known = TelemetryInstances(3)
    ids = [uuid.UUID(int=number) for number in range(2, 6)]
    for at, one in enumerate(ids[:3]):
        known.put(one, ASKED, 1, at)
    assert known.find(ids[0], 1, 5) is not None
    known.put(ids[3], ASKED, 1, 6)
    assert [known.find(one, 1, 7) is not None for one in ids] == [True, False, True, True]


def test_silent_clients_are_swept_out_when_others_come() -> None:
    known = TelemetryInstances()
    for number in range(100):
        known.put(uuid.UUID(int=number + 2), ASKED, 1, number)
    known.put(ME, ASKED, 1, 3 * SILENT_MIN_MS)
    assert len(known) == 1
