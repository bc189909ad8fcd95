"""What a leader knows: the watermark is the least log end of those in sync, and never goes back."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.names import BrokerId, LeaderEpoch, Offset
from moldau.replication.leadership import Leadership

ME, OTHER, THIRD = BrokerId(1), BrokerId(2), BrokerId(3)


def leading(isr: tuple[BrokerId, ...], log_end: int = 0) -> Leadership:
    partition = Leadership(ME, Offset(0))
    partition.lead(ME, LeaderEpoch(0), isr, Offset(log_end))
    return partition


def test_alone_in_sync_everything_appended_is_committed():
    partition = leading((ME,), 5)
    assert partition.high_watermark == 5
    assert partition.reached(ME, Offset(9))
    assert partition.high_watermark == 9


def test_the_slowest_in_sync_holds_the_watermark():
    partition = leading((ME, OTHER), 10)
    assert partition.high_watermark == 0
    assert partition.reached(OTHER, Offset(4))
    assert partition.high_watermark == 4
    assert not partition.reached(ME, Offset(20))


def test_fewer_replicas_than_min_insync_replicas_must_all_be_in_sync():
    partition = leading((ME,))
    assert not partition.has_too_few_in_sync(1)
    assert not partition.has_too_few_in_sync(3)
    partition.lead(ME, LeaderEpoch(0), (ME,), Offset(0), replica_count=2)
    assert partition.has_too_few_in_sync(3)
    partition.lead(ME, LeaderEpoch(0), (ME, OTHER), Offset(0), replica_count=2)
    assert not partition.has_too_few_in_sync(3)


def test_who_left_the_isr_holds_nobody_back():
    partition = leading((ME, OTHER), 10)
    partition.lead(ME, LeaderEpoch(0), (ME,), Offset(10))
    assert partition.high_watermark == 10


def test_a_follower_commits_nothing_by_itself():
    partition = Leadership(ME, Offset(3))
    assert not partition.lead(OTHER, LeaderEpoch(1), (OTHER, ME), Offset(10))
    assert not partition.leads
    assert partition.high_watermark == 3


@given(st.lists(st.tuples(st.sampled_from([ME, OTHER, THIRD]), st.integers(0, 100))))
def test_the_watermark_never_goes_back_nor_beyond_anyone_in_sync(steps: list[tuple[BrokerId, int]]):
    partition = leading((ME, OTHER))
    ends, before = {ME: 0, OTHER: 0}, 0
    for replica, end in steps:
        moved = partition.reached(replica, Offset(end))
        ends[replica] = end
        assert partition.high_watermark == max(before, min(ends[ME], ends[OTHER]))
        assert moved == (partition.high_watermark > before)
        before = partition.high_watermark
