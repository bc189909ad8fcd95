"""What a leader knows: what is committed, who is in sync, and what it proposes to the controller."""

from collections.abc import Callable
from typing import Any

import pytest

from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.replication.in_sync import UNKNOWN, Follower, Standstill
from moldau.replication.leadership import PAUSE_MS, Leadership, PartitionRoles
from tests.replacing import Instead, replaced
from tests.replication.leader_walk import LAG_MS, ME, OTHER, REPLICAS, THIRD, first_wrong

WALKS = 150


def leading(*isr: BrokerId, in_sync_min: int = 1, end: int = 0) -> Leadership:
    partition = Leadership(ME, LAG_MS)
    partition.require(in_sync_min)
    partition.take(PartitionRoles(ME, LeaderEpoch(0), isr, REPLICAS), Offset(end), 0)
    return partition


def asked(partition: Leadership, broker: BrokerId, offset: int, end: int, now_ms: int = 0, epoch: int = 1) -> bool:
    return partition.asked(broker, Offset(offset), epoch, True, Offset(end), now_ms)


def shown(partition: Leadership, now_ms: int = 0, **changed: Any) -> bool:
    """The cluster shows a later state."""
    before = PartitionRoles(
        partition.leader, partition.leader_epoch, partition.isr, partition.replicas, partition.partition_epoch + 1
    )
    return partition.take(before._replace(**changed), Offset(0), now_ms)


def test_only_a_leader_without_others_in_sync_commits_by_itself():
    assert leading(ME).alone
    assert not leading(ME, OTHER).alone
    assert leading(ME).reached(Offset(9)) == 9


def test_the_slowest_in_sync_holds_the_committed_offset():
    partition = leading(ME, OTHER)
    assert partition.reached(Offset(10)) == UNKNOWN
    assert asked(partition, OTHER, 4, end=10)
    assert partition.committed() == 4
    assert partition.reached(Offset(20)) == 4
    assert asked(partition, THIRD, 2, end=20)
    assert partition.committed() == 4, "it is not in sync"


def test_when_replicas_change_the_committed_offset_waits_for_the_new_ones_and_not_for_those_that_were_removed():
    partition = leading(ME, OTHER, in_sync_min=2)
    partition.reached(Offset(10))
    assert asked(partition, OTHER, 4, end=10) and partition.committed() == 4
    assert shown(partition, replicas=(ME, THIRD), isr=(ME, THIRD), leader_epoch=LeaderEpoch(1))
    assert not partition.has_too_few_in_sync
    assert partition.reached(Offset(10)) == UNKNOWN, "the new replica has not asked in this leader epoch"
    assert not asked(partition, OTHER, 10, end=10)
    assert asked(partition, THIRD, 10, end=10) and partition.committed() == 10


def test_a_follower_that_asks_from_a_lower_offset_has_lost_what_is_above():
    partition = leading(ME, OTHER)
    partition.reached(Offset(10))
    asked(partition, OTHER, 8, end=10)
    asked(partition, OTHER, 3, end=10)
    assert partition.committed() == 3


def test_a_follower_whose_log_differs_has_nothing_that_counts():
    partition = leading(ME, OTHER)
    partition.reached(Offset(10))
    asked(partition, OTHER, 8, end=10)
    partition.diverged(OTHER)
    assert partition.committed() == UNKNOWN


def test_ends_are_forgotten_when_an_epoch_begins():
    partition = leading(ME, OTHER)
    partition.reached(Offset(10))
    asked(partition, OTHER, 10, end=10)
    shown(partition, leader_epoch=LeaderEpoch(1))
    assert partition.reached(Offset(10)) == UNKNOWN


def test_nothing_is_committed_while_fewer_than_min_insync_replicas_are_in_sync():
    partition = leading(ME, in_sync_min=2)
    assert partition.has_too_few_in_sync and not partition.alone
    assert partition.reached(Offset(10)) == UNKNOWN
    partition.require(1)
    assert partition.alone and partition.committed() == 10


def test_nothing_is_committed_while_the_cluster_shows_eligible_leaders_outside_the_isr():
    partition = leading(ME)
    shown(partition, has_eligible=True)
    assert partition.reached(Offset(10)) == UNKNOWN and not partition.alone
    shown(partition)
    assert partition.committed() == 10


def test_fewer_replicas_than_min_insync_replicas_must_all_be_in_sync():
    partition = Leadership(ME)
    partition.require(3)
    partition.take(PartitionRoles(ME, LeaderEpoch(0), (ME,), (ME,)), Offset(0), 0)
    assert not partition.has_too_few_in_sync
    shown(partition, replicas=(ME, OTHER))
    assert partition.has_too_few_in_sync
    shown(partition, isr=(ME, OTHER))
    assert not partition.has_too_few_in_sync


def test_who_left_the_isr_holds_nobody_back():
    partition = leading(ME, OTHER)
    assert partition.reached(Offset(10)) == UNKNOWN
    shown(partition, isr=(ME,))
    assert partition.reached(Offset(10)) == 10


def test_who_follows_or_has_resigned_does_not_lead():
    partition = leading(ME)
    assert partition.leads
    shown(partition, leader=OTHER, leader_epoch=LeaderEpoch(1), isr=(OTHER, ME))
    assert not partition.leads and not partition.alone
    shown(partition, leader=ME, leader_epoch=LeaderEpoch(2), isr=(ME,))
    partition.resign()
    assert not partition.leads


def test_older_news_change_nothing():
    partition = leading(ME, OTHER)
    old = PartitionRoles(ME, LeaderEpoch(0), (ME,), REPLICAS)
    assert shown(partition, isr=(ME, OTHER, THIRD))
    assert not partition.take(old, Offset(0), 0)
    assert partition.isr == (ME, OTHER, THIRD)


def test_a_follower_at_the_high_watermark_joins_and_counts_from_the_proposal_on():
    partition = leading(ME)
    partition.reached(Offset(10))
    asked(partition, OTHER, 9, end=10)
    assert partition.propose(Offset(10), 0) is None
    asked(partition, OTHER, 10, end=10)
    proposal = partition.propose(Offset(10), 0)
    assert proposal == ((ME, OTHER), (-1, 1), 0, 0) and not partition.alone
    assert partition.reached(Offset(20)) == 10, "the controller may have it in the ISR by now"
    assert partition.propose(Offset(10), 0) is None, "one at a time"
    shown(partition, isr=(ME, OTHER))
    assert partition.proposal is None and partition.committed() == 10


def test_a_follower_that_had_everything_a_moment_ago_is_waited_for_until_it_joins():
    partition = leading(ME)
    partition.reached(Offset(10))
    asked(partition, OTHER, 4, end=10, now_ms=0)
    asked(partition, OTHER, 10, end=15, now_ms=5)
    assert partition.reached(Offset(15)) == 10, "otherwise it could never join a busy leader"
    assert partition.propose(Offset(10), 5) is not None


@pytest.mark.parametrize("alive", [{1: 1}, {1: 1, 2: 2}], ids=["gone", "registered anew"])
def test_a_follower_that_cannot_join_any_more_is_not_waited_for(alive: dict[int, int]):
    partition = leading(ME)
    partition.reached(Offset(10))
    asked(partition, OTHER, 10, end=10)
    assert not partition.alone
    partition.look(alive, 1)
    assert partition.alone


def test_a_follower_that_is_gone_is_not_proposed_with_one_that_is_there():
    partition = leading(ME)
    asked(partition, OTHER, 0, end=0)
    asked(partition, THIRD, 0, end=0)
    partition.look({1: 1, 3: 1}, 1)
    assert partition.propose(Offset(0), 1) == ((ME, THIRD), (-1, 1), 0, 0)


def test_a_follower_that_the_cluster_shows_later_joins_without_asking_again():
    partition = leading(ME)
    partition.asked(OTHER, Offset(0), 2, False, Offset(0), 0)
    partition.look({1: 1, 2: 2}, 1)
    assert partition.propose(Offset(0), 1) == ((ME, OTHER), (-1, 2), 0, 0)


def test_a_follower_below_the_start_of_the_epoch_does_not_join():
    partition = leading(ME, end=10)
    asked(partition, OTHER, 9, end=10)
    assert partition.propose(Offset(5), 0) is None, "the leader before may have committed offset 9"
    asked(partition, OTHER, 10, end=10)
    assert partition.propose(Offset(5), 0) is not None


def test_a_follower_that_the_cluster_does_not_show_does_not_join():
    partition = leading(ME)
    partition.asked(OTHER, Offset(0), 1, False, Offset(0), 0)
    assert partition.propose(Offset(0), 0) is None and partition.alone


def test_a_replica_that_was_about_to_join_and_is_none_any_more_holds_nobody_back():
    partition = leading(ME, OTHER, end=10)
    assert asked(partition, THIRD, 10, end=10)
    assert asked(partition, OTHER, 20, end=20)
    partition.reached(Offset(20))
    assert partition.committed() == 10
    shown(partition, replicas=(ME, OTHER))
    assert partition.committed() == 20


def test_a_follower_that_lags_leaves_when_the_controller_agrees():
    partition = leading(ME, OTHER)
    partition.reached(Offset(10))
    asked(partition, OTHER, 10, end=10, now_ms=0)
    partition.reached(Offset(20))
    assert partition.propose(Offset(10), LAG_MS) is None
    assert partition.propose(Offset(10), LAG_MS + 1) == ((ME,), (-1,), 0, 0)
    assert partition.committed() == 10, "it is in sync until the controller has answered"
    shown(partition, isr=(ME,))
    assert partition.committed() == 20


def test_a_follower_with_everything_does_not_lag_however_long_nothing_is_written():
    partition = leading(ME, OTHER)
    partition.reached(Offset(10))
    asked(partition, OTHER, 10, end=10)
    assert partition.propose(Offset(10), 100 * LAG_MS) is None


def test_a_leader_that_stood_still_throws_nobody_out():
    partition, standstill = leading(ME, OTHER), Standstill(every_ms=500)
    partition.reached(Offset(10))
    assert [standstill.is_over(now_ms) for now_ms in (0, 500, 1900, 60_000, 60_500)] == [False] * 3 + [True, False]
    partition.restart_clocks(60_000)
    assert partition.propose(Offset(0), 60_000 + LAG_MS) is None
    assert partition.propose(Offset(0), 60_001 + LAG_MS) is not None


def test_a_refused_proposal_leaves_what_is_committed_and_the_next_one_comes_after_a_pause():
    partition = leading(ME)
    asked(partition, OTHER, 0, end=0)
    proposal = partition.propose(Offset(0), 0)
    assert proposal is not None
    partition.refused(proposal, 7)
    assert partition.alone and partition.reached(Offset(5)) == 5
    asked(partition, OTHER, 5, end=5)
    assert partition.propose(Offset(5), 6 + PAUSE_MS) is None
    assert partition.propose(Offset(5), 7 + PAUSE_MS) is not None


def test_a_late_refusal_does_not_concern_the_next_proposal():
    partition = leading(ME)
    asked(partition, OTHER, 0, end=0)
    first = partition.propose(Offset(0), 0)
    shown(partition)
    second = partition.propose(Offset(0), 0)
    assert first is not None and second is not None
    partition.refused(first, 0)
    assert partition.proposal is second


def test_requests_of_strangers_and_of_earlier_lives_do_not_count():
    partition = leading(ME, OTHER)
    partition.reached(Offset(10))
    assert not asked(partition, BrokerId(9), 10, end=10)
    assert asked(partition, OTHER, 3, end=10, epoch=2)
    assert not asked(partition, OTHER, 10, end=10, epoch=1)
    assert partition.committed() == 3


def test_the_low_watermark_is_the_least_log_start_of_the_replicas_that_are_up():
    partition = leading(ME, OTHER)
    up = {ME: 1, OTHER: 1, THIRD: 1}
    for broker, start in ((OTHER, 7), (THIRD, 4)):
        assert partition.low_watermark(Offset(9), up) == UNKNOWN, "it has not asked in this epoch"
        asked(partition, broker, 9, 9)
        assert partition.starts_at(broker, Offset(start))
        assert not partition.starts_at(broker, Offset(start))
    assert partition.low_watermark(Offset(9), up) == 4
    assert partition.low_watermark(Offset(3), up) == 3
    assert partition.low_watermark(Offset(9), {ME: 1, OTHER: 1}) == 7, "the third is down"
    assert partition.low_watermark(Offset(9), up | {OTHER: 2}) == UNKNOWN, "it has not asked in its new life"


def test_a_busy_leader_is_level_with_a_follower_that_keeps_up():
    follower = Follower()
    for now_ms in range(0, 10 * LAG_MS, 100):
        follower.asked(Offset(now_ms), 1, True, Offset(now_ms + 100), now_ms)
    assert follower.is_level(Offset(10 * LAG_MS), now_ms + 800, LAG_MS)
    assert not follower.is_level(Offset(10 * LAG_MS), now_ms + LAG_MS, LAG_MS)


def test_no_walk_commits_what_an_in_sync_replica_may_not_have():
    assert first_wrong(WALKS) is None


def _ends_only_grow(original: Callable[..., None], follower: Follower, offset: Offset, *rest: Any) -> None:
    before = follower.end
    original(follower, offset, *rest)
    follower.end = max(before, offset)


def _ends_are_kept(original: Callable[..., None], partition: Leadership, *rest: Any) -> None:
    followers = partition._followers
    original(partition, *rest)
    partition._followers = followers


def _proposed_isr_counts_alone(original: Callable[..., Offset], partition: Leadership) -> Offset:
    committed, proposal = partition.isr, partition.proposal
    if proposal is not None:
        partition.isr = proposal.isr
    try:
        return original(partition)
    finally:
        partition.isr = committed


def _joining_does_not_count(original: Callable[..., Offset], partition: Leadership) -> Offset:
    proposal, partition.proposal = partition.proposal, None
    try:
        return original(partition)
    finally:
        partition.proposal = proposal


def _without_min(original: Callable[..., Offset], partition: Leadership) -> Offset:
    needed, partition._in_sync_min = partition._in_sync_min, 1
    try:
        return original(partition)
    finally:
        partition._in_sync_min = needed


def _joins_below_the_epochs_start(original: Callable[..., bool], partition: Leadership, *rest: Any) -> bool:
    start, partition.epoch_start = partition.epoch_start, Offset(0)
    try:
        return original(partition, *rest)
    finally:
        partition.epoch_start = start


def _joins_below_the_high_watermark(
    original: Callable[..., bool], partition: Leadership, broker: BrokerId, _: Offset
) -> bool:
    return original(partition, broker, Offset(0))


LEADERSHIP = "moldau.replication.leadership:Leadership"
BUGS = {
    "ends only grow": Instead("moldau.replication.in_sync:Follower.asked", _ends_only_grow),
    "ends are kept over epochs": Instead(f"{LEADERSHIP}._begin_epoch", _ends_are_kept),
    "the proposed ISR counts alone": Instead(f"{LEADERSHIP}.committed", _proposed_isr_counts_alone),
    "who is proposed to join does not count": Instead(f"{LEADERSHIP}.committed", _joining_does_not_count),
    "commits without min.insync.replicas": Instead(f"{LEADERSHIP}.committed", _without_min),
    "joins below the start of the epoch": Instead(f"{LEADERSHIP}._is_joining", _joins_below_the_epochs_start),
    "joins below the high watermark": Instead(f"{LEADERSHIP}._is_joining", _joins_below_the_high_watermark),
}


@pytest.mark.bug
@pytest.mark.parametrize("name", BUGS)
def test_the_walks_find_every_bug_put_in_on_purpose(name: str):
    with replaced([BUGS[name]]):
        assert first_wrong(WALKS) is not None


def test_a_follower_that_was_level_before_an_idle_time_is_not_thrown_out_by_the_next_append() -> None:
    partition = leading(ME, OTHER)
    partition.reached(Offset(10))
    asked(partition, OTHER, 10, end=10, now_ms=0)
    for now_ms in range(0, 3 * LAG_MS, 500):
        partition.look({OTHER: 1}, now_ms)
        assert partition.propose(Offset(10), now_ms) is None
    partition.reached(Offset(11))
    asked(partition, OTHER, 10, end=11, now_ms=3 * LAG_MS)  # the parked request is read again
    partition.look({OTHER: 1}, 3 * LAG_MS)
    assert partition.propose(Offset(10), 3 * LAG_MS) is None


def test_who_can_be_elected_is_in_sync_or_proposed_unless_others_are_eligible_or_losses_are_accepted() -> None:
    partition = leading(ME, OTHER)
    assert partition.successors(unclean=False) == [OTHER]
    assert partition.successors(unclean=True) == [OTHER, THIRD]
    assert asked(partition, THIRD, 0, 0)
    assert partition.propose(Offset(0), 0) is not None
    assert partition.successors(unclean=False) == [OTHER, THIRD]
    alone = leading(ME)
    assert alone.successors(unclean=False) == []
    assert shown(alone, has_eligible=True)
    assert alone.successors(unclean=False) == [OTHER, THIRD]
