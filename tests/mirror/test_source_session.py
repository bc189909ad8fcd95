"""What a worker's Fetch names: what has changed since the last one; and whose answers count."""

import uuid

import pytest

from moldau.error_codes import ErrorCode
from moldau.errors import KafkaError
from moldau.mirror.source_session import SourceSession, WantedPartition
from moldau.names import TopicPartition
from moldau.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

ID, OTHER_ID = uuid.UUID(int=1), uuid.UUID(int=2)
ZERO, ONE, TWO = (TopicPartition("t", number) for number in range(3))
SESSION = 77


def at(offset: int, topic_id: uuid.UUID = ID) -> WantedPartition:
    return WantedPartition(topic_id, offset, 4)


def named(request: FetchRequest) -> dict[int, int]:
    return {part.partition: part.fetch_offset for topic in request.topics for part in topic.partitions}


def forgotten(request: FetchRequest) -> list[int]:
    return [number for topic in request.forgotten_topics_data for number in topic.partitions]


def reply(*parts: PartitionData, session: int = SESSION, error: int = 0) -> FetchResponse:
    topics = [FetchableTopicResponse(topic_id=ID, partitions=[*parts])] if parts else []
    return FetchResponse(error_code=error, session_id=session, responses=topics)


def data(partition: int, records: bytes = b"", error: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=partition, error_code=error, high_watermark=9, log_start_offset=0, records=records
    )


def begun() -> SourceSession:
    session = SourceSession()
    for number, tp in enumerate((ZERO, ONE)):
        session.want(tp, at(number))
    request = session.request(500)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, {0: 0, 1: 1})
    assert {*session.answered(reply(data(0), data(1)))} == {ZERO, ONE}
    return session


def test_a_session_names_what_has_changed() -> None:
    session = begun()
    request = session.request(500)
    assert (request.session_id, request.session_epoch, named(request)) == (SESSION, 1, {})
    assert session.answered(reply()) == {}
    session.read_to(ONE, 5)
    session.drop(ZERO)
    session.want(TWO, at(7))
    request = session.request(500)
    assert (request.session_epoch, named(request), forgotten(request)) == (2, {1: 5, 2: 7}, [0])
    assert [*session] == [ONE, TWO] and ZERO not in session


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
def test_a_lost_session_is_begun_again_with_everything(error: ErrorCode) -> None:
    session = begun()
    session.drop(ZERO)
    session.request(500)
    assert session.answered(reply(error=error)) == {}
    request = session.request(500)
    assert (request.session_id, request.session_epoch, named(request), forgotten(request)) == (0, 0, {1: 1}, [])


def test_another_error_of_the_request_is_raised() -> None:
    session = begun()
    session.request(500)
    with pytest.raises(KafkaError) as refused:
        session.answered(reply(error=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_leader_without_sessions_is_asked_for_all_and_gives_each_its_turn() -> None:
    session = SourceSession()
    for tp in (ZERO, ONE, TWO):
        session.want(tp, at(0))
    session.request(500)
    session.answered(reply(data(0, b"records"), data(1), data(2), session=0))
    request = session.request(500)
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert [*named(request)] == [1, 2, 0]


def test_an_answer_counts_only_if_the_partition_is_wanted_as_it_was_asked_for() -> None:
    session = begun()
    session.request(500)
    session.read_to(ZERO, 3)
    session.drop(ONE)
    session.want(TWO, at(0))
    assert session.answered(reply(data(0, b"records"), data(1, b"records"), data(2))) == {}
    assert named(session.request(500)) == {0: 3, 2: 0}


def test_a_partition_that_leaves_and_comes_back_is_not_dropped() -> None:
    session = begun()
    session.drop(ZERO)
    session.want(ZERO, at(0))
    request = session.request(500)
    assert (named(request), forgotten(request)) == ({0: 0}, [])


def test_a_topic_that_was_made_anew_begins_another_session() -> None:
    session = begun()
    session.drop(ZERO)
    session.want(ZERO, at(0, OTHER_ID))
    assert session.request(500).session_id == 0


def test_an_error_of_a_partition_is_its_own() -> None:
    session = begun()
    session.request(500)
    answers = session.answered(reply(data(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)))
    assert answers[ZERO].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
