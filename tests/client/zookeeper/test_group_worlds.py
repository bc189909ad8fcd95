"""Groups in ZooKeeper in virtual time: whatever happens to members and to ZooKeeper, each partition has one owner, no
offset goes back, and no record is skipped."""

import pytest

from harness.tiers import seeds_or, sized
from tests.client.zookeeper.group_world import ENSEMBLE, UNSTEADY, play

EVENTS = sized(4, 10, 30)


@pytest.mark.parametrize("seed", seeds_or(1, sized(1, 3, 100)))
def test_members_join_leave_die_and_lose_zookeeper(seed: int) -> None:
    lived = play(seed, events=EVENTS, manners=UNSTEADY if seed % 2 else ENSEMBLE)
    assert lived.records > 100
