"""A coordinator whose process stands still while another broker takes over, and then goes on with the requests that
have waited in its sockets. The metadata is in a ZooKeeper: a process that is stopped while it changes a shared file
would be killed for it."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from harness.patience import wait_until
from harness.replicated_brokers import ReplicatedBrokers
from harness.zookeeper import ZooKeeper
from moldau import Admin, Consumer, TopicPartition
from moldau.client.administration.admin import Admin as AdminClient
from moldau.client.blocking import BlockingLink
from moldau.errors import ErrorCode, MoldauError
from moldau.names import OFFSETS_TOPIC
from moldau.peers.address import bootstrap_addresses
from moldau.protocol import apis
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TP = TopicPartition("t", 0)
LINKS = 8
SETTINGS = {"offsets.topic.num.partitions": "1", "zookeeper.session.timeout.ms": "2000"}


def test_it_tells_no_offset_that_is_outdated(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path / "zookeeper") as zookeeper, ExitStack() as stack:
        cluster = ReplicatedBrokers(tmp_path, SETTINGS, zookeeper.connect)
        stack.callback(cluster.kill)
        cluster.start()
        everyone = cluster.address
        with Admin(everyone) as admin:
            admin.create_topic(TP.topic)
            commit(everyone, 7)
            assert wait_until(lambda: len(admin.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions[0].isr) == 3)
            stopped = leader(admin)
        coordinator = cluster.brokers[stopped]
        others = ",".join(one.address for one in cluster.brokers.values() if one is not coordinator)
        links = [BlockingLink(bootstrap_addresses(coordinator.address)[0], "raw", 60_000) for _ in range(LINKS)]
        assert [committed(link) for link in links] == [(ErrorCode.NONE, 7)] * LINKS
        os.kill(coordinator.pid, signal.SIGSTOP)
        try:
            with ThreadPoolExecutor(LINKS) as asking, Admin(others) as admin:
                assert wait_until(lambda: leader(admin) not in (-1, stopped))
                commit(others, 9)
                waiting = [asking.submit(committed, link) for link in links]
                os.kill(coordinator.pid, signal.SIGCONT)
                answers = [one.result(60) for one in waiting]
        finally:
            os.kill(coordinator.pid, signal.SIGCONT)
        assert {error for error, _ in answers} == {ErrorCode.NOT_COORDINATOR}, answers
        for link in links:
            link.close()


def leader(admin: AdminClient) -> int:
    try:
        return admin.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions[0].leader
    except MoldauError:
        return -1


def commit(address: str, offset: int) -> None:
    with Consumer(address, group_id="g", enable_auto_commit=False) as consumer:
        consumer.commit({TP: offset})


def committed(link: BlockingLink) -> tuple[int, int]:
    link.versions._chosen[apis.OFFSET_FETCH.key] = 8
    topics = [OffsetFetchRequestTopics(name=TP.topic, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    [group] = link.call(apis.OFFSET_FETCH, request).groups
    return group.error_code, max((p.committed_offset for t in group.topics for p in t.partitions), default=-1)
