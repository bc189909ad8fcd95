"""Three brokers of ours, for the script."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from moldau.testing import Cluster
from tests.clients.cluster_tools.script import FOLDERS, SETTINGS


class OurBrokers:
    def __init__(self, root: Path, cluster: Cluster):
        self.root = root
        self._cluster = cluster

    @property
    def address(self) -> str:
        return ",".join(broker.address for broker in self._cluster.brokers if broker.running)

    def kill(self, broker: int) -> None:
        self._cluster.brokers[broker - 1].kill()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[OurBrokers]:
    root = folder / "brokers"
    cluster = Cluster(brokers=3, settings=SETTINGS, data_dir=folder / "data")
    for number, broker in enumerate(cluster.brokers, 1):
        broker.settings["log.dirs"] = ",".join(str(root / str(number) / one) for one in FOLDERS)
    with cluster:
        yield OurBrokers(root, cluster)
