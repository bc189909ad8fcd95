"""The controller, the source, the target or the tool is killed in the middle of a throttled move."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from harness.tiers import sized
from moldau.handlers.following.follower_fetch import FollowerFetch
from moldau.handlers.following.follower_sessions import FollowedPart
from moldau.replication.replica import Replica
from moldau.simulation.world import World
from tests.replacing import Instead, replaced, returns
from tests.unlogged import unlogged
from tests.worlds.brokers import ENSEMBLE
from tests.worlds.moves import KILLS, Kill, killed_while_moving
from tests.worlds.workload import Broken

FIRST_SEED = 7000
CHOSEN = [(seed, kill) for seed in range(sized(1, 1, 3)) for kill in KILLS[:: sized(11, 5, 1)]]
"""Eleven and five are no divisors of the number of kills, so that all victims, tools and times are among them."""


@pytest.mark.parametrize(("seed", "kill"), CHOSEN, ids=lambda value: str(value))
def test_a_move_ends_or_is_cancelled_whole_whoever_is_killed_and_no_throttle_stays(seed: int, kill: Kill) -> None:
    seed = FIRST_SEED + seed * len(KILLS) + KILLS.index(kill)
    World(seed, manners=ENSEMBLE).run(partial(killed_while_moving, kill))


def withholds_from_all(
    _: Callable[..., bool], self: FollowerFetch, part: FollowedPart, replica: Replica, throttled_bytes: int, now_ms: int
) -> bool:
    throttle = self._throttle
    is_withheld = (
        part.position.offset < replica.log.log_end_offset
        and throttle.quota.is_exceeded(now_ms, throttled_bytes)
        and throttle.covers(replica, part.broker)
    )
    part.withhold(is_withheld)
    return is_withheld


class MoveBug(NamedTuple):
    """`kill`: the move in which it shows itself, and what is said then."""

    bug: Instead
    kill: Kill
    said: str


STATE = "moldau.cluster.state.move_throttles"
BUGS = {
    "what Kafka's tool has throttled stays when its move is over": MoveBug(
        Instead(f"{STATE}:without_throttles_of", returns([])),
        Kill("controller", 0.5, like_kafka=True),
        "leader.replication.throttled.replicas of topic events",
    ),
    "rates that were set for moves stay": MoveBug(
        Instead(f"{STATE}:left_over_rates", returns([])),
        Kill("tool", 0.1, like_kafka=False),
        "leader.reassignment.throttled.rate of broker",
    ),
    "followers that are in sync are throttled": MoveBug(
        Instead("moldau.handlers.following.follower_fetch:FollowerFetch._withholds", withholds_from_all),
        Kill("target", 0.5, like_kafka=True),
        "slowed followers",
    ),
}


@pytest.mark.bug
@pytest.mark.check
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_in_throttled_moves_is_found(name: str) -> None:
    bug, kill, said = BUGS[name]
    run: Any = partial(killed_while_moving, kill)
    with unlogged(logging.CRITICAL), replaced([bug]), pytest.raises(Broken, match=said):
        World(FIRST_SEED, manners=ENSEMBLE).run(run)
