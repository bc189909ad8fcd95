"""Three broker processes as one cluster, of which tests kill one after the other: every topic is on all three, and a
record counts when two of them have it. Or one broker alone, killed in the same way."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.brokers import Broker
from harness.patience import SECONDS, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.cluster_view import TopicView
from moldau.errors import KafkaError

NUMBERS = (1, 2, 3)
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
"""The topics of groups and transactions are on three brokers by default."""
KILLS_APART_S = 3.0
WHOLE_SECONDS_MAX = 4 * SECONDS


class ReplicatedBrokers:
    """Has what tests need of `harness.brokers.Broker`. The brokers share a file unless `connect` names a ZooKeeper.
    `count`: of brokers, three or one."""

    def __init__(self, folder: Path, settings: Mapping[str, str], connect: str = "", count: int = len(NUMBERS)):
        self.brokers: dict[int, Broker] = {}
        self.kills = 0
        is_alone = count == 1
        for number in NUMBERS[:count]:
            own = folder / f"broker-{number}"
            own.mkdir()
            among = {"broker.id": str(number), "zookeeper.connect": connect or f"file:{folder / 'cluster.sqlite'}"}
            self.brokers[number] = Broker(own, {**settings} if is_alone else {**REPLICATED, **settings, **among})

    @property
    def address(self) -> str:
        """All addresses, as clients are given them."""
        return ",".join(broker.address for broker in self.brokers.values())

    def start(self) -> None:
        for broker in self.brokers.values():
            broker.start()

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.stop()

    def kill(self) -> None:
        for broker in self.brokers.values():
            broker.kill()

    def kill_and_start(self) -> None:
        """SIGKILL to the next broker in turn, once all replicas are in sync, and up again: every second time not before
        others lead what it led. Three turns strike each partition's leader at least once."""
        number = NUMBERS[self.kills % len(NUMBERS)]
        self.kills += 1
        self.wait_until_whole()
        self.brokers[number].kill()
        if self.kills % 2:
            self.wait_until_replaced(number)
        self.brokers[number].start()

    @contextlib.contextmanager
    def being_killed(self, apart_s: float = KILLS_APART_S) -> Iterator[None]:
        """One after the other is killed and started meanwhile, `apart_s` after the one before runs again; at the end
        all of them run."""
        over = threading.Event()

        def strike() -> None:
            while not over.wait(apart_s):
                self.kill_and_start()

        with ThreadPoolExecutor(1) as thread:
            striking = thread.submit(strike)
            try:
                yield
            finally:
                over.set()
                striking.result()

    def wait_until_whole(self) -> None:
        """All replicas of all partitions are in sync."""

        def whole(topics: Mapping[str, TopicView]) -> bool:
            parts = [part for topic in topics.values() for part in topic.partitions.values()]
            return all({*part.isr} == {*part.replicas} for part in parts)

        self._wait_until_topics(whole, self.address, "not all replicas are in sync")

    def wait_until_replaced(self, number: int) -> None:
        """The others know that this broker is gone, and lead every partition."""
        others = {*NUMBERS} - {number}

        def replaced(topics: Mapping[str, TopicView]) -> bool:
            return all(part.leader in others for topic in topics.values() for part in topic.partitions.values())

        asked = ",".join(self.brokers[other].address for other in others)
        self._wait_until_topics(replaced, asked, f"broker {number} is not replaced")

    def _wait_until_topics(self, hold: Callable[[Mapping[str, TopicView]], bool], address: str, else_: str) -> None:
        seen: Mapping[str, TopicView] = {}

        def look() -> bool:
            nonlocal seen
            try:
                with Admin(address) as admin:
                    seen = admin.list_topics(internal=True)
            except KafkaError:
                return False
            return hold(seen)

        assert wait_until(look, WHOLE_SECONDS_MAX, 0.1), f"{else_}: {seen}"
