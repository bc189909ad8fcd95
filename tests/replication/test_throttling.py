"""Both throttles of a broker follow its settings."""

from pathlib import Path

from moldau.config import broker_config, topic_config, with_changes
from moldau.names import BrokerId
from moldau.replication.throttling import Throttles
from tests.replication.transcripts import Room

CONFIG = broker_config({"replication.quota.window.num": "2", "replication.quota.window.size.seconds": "3"})[0]
LEADER, FOLLOWER = "leader.replication.throttled.rate", "follower.replication.throttled.rate"


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
    throttles = Throttles(BrokerId(1), CONFIG)
    replica.configure(topic_config(CONFIG, {"leader.replication.throttled.replicas": "0:1"}))
    assert throttles.leader.covers(replica)
    assert not throttles.follower.covers(replica)
    replica.configure(topic_config(CONFIG, {"follower.replication.throttled.replicas": "*"}))
    assert not throttles.leader.covers(replica)
    assert throttles.follower.covers(replica)
