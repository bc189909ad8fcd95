"""Members of ours among those of confluent-kafka, aiokafka and kafka-python in one group, with each assignor and both
protocols: they come, leave and are killed, while records are written all the time.

The judge of `tests.churn` reads the broker's trace: no partition has two owners or is left without one, nobody joins in
a storm, every record is processed, static members keep their places. Of Apache Kafka (`MOLDAU_TEST_BROKER`) only what
members processed is judged, and so it is of three brokers of which one after the other is killed.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from harness.replicated_brokers import ReplicatedBrokers
from harness.tiers import sized
from tests.churn.plan import Script
from tests.churn.running import SETTINGS, TIMING, churn
from tests.churn.scripts import MIXED, migrating_with_ours, newer_with_ours, static_with_ours, with_ours

pytestmark = pytest.mark.check

CHANGES, CHANGES_UNDER_KILLS, SEED = 10, sized(12, 12, 16), 7
KILLS_APART_S = 1.5 * TIMING.session_ms / 1000
"""Every coordinator lives long enough to expel a member that was killed: a session begins anew with each of them."""
SCRIPTS: dict[str, Callable[[int], Script]] = {
    **{assignor: partial(with_ours, assignor) for assignor in MIXED},
    "consumer": newer_with_ours,
    "migrating": migrating_with_ours,
    "static": partial(static_with_ours, "classic"),
    "static-consumer": partial(static_with_ours, "consumer"),
}

CHECKED = ("cooperative-sticky", "static", "migrating")
"""Those of `make check`: every client, both protocols and static members."""


@pytest.mark.parametrize(
    "name", [one if one in CHECKED else pytest.param(one, marks=pytest.mark.long) for one in SCRIPTS]
)
def test_members_of_ours_share_a_group_with_those_of_other_clients(tmp_path: Path, name: str) -> None:
    seed = int(os.environ.get("MOLDAU_SEED", SEED))
    report = churn(
        seed, CHANGES, tmp_path, os.environ.get("MOLDAU_TEST_BROKER"), rows=lambda changes: [[SCRIPTS[name](changes)]]
    )
    told = "\n".join(report.lines())
    print(told)
    assert not report.violations, told


@pytest.mark.restarts
@pytest.mark.parametrize("name", [pytest.param("cooperative-sticky", marks=pytest.mark.long), "consumer"])
def test_they_do_on_three_brokers_while_one_after_the_other_is_killed(tmp_path: Path, name: str) -> None:
    cluster = ReplicatedBrokers(tmp_path, SETTINGS)
    try:
        cluster.start()
        with cluster.being_killed(KILLS_APART_S):
            script = SCRIPTS[name]
            report = churn(SEED, CHANGES_UNDER_KILLS, tmp_path, cluster.address, rows=lambda some: [[script(some)]])
        assert cluster.kills  # how many depends on how busy the machine is
        assert not report.violations, "\n".join(report.lines())
        cluster.stop()
    finally:
        cluster.kill()
