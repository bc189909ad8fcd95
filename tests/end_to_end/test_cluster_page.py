"""The recipes of docs/cluster-operations.md, played as they stand there on a real ZooKeeper and broker processes."""

import os
import signal
import time
from pathlib import Path

import pytest

from harness.patience import stretched
from harness.zookeeper import ZooKeeper
from tests.end_to_end.cluster_pages import ClusterPage

PAGE = "cluster-operations.md"
SITE_LOST = "A whole site lost"
THE_CLUSTER = "The cluster"
NOT_PLAYED = ("The log lines",)


@pytest.mark.check
@pytest.mark.timeout(stretched(400))
def test_every_recipe_works_one_after_the_other(tmp_path: Path) -> None:
    with ClusterPage(PAGE, tmp_path) as page:
        for section in page.sections:
            if section not in (SITE_LOST, *NOT_PLAYED):
                began_s, used_s = time.monotonic(), sum(os.times()[2:4])
                page.play(section)
                print(f"{section}: {time.monotonic() - began_s:.1f} s, commands {sum(os.times()[2:4]) - used_s:.1f} s")
    assert "Traceback" not in "".join(log.read_text() for log in tmp_path.glob("*.log"))


@pytest.mark.long
@pytest.mark.timeout(stretched(400))
def test_a_site_is_lost_and_replaced_and_then_two(tmp_path: Path) -> None:
    """Each site has a server of ZooKeeper: that of site C stands still from when its broker dies."""
    with ZooKeeper(tmp_path / "servers", 3) as zookeeper, ClusterPage(PAGE, tmp_path, zookeeper.connect) as page:
        properties, script = page.sections[THE_CLUSTER][:2]
        page.sections[THE_CLUSTER][:] = [properties, (script[0], script[1].rpartition("moldau zookeeper")[0])]
        page.play(THE_CLUSTER)
        blocks = page.sections[SITE_LOST]
        lost = next(number for number, (_, text) in enumerate(blocks) if text.startswith("kill -9"))
        page.sections[SITE_LOST] = blocks[:lost]
        page.play(SITE_LOST)
        stopped = next(pid for address, pid in zookeeper.servers().items() if address != zookeeper.leader())
        os.kill(stopped, signal.SIGSTOP)
        try:
            page.sections[SITE_LOST] = blocks[lost:]
            page.play(SITE_LOST)
        finally:
            os.kill(stopped, signal.SIGCONT)
