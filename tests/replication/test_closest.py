"""Which follower a reader in a rack is sent on to."""

from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.replication.closest import closest
from moldau.replication.leadership import Leadership, PartitionRoles

ME, SECOND, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)
EPOCH = 7
HERE = (Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092),)
BROKERS = {
    ME: BrokerImage(ME, HERE, "a", epoch=EPOCH),
    SECOND: BrokerImage(SECOND, HERE, "b", epoch=EPOCH),
    THIRD: BrokerImage(THIRD, HERE, "b", epoch=EPOCH),
}


def leading(*isr: BrokerId, leader: BrokerId = ME) -> Leadership:
    leadership = Leadership(ME)
    leadership.take(
        PartitionRoles(leader, LeaderEpoch(0), isr or (ME, SECOND, THIRD), (ME, SECOND, THIRD)), Offset(0), 0
    )
    return leadership


def has(leadership: Leadership, broker: BrokerId, start: int, end: int, log_end: int = 100, now_ms: int = 0) -> None:
    leadership.asked(broker, Offset(end), EPOCH, True, Offset(log_end), now_ms)
    leadership.starts_at(broker, Offset(start))


def chosen(
    leadership: Leadership, offset: int, near: str = "b", listener: str = "PLAINTEXT", **changed: object
) -> int | None:
    brokers = {**BROKERS, SECOND: BROKERS[SECOND]._replace(**changed)}
    return closest(leadership, brokers, near, listener, offset)


def test_a_reader_in_the_leaders_rack_or_in_one_without_replica_stays() -> None:
    leadership = leading()
    has(leadership, SECOND, 0, 10)
    assert chosen(leadership, 5, "a") is None
    assert chosen(leadership, 5, "c") is None
    assert chosen(leadership, 5) == SECOND
    assert chosen(leadership, 5, "a", rack="a") is None


def test_only_a_leader_sends_readers_on() -> None:
    leadership = leading(leader=THIRD)
    has(leadership, SECOND, 0, 10)
    assert chosen(leadership, 5) is None


def test_a_follower_must_have_the_offset() -> None:
    leadership = leading()
    assert chosen(leadership, 0) is None, "it has not asked in this leader epoch"
    has(leadership, SECOND, 3, 10)
    assert [chosen(leadership, offset) for offset in (2, 3, 10, 11)] == [None, SECOND, SECOND, None]


def test_a_follower_must_be_in_sync() -> None:
    leadership = leading(ME, THIRD)
    has(leadership, SECOND, 0, 10)
    assert chosen(leadership, 5) is None


def test_the_furthest_is_chosen_and_then_the_one_that_was_level_last() -> None:
    leadership = leading()
    has(leadership, SECOND, 0, 10)
    has(leadership, THIRD, 0, 11)
    assert chosen(leadership, 5) == THIRD
    has(leadership, SECOND, 0, 12)
    assert chosen(leadership, 5) == SECOND
    has(leadership, SECOND, 0, 100, now_ms=2)
    has(leadership, THIRD, 0, 100, now_ms=1)
    assert chosen(leadership, 5) == SECOND


def test_a_follower_must_be_up_since_it_asked_and_be_found_where_the_reader_came_from() -> None:
    leadership = leading()
    has(leadership, SECOND, 0, 10)
    assert chosen(leadership, 5, epoch=EPOCH + 1) is None
    assert chosen(leadership, 5, leaving=True) is None
    assert chosen(leadership, 5, listener="INSIDE") is None
    assert closest(leadership, {ME: BROKERS[ME]}, "b", "PLAINTEXT", 5) is None
