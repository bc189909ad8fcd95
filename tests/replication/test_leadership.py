"""What a leader knows: the committed offset is the least log end of those in sync."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.replication.leadership import Leadership

ME, OTHER, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)


def leading(isr: tuple[BrokerId, ...]) -> Leadership:
    partition = Leadership(ME)
    partition.lead(ME, LeaderEpoch(0), isr)
    return partition


def test_only_a_leader_without_others_in_sync_commits_by_itself():
    assert leading((ME,)).alone
    assert not leading((ME, OTHER)).alone
    assert leading((ME,)).reached(ME, Offset(9)) == 9


def test_the_slowest_in_sync_holds_the_committed_offset():
    partition = leading((ME, OTHER))
    assert partition.reached(ME, Offset(10)) == 0
    assert partition.reached(OTHER, Offset(4)) == 4
    assert partition.reached(ME, Offset(20)) == 4


def test_fewer_replicas_than_min_insync_replicas_must_all_be_in_sync():
    partition = leading((ME,))
    assert not partition.has_too_few_in_sync(1)
    assert not partition.has_too_few_in_sync(3)
    partition.lead(ME, LeaderEpoch(0), (ME,), replica_count=2)
    assert partition.has_too_few_in_sync(3)
    partition.lead(ME, LeaderEpoch(0), (ME, OTHER), replica_count=2)
    assert not partition.has_too_few_in_sync(3)


def test_who_left_the_isr_holds_nobody_back():
    partition = leading((ME, OTHER))
    assert partition.reached(ME, Offset(10)) == 0
    partition.lead(ME, LeaderEpoch(0), (ME,))
    assert partition.reached(ME, Offset(10)) == 10


def test_who_follows_or_has_resigned_does_not_lead():
    partition = leading((ME,))
    assert partition.leads
    partition.lead(OTHER, LeaderEpoch(1), (OTHER, ME))
    assert not partition.leads and not partition.alone
    partition.lead(ME, LeaderEpoch(2), (ME,))
    partition.resign()
    assert not partition.leads


@given(st.lists(st.tuples(st.sampled_from([ME, OTHER, THIRD]), st.integers(0, 100))))
def test_the_committed_offset_is_never_beyond_anyone_in_sync(steps: list[tuple[BrokerId, int]]):
    partition = leading((ME, OTHER))
    ends = {ME: 0, OTHER: 0}
    for replica, end in steps:
        ends[replica] = end
        assert partition.reached(replica, Offset(end)) == min(ends[ME], ends[OTHER])
