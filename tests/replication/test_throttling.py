"""Both throttles of a broker follow its settings."""

from pathlib import Path

from moldau.config import broker_config, topic_config, with_changes
from moldau.names import BrokerId, LeaderEpoch
from moldau.replication.leadership import PartitionRoles
from moldau.replication.throttling import Throttles
from tests.replication.transcripts import Room

CONFIG = broker_config({"replication.quota.window.num": "2", "replication.quota.window.size.seconds": "3"})[0]
LEADER, FOLLOWER = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
MOVING = "leader.reassignment.throttled.rate"


def test_each_side_has_its_own_rate_and_announces_changes() -> None:
    throttles = Throttles(BrokerId(1), CONFIG)
    changed: list[str] = []
    throttles.leader.on_change(lambda: changed.append("leader"))
    throttles.follower.on_change(lambda: changed.append("follower"))
    assert not throttles.leader.is_on
    throttles.follow(CONFIG)
    assert changed == []
    throttles.follow(with_changes(CONFIG, {FOLLOWER: "10"}))
    assert (throttles.leader.is_on, throttles.follower.is_on, changed) == (False, True, ["follower"])
    changed.clear()
    both = with_changes(CONFIG, {FOLLOWER: "10", LEADER: "0"})
    throttles.follow(both)
    assert (throttles.leader.is_on, throttles.follower.is_on, changed) == (True, True, ["leader", "follower"])
    changed.clear()
    throttles.follow(both)
    assert changed == ["leader", "follower"], "topics may list other replicas, and these may be in sync now"
    changed.clear()
    throttles.follow(CONFIG)
    assert (throttles.leader.is_on, throttles.follower.is_on) == (False, False)
    assert changed == ["leader", "follower"]
    throttles.follow(CONFIG)
    assert changed == ["leader", "follower"]


def test_the_window_is_that_of_the_settings() -> None:
    throttles = Throttles(BrokerId(1), with_changes(CONFIG, {LEADER: "10"}))
    throttles.leader.quota.record(31, 0)
    assert throttles.leader.quota.is_exceeded(3000)
    assert throttles.leader.quota.free_ms(0) == 3100
    throttles.leader.quota.record(1000, 0)
    assert throttles.leader.quota.free_ms(0) == 6000


def test_each_side_looks_at_its_own_list_of_a_topic(tmp_path: Path) -> None:
    replica = Room(tmp_path).replicas["A"]
    throttles = Throttles(BrokerId(1), with_changes(CONFIG, {LEADER: "10", FOLLOWER: "10"}))
    replica.configure(topic_config(CONFIG, {"leader.replication.throttled.replicas": "0:1"}))
    assert throttles.leader.covers(replica, BrokerId(2))
    assert not throttles.follower.covers(replica, BrokerId(2))
    replica.configure(topic_config(CONFIG, {"follower.replication.throttled.replicas": "*"}))
    assert not throttles.leader.covers(replica, BrokerId(2))
    assert throttles.follower.covers(replica, BrokerId(2))


def test_the_rate_of_reassignments_covers_added_replicas_until_they_are_in_sync(tmp_path: Path) -> None:
    one, two, three = BrokerId(1), BrokerId(2), BrokerId(3)
    replica = Room(tmp_path).replicas["A"]
    throttle = Throttles(one, with_changes(CONFIG, {MOVING: "10"})).leader

    def covered(*isr: BrokerId, epoch: int) -> tuple[bool, bool]:
        roles = PartitionRoles(one, LeaderEpoch(1), isr, (one, two, three), epoch, adding=(three,))
        replica.take_roles(roles, 0)
        return throttle.covers(replica, two), throttle.covers(replica, three)

    replica.configure(topic_config(CONFIG, {"leader.replication.throttled.replicas": "*"}))
    assert covered(one, epoch=1) == (False, True), "a replica that lags is not slowed, and no list counts"
    assert covered(one, three, epoch=2) == (False, False)
    assert covered(one, epoch=3) == (False, True)


def test_the_lower_rate_counts_where_both_are_set() -> None:
    throttles = Throttles(BrokerId(1), with_changes(CONFIG, {LEADER: "10", MOVING: "7"}))
    assert throttles.leader.quota.limit == 7
    throttles.follow(with_changes(CONFIG, {LEADER: "5", MOVING: "7"}))
    assert throttles.leader.quota.limit == 5
    throttles.follow(with_changes(CONFIG, {MOVING: "7"}))
    assert throttles.leader.quota.limit == 7
