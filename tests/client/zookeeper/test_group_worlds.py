"""Groups in ZooKeeper in virtual time: whatever happens to members and to ZooKeeper, each partition has one owner, no
offset goes back, and no record is skipped."""

import pytest

from harness.tiers import seeds_or, sized
from moldau.client.consuming.commits import Commits
from moldau.client.consuming.groups.zookeeper import ownership, zookeeper_membership
from tests.client.zookeeper.group_world import ENSEMBLE, UNSTEADY, Broken, play
from tests.replacing import Instead, nothing, replaced, returns
from tests.unlogged import unlogged

EVENTS = sized(6, 8, 30)
SEEDS_MAX = 4
MEMBER = f"{zookeeper_membership.__name__}:ZooKeeperMembership"
BUGS = {
    "a partition that another member owns is read": Instead(
        f"{ownership.__name__}:_is_ours", lambda original, owner, *_: owner is not None
    ),
    "owner nodes are not given up": Instead(f"{ownership.__name__}:Ownership.release", nothing),
    "members that come and go are not noticed": Instead(f"{MEMBER}._members_changed", nothing),
    "a group in ZooKeeper makes no automatic commits": Instead(f"{Commits.__module__}:Commits.due", returns(False)),
}


@pytest.mark.parametrize("seed", seeds_or(1, sized(1, 2, 100)))
def test_members_join_leave_die_and_lose_zookeeper(seed: int) -> None:
    lived = play(seed, events=EVENTS, manners=UNSTEADY if seed % 2 else ENSEMBLE)
    assert lived.records > 100


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_hundred_members_of_a_group_with_32_partitions_are_killed() -> None:
    assert play(1, partitions=32, events=350).kills >= 100


@pytest.mark.check
@pytest.mark.bug
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_put_in_on_purpose_is_found(bug: str) -> None:
    with unlogged(), replaced([BUGS[bug]]):
        for seed in range(SEEDS_MAX):
            try:
                play(seed, partitions=4, events=4)
            except Broken:
                return
    raise AssertionError(f"{bug}: not found within {SEEDS_MAX} seeds")
