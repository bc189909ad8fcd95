"""Three broker processes under `moldau cluster start --embedded`: a producer goes on when a leader is killed, and when
each broker is restarted in turn.

How long it waits is a time of this machine, which only the long tier judges; `tests/worlds` has deaths and restarts of
leaders in virtual time.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.local_cluster import is_gone, processes, started
from harness.patience import stretched, wait_until
from harness.steady import SteadyWrites
from harness.tiers import LONG, sized
from moldau import Admin
from moldau.errors import MoldauError

PARTITIONS = 3
REPLICATED = ("--set", "default.replication.factor=3", "--set", "min.insync.replicas=2")
DEATH_S, RESTART_S = 1.0, 0.5
RESTARTED = sized((1,), (1, 2, 3), (1, 2, 3))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    with started(tmp_path, "--embedded", *REPLICATED) as (_, addresses):
        yield tmp_path / "data", ",".join(addresses)


def leaders(admin: Admin) -> list[int]:
    return [part.leader for part in admin.describe_topics(["levels"])["levels"].partitions.values()]


def is_whole(admin: Admin) -> bool:
    try:
        parts = admin.describe_topics(["levels"])["levels"].partitions.values()
        return len(admin.describe_cluster().brokers) == 3 and all(len(part.isr) == 3 for part in parts)
    except MoldauError:
        return False


def gap_after(admin: Admin, writes: SteadyWrites, data: Path, broker: int, number: int) -> float:
    """Send that signal to the broker; the longest gap until it is back and in sync."""
    home = str(data / f"broker-{broker}")
    pid = processes(data)[home]
    began_s = time.monotonic()
    os.kill(pid, number)
    assert wait_until(lambda: is_gone(pid))
    assert wait_until(lambda: processes(data).get(home, pid) != pid), "it is not started again"
    assert wait_until(lambda: is_whole(admin))
    moment_s = time.monotonic()
    assert wait_until(lambda: writes.first_after(moment_s))
    return writes.longest_gap_s(began_s)


def check(gap_s: float, allowed_s: float, when: str) -> None:
    assert not LONG or gap_s < stretched(allowed_s), f"no write was acknowledged for {gap_s:.3f} s {when}"


def test_a_producer_goes_on_soon_after_a_leader_died_and_during_restarts_in_turn(cluster: tuple[Path, str]) -> None:
    data, addresses = cluster
    with Admin(addresses) as admin:
        admin.create_topic("levels", partitions=PARTITIONS)
        with SteadyWrites(addresses, "levels", PARTITIONS) as writes:
            assert wait_until(lambda: writes.first_after(0))
            gap_s = gap_after(admin, writes, data, leaders(admin)[0], signal.SIGKILL)
            check(gap_s, DEATH_S, "after a leader's death")
            for broker in RESTARTED:
                gap_s = gap_after(admin, writes, data, broker, signal.SIGTERM)
                check(gap_s, RESTART_S, "during a restart")
    assert not writes.failed
