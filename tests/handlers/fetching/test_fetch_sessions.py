"""Fetch sessions: what is remembered, what is told again, when a session ends, and which one makes room."""

import itertools
import tracemalloc
from types import GeneratorType
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.fetching import fetch_sessions
from moldau.handlers.fetching.fetch_sessions import EPOCH_MAX, EVICTION_MS, NO_SESSION, FetchSession, FetchSessions
from moldau.protocol.fetch_request import Fetch, FetchTopic
from moldau.protocol.hot_fetch import FetchResult
from moldau.replies import FileSlice
from moldau.turns import turn

RECORDS: Any = FileSlice(None, 0, 10)  # type: ignore[arg-type]


def sessions(slots: int = 10) -> FetchSessions:
    return FetchSessions(slots, itertools.count(1).__next__)


def topic(name: str, *indexes: int, offset: int = 0) -> FetchTopic:
    return name, None, [(index, -1, offset, 1000) for index in indexes]


def request(
    session_id: int,
    epoch: int,
    *topics: FetchTopic,
    forget: list[tuple[str | None, bytes | None, list[int]]] | None = None,
) -> Fetch:
    return Fetch(-1, 0, 0, 1 << 20, 0, session_id, epoch, list(topics), forget or [])


def result(index: int, watermark: int = 5, start: int = 0, error: int = 0, records: Any = None) -> FetchResult:
    return FetchResult(index, error, watermark, watermark, start, None, records)


def completed(steps: Any) -> Any:
    """The result of very many steps."""
    while isinstance(steps, GeneratorType):
        steps = turn(steps)
    return steps


def begun(held: FetchSessions, *topics: FetchTopic, now_ms: int = 0) -> int:
    results = [result(part[0]) for _, _, parts in topics for part in parts]
    return completed(held.begin(topics, results, False, now_ms))


def gone_on(held: FetchSessions, asked: Fetch, now_ms: int = 0, by_id: bool = False) -> FetchSession:
    session = turn(held.go_on(asked, by_id, now_ms))
    assert isinstance(session, FetchSession)
    return session


def test_a_session_reads_what_was_named_before_with_what_changed():
    held = sessions()
    number = begun(held, topic("a", 0, 1), topic("b", 0))
    session = gone_on(held, request(number, 1, topic("a", 1, offset=7), topic("c", 2), forget=[("b", None, [0])]))
    assert turn(session.topics()) == [
        ("a", None, [(0, -1, 0, 1000), (1, -1, 7, 1000)]),
        topic("c", 2),
    ]


def test_only_records_errors_and_moved_ends_are_told_and_records_go_behind_the_others():
    held = sessions()
    number = begun(held, topic("a", 0, 1, 2, 3, 4))
    session = gone_on(held, request(number, 1))
    results = [
        result(0),
        result(1, watermark=6),
        result(2, start=1),
        result(3, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        result(4, records=RECORDS),
    ]
    told_topics, told = turn(session.news(turn(session.topics()), results))
    assert [one.index for one in told] == [1, 2, 3, 4]
    assert told_topics == [topic("a", 1, 2, 3, 4)]
    turn(session.news(turn(session.topics()), [result(0, records=RECORDS), *results[1:]]))
    assert [part[0] for part in turn(session.topics())[0][2]] == [1, 2, 3, 0, 4]


def test_after_an_error_a_partition_is_told_of_again_whatever_it_was_before():
    held = sessions()
    number = begun(held, topic("a", 0))
    session = gone_on(held, request(number, 1))
    turn(session.news(turn(session.topics()), [result(0, error=1)]))
    assert turn(session.news(turn(session.topics()), [result(0)]))[1] == [result(0)]
    assert turn(session.news(turn(session.topics()), [result(0)]))[1] == []


def test_epochs_count_up_and_begin_again_at_one():
    held = sessions()
    number = begun(held, topic("a", 0))
    session = gone_on(held, request(number, 1))
    assert turn(held.go_on(request(number, 1), False, 0)) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    gone_on(held, request(number, 2))
    session.epoch = EPOCH_MAX
    gone_on(held, request(number, EPOCH_MAX))
    gone_on(held, request(number, 1))


def test_a_session_that_is_not_there_or_names_topics_otherwise_is_refused():
    held = sessions()
    number = begun(held, topic("a", 0))
    assert turn(held.go_on(request(number + 1, 1), False, 0)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert turn(held.go_on(request(number, 1), True, 0)) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


@pytest.mark.parametrize("epoch", [-1, 0, 1, 7])
def test_another_principal_does_not_find_a_session_and_cannot_end_it(epoch: int):
    held = sessions()
    number = completed(held.begin([topic("a", 0)], [result(0)], False, 0, "User:ann"))
    expected = None if epoch < 1 else ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert turn(held.go_on(request(number, epoch), False, 0, "User:eve")) is expected
    session = turn(held.go_on(request(number, 1), False, 0, "User:ann"))
    assert isinstance(session, FetchSession) and turn(session.topics()) == [topic("a", 0)]


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_full_request_ends_the_session_that_it_names(epoch: int):
    held = sessions()
    number = begun(held, topic("a", 0))
    assert turn(held.go_on(request(number, epoch, topic("a", 0)), False, 0)) is None
    assert turn(held.go_on(request(number, 1), False, 0)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_holds_nothing_any_more_ends():
    held = sessions()
    number = begun(held, topic("a", 0))
    assert turn(held.go_on(request(number, 1, forget=[("a", None, [0])]), False, 0)) is None
    assert len(held) == 0


def test_a_name_that_no_topic_can_have_is_held_by_no_session():
    """Clients choose names: those of 100,000 partitions would fill the memory."""
    held = sessions()
    longest, longer = topic("n" * 249, 0), topic("n" * 250, 0)
    assert begun(held, topic("a", 0), longer) == NO_SESSION
    number = begun(held, topic("a", 0), longest)
    assert turn(held.go_on(request(number, 1, longer), False, 0)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(held), held._held) == (0, 0)


def test_a_new_session_takes_the_place_of_an_idle_one():
    held = sessions(slots=2)
    first, second = begun(held, topic("a", 0)), begun(held, topic("a", 0))
    assert begun(held, topic("a", 0), now_ms=EVICTION_MS) == NO_SESSION
    gone_on(held, request(first, 1), now_ms=EVICTION_MS)
    assert begun(held, topic("a", 0), now_ms=EVICTION_MS + 1) != NO_SESSION
    gone_on(held, request(first, 2), now_ms=EVICTION_MS)
    assert turn(held.go_on(request(second, 1), False, 0)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_larger_session_takes_the_place_of_a_smaller_one_that_had_its_time():
    held = sessions(slots=2)
    large, small = begun(held, topic("a", 0, 1)), begun(held, topic("a", 0))
    now_ms = EVICTION_MS + 1
    for number in (large, small):
        gone_on(held, request(number, 1), now_ms=now_ms)
    assert begun(held, topic("a", 0), now_ms=now_ms) == NO_SESSION
    assert begun(held, topic("a", 0, 1), now_ms=now_ms) != NO_SESSION
    gone_on(held, request(large, 2), now_ms=now_ms)
    assert len(held) == 2


def test_without_slots_there_are_no_sessions():
    assert begun(sessions(slots=0), topic("a", 0)) == NO_SESSION


def test_all_sessions_together_hold_no_more_than_they_may(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetch_sessions, "HELD_MAX", 3)
    held = sessions()
    number = begun(held, topic("a", 0, 1))
    assert begun(held, topic("b", 0, 1)) == NO_SESSION
    assert turn(held.go_on(request(number, 1, topic("b", 0, 1)), False, 0)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert begun(held, topic("b", 0, 1, 2)) != NO_SESSION


def test_a_session_within_its_share_takes_the_place_of_the_largest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetch_sessions, "HELD_MAX", 10)
    held = sessions()
    small, large = begun(held, topic("a", 0)), begun(held, topic("a", *range(9)))
    assert begun(held, topic("b", 0, 1, 2, 3)) == NO_SESSION
    assert begun(held, topic("b", 0, 1, 2)) != NO_SESSION
    assert turn(held.go_on(request(large, 1), False, 0)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    gone_on(held, request(small, 1))
    assert begun(held, topic("a", *range(9))) == NO_SESSION, "the largest does not come back in place of others"


def test_sessions_of_very_many_partitions_take_no_more_memory_than_one():
    held = sessions(slots=1000)
    wide = [topic("a", *range(99_000))]
    tracemalloc.start()
    try:
        numbers = [completed(held.begin(wide, [result(index) for index in range(99_000)], False, 0)) for _ in range(5)]
        assert tracemalloc.get_traced_memory()[0] < 60e6
    finally:
        tracemalloc.stop()
    assert numbers == [1, NO_SESSION, NO_SESSION, NO_SESSION, NO_SESSION]
