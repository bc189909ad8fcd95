"""A topic whose log was cut off after it had been read: three brokers in one process, an unclean election.

The log before: 15 records (values `old-...`), of which the second broker has the first 5. The log after: those 5, then
12 that the second broker wrote as the leader (values `new-...`). Readers run between the two.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from moldau.testing import Cluster
from tests.testing.replicas import in_sync, leader_of

KEPT, LOST, WRITTEN_SINCE = 5, 10, 12
UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


class TruncatedLog:
    """The cluster and its topic `t`, which has one partition, on the brokers 1 and 2."""

    topic = "t"

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.address = cluster.address

    def fill(self) -> None:
        """Write the log as it is before the truncation."""
        with Admin(self.address) as admin:
            admin.create_topic(self.topic, assignment={0: [1, 2]}, configs=UNCLEAN)
            with Producer(self.address, transactional_id="first") as producer, producer.transaction() as transaction:
                # made now, because internal topics need all brokers
                transaction.send_offsets({TopicPartition(self.topic, 0): 0}, "first")
            self._write("old", KEPT)
            self.cluster.brokers[1].kill()
            assert wait_until(lambda: in_sync(admin, self.topic) == [[1]])
            self._write("old", LOST)

    def truncate(self) -> None:
        """Elect the broker that lacks the last `LOST` records, and write others in their place."""
        self.cluster.brokers[0].kill()
        self.cluster.brokers[1].start()
        with Admin(self.cluster.brokers[1].address) as admin:
            assert wait_until(partial(self._is_led_by_2, admin))
        self._write("new", WRITTEN_SINCE)

    def _is_led_by_2(self, admin: Admin) -> bool:
        return leader_of(admin, self.topic) == 2

    def _write(self, what: str, count: int) -> None:
        with Producer(self.address) as producer:
            for number in range(count):
                producer.send(self.topic, f"{what}-{number}", partition=0)


@contextmanager
def truncated_log() -> Iterator[TruncatedLog]:
    with Cluster(brokers=3, default_replication_factor=3) as cluster:
        yield TruncatedLog(cluster)
