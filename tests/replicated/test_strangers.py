"""A program that is no broker asks three brokers what only brokers ask, on both of their listeners: each is refused,
nothing changes, and the log says so in a line."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.brokers import Broker
from harness.patience import wait_until
from moldau import Admin, Producer
from moldau.client.administration.admin import Admin as AdminClient
from moldau.errors import ErrorCode
from moldau.protocol import codec
from moldau.protocol.apis import (
    ALTER_PARTITION,
    ASSIGN_REPLICAS_TO_DIRS,
    BETWEEN_BROKERS,
    CREATE_TOPICS,
    DESCRIBE_WAITING,
    ENVELOPE,
    FETCH,
    FOLLOW_CLUSTER,
    GET_REPLICA_LOG_INFO,
    INTRODUCE,
    Api,
)
from moldau.protocol.messages import alter_partition, assign_replicas_to_dirs, fetch, get_replica_log_info
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.describe_waiting import DescribeWaitingRequest
from moldau.protocol.messages.envelope import EnvelopeRequest
from moldau.protocol.messages.follow_cluster import FollowClusterRequest
from moldau.protocol.messages.introduce import IntroduceRequest
from tests.end_to_end.raw import Raw
from tests.replicated.broker_processes import broker_processes

TOPIC, FORBIDDEN = "t", "made-by-a-stranger"
LISTENERS = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "min.insync.replicas": "2",
}
NUMBERS, EPOCHS = (1, 2, 3, 7), (-1, 1, 1 << 40)
"""Those of brokers that are up, and one that no broker has; broker epochs too low and too high."""


def asked_by_brokers(number: int, epoch: int, topic_id: uuid.UUID) -> dict[Api, Any]:
    """One request of each API between brokers that would do harm, in the name of that broker."""
    part = alter_partition.ProposedPartition(partition_index=0, leader_epoch=0, new_isr_with_epochs=[])
    topic = alter_partition.ProposedTopic(topic_id=topic_id, partitions=[part])
    made = CreateTopicsRequest(topics=[CreatableTopic(name=FORBIDDEN, num_partitions=1, replication_factor=1)])
    frame = codec.write_request(CREATE_TOPICS, CREATE_TOPICS.high, 1, "stranger", made)[4:]
    return {
        FOLLOW_CLUSTER: FollowClusterRequest(broker_id=number, broker_epoch=epoch, leaving=True),
        ALTER_PARTITION: alter_partition.AlterPartitionRequest(broker_id=number, broker_epoch=epoch, topics=[topic]),
        ASSIGN_REPLICAS_TO_DIRS: assign_replicas_to_dirs.AssignReplicasToDirsRequest(
            broker_id=number, broker_epoch=epoch
        ),
        GET_REPLICA_LOG_INFO: get_replica_log_info.GetReplicaLogInfoRequest(broker_id=number),
        DESCRIBE_WAITING: DescribeWaitingRequest(broker_id=number),
        ENVELOPE: EnvelopeRequest(request_data=frame, client_host_address=bytes(4)),
    }


def as_a_replica(number: int, epoch: int, topic_id: uuid.UUID) -> fetch.FetchRequest:
    """A follower's Fetch that claims to have far more than there is."""
    part = fetch.FetchPartition(partition=0, current_leader_epoch=-1, fetch_offset=1000, partition_max_bytes=1 << 20)
    return fetch.FetchRequest(
        replica_state=fetch.ReplicaState(replica_id=number, replica_epoch=epoch),
        max_bytes=1 << 20,
        topics=[fetch.FetchTopic(topic_id=topic_id, partitions=[part])],
    )


def is_cut_off(address: str, api: Api, request: Any) -> bool:
    with Raw(address) as raw:
        try:
            raw.ask(api, api.high, request)
        except (EOFError, ConnectionResetError):
            return True
    return False


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[Broker]]:
    with broker_processes(tmp_path, 3) as found:
        for one in found:
            one.settings |= LISTENERS
            one.start()
        yield found


def test_a_program_without_the_secret_is_no_broker(brokers: list[Broker]) -> None:
    clients, between = ([one.addresses[at] for one in brokers] for at in (0, 1))
    with Admin(",".join(clients)) as admin, Producer(",".join(clients), acks="all") as producer:
        admin.create_topic(TOPIC, assignment={0: [1, 2, 3]})
        producer.send(TOPIC, b"first").result(60)
        assert wait_until(lambda: len(state(admin)[1]) == 3)
        before = state(admin)
        topic_id = admin.describe_topics([TOPIC])[TOPIC].topic_id
        cluster_id = admin.describe_cluster().cluster_id
        asked = {key for number in NUMBERS for key in asked_by_brokers(number, 1, topic_id)} | {INTRODUCE}
        assert asked == set(BETWEEN_BROKERS.values())
        for own, address in [*enumerate(clients, 1), *enumerate(between, 1)]:
            for number, epoch in ((number, epoch) for number in NUMBERS for epoch in EPOCHS):
                for api, request in asked_by_brokers(number, epoch, topic_id).items():
                    assert is_cut_off(address, api, request), (address, api)
                with Raw(address) as raw:
                    reply = raw.ask(FETCH, FETCH.high, as_a_replica(number, epoch, topic_id))
                    [part] = reply.responses[0].partitions
                    assert (part.error_code, bytes(part.records or b"")) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")
                hello = IntroduceRequest(
                    cluster_id=cluster_id, broker_id=number, broker_epoch=epoch, expected_id=own, proof=b"guess"
                )
                if address in clients:
                    assert is_cut_off(address, INTRODUCE, hello)
                    continue
                with Raw(address) as raw:
                    assert raw.ask(INTRODUCE, 0, hello).error_code
                    for api, request in asked_by_brokers(number, epoch, topic_id).items():
                        assert is_cut_off(address, api, request), api
        assert state(admin) == before
        assert FORBIDDEN not in admin.list_topics()
        producer.send(TOPIC, b"second").result(60)
    for broker in brokers:
        lines = (broker.folder / "broker.log").read_text().splitlines()
        [refused] = [line for line in lines if "ERROR" in line]
        assert (
            "was refused: it has not proved that it knows the secret of the cluster" in refused or "itself" in refused
        )


@pytest.mark.check  # three brokers more
def test_the_listener_for_brokers_can_be_another_one_after_a_rolling_restart(brokers: list[Broker]) -> None:
    clients = ",".join(one.addresses[0] for one in brokers)
    with Admin(clients) as admin, Producer(clients, acks="all") as producer:
        admin.create_topic(TOPIC, assignment={0: [1, 2, 3]})
        for number, broker in enumerate(brokers, 1):
            assert wait_until(lambda: len(state(admin)[1]) == 3)
            broker.stop()
            broker.settings["inter.broker.listener.name"] = "CLIENTS"
            broker.start()
            producer.send(TOPIC, f"after {number}").result(60)
        assert wait_until(lambda: len(state(admin)[1]) == 3)


def state(admin: AdminClient) -> tuple[int | None, list[int], int | None]:
    part = admin.describe_topics([TOPIC])[TOPIC].partitions[0]
    return part.leader, sorted(part.isr), part.leader_epoch
