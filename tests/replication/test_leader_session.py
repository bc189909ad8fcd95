"""What a follower's requests name in a session: what has changed, once, and what the leader must drop."""

from pathlib import Path

from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.protocol.messages.fetch import FetchRequest
from moldau.replication.catching_up import position_of
from moldau.replication.for_followers import FollowerPosition
from moldau.replication.leader_session import EPOCH_MAX, FollowedReplica, FollowerSettings, LeaderSession, key_of
from moldau.replication.pauses import Key, Pauses
from tests.replication.followed import followed

SETTINGS = FollowerSettings(500, 1500, 1, 1000, 2000, 1.0)
NO_PAUSES = Pauses(lambda _: None)


def named(request: FetchRequest) -> dict[Key, int]:
    return {
        (topic.topic_id.bytes, part.partition): part.fetch_offset
        for topic in request.topics
        for part in topic.partitions
    }


def session_of(folder: Path, count: int) -> tuple[LeaderSession, list[Key]]:
    """A session that follows this many partitions, all of them due."""
    session = LeaderSession(SETTINGS)
    for number in range(count):
        replica = followed(folder, number)
        session.followed[key_of(replica)] = FollowedReplica(replica)
    session.due.update(dict.fromkeys(session.followed))
    return session, list(session.followed)


def request(session: LeaderSession) -> FetchRequest:
    return session.request(BrokerId(1), 10)


def test_a_request_names_what_is_due_and_only_once(tmp_path: Path) -> None:
    session, keys = session_of(tmp_path, 2)
    first = request(session)
    assert named(first) == dict.fromkeys(keys, 0)
    assert (first.session_id, first.session_epoch, first.max_wait_ms) == (0, 0, 0), "it could not be ended"
    session.opened(7)
    session.due[keys[1]] = None
    second = request(session)
    assert named(second) == {keys[1]: 0}
    assert (second.session_id, second.session_epoch, second.max_wait_ms) == (7, 1, 500)
    assert (request(session).session_epoch, session.due) == (2, {})


def test_a_position_ahead_of_the_log_is_named_instead_of_its_end(tmp_path: Path) -> None:
    session, (key,) = session_of(tmp_path, 1)
    ahead = FollowerPosition(LeaderEpoch(0), Offset(40), LeaderEpoch(0), Offset(0))
    session.due[key] = ahead
    assert named(request(session)) == {key: 40}
    assert session.followed[key].asked == ahead


def test_an_answer_counts_for_what_no_later_request_has_named(tmp_path: Path) -> None:
    session, keys = session_of(tmp_path, 2)
    one, other = (session.followed[key] for key in keys)
    request(session)
    session.due[keys[1]] = None
    request(session)
    session.answered = 1
    assert session.answered_from(one) == position_of(one.replica)
    assert session.answered_from(other) is None
    session.answered = 2
    assert session.answered_from(other) == position_of(other.replica)
    session.leave(keys[0])
    assert session.answered_from(one) is None


def test_the_leader_drops_what_left_the_session_unless_it_is_named_again(tmp_path: Path) -> None:
    session, keys = session_of(tmp_path, 3)
    request(session)
    session.opened(7)
    for key in keys:
        session.leave(key)
    session.due[keys[1]] = None
    session.forget(keys[2])
    dropped = request(session).forgotten_topics_data
    assert [topic.topic_id.bytes for topic in dropped] == [keys[0][0], keys[2][0]]
    assert request(session).forgotten_topics_data == []


def test_a_leader_is_told_that_nothing_is_followed_any_more_without_a_wait(tmp_path: Path) -> None:
    session, (key,) = session_of(tmp_path, 1)
    request(session)
    session.opened(7)
    assert not session.must_tell
    session.forget(key)
    assert session.must_tell
    assert request(session).max_wait_ms == 0
    assert not session.must_tell


def test_a_session_that_is_lost_begins_anew_and_names_everything(tmp_path: Path) -> None:
    session, keys = session_of(tmp_path, 2)
    request(session)
    session.opened(7)
    session.leave(keys[1])
    session.lost(NO_PAUSES)
    assert session.is_new
    again = request(session)
    assert named(again) == dict.fromkeys(keys, 0)
    assert (again.session_id, again.session_epoch, again.forgotten_topics_data) == (0, 0, [])


def test_the_epochs_of_a_session_go_round_without_the_one_that_begins_a_session(tmp_path: Path) -> None:
    session, _ = session_of(tmp_path, 1)
    session.opened(7)
    session._epoch = EPOCH_MAX
    assert [request(session).session_epoch for _ in range(3)] == [EPOCH_MAX, 1, 2]
