"""Pushes to a cluster: each comes to the partition of its client, whichever broker took it and whichever leads that."""

import asyncio

from harness.patience import wait_until, within
from moldau import Admin, Consumer, TopicPartition
from moldau.client.administration.configs import Resource
from moldau.client.consuming.fetched.record import Record
from moldau.names import short_id
from moldau.protocol.apis import PRODUCE
from moldau.records.columns import positive_hash
from moldau.requests.access import READ_TOPIC, WRITE_TOPIC
from moldau.requests.session import Introduction
from moldau.testing import Cluster
from tests.handlers.living import Wire
from tests.handlers.telemetry.pushing import OFTEN, TOPIC, PushingClient
from tests.requests.calling import Denying, call

PARTITIONS, CLIENTS = 4, 6


async def push_to(address: str) -> list[str]:
    """The ids of some clients that have pushed to this broker, once it knows what they are to push."""
    host, _, port = address.partition(":")
    pushed = []
    while len(pushed) < CLIENTS:
        reader, writer = await asyncio.open_connection(host, int(port))
        client = PushingClient(Wire(reader, writer))
        assert {71, 72} <= set(await client.introduce())
        if (await client.get()).requested_metrics == ["*"]:
            assert await client.push(address.encode()) == 0
            pushed.append(short_id(client.told.client_instance_id))
        writer.transport.abort()
    return pushed


def test_pushes_come_to_the_partition_of_their_client_by_way_of_any_broker() -> None:
    with Cluster(2, client_metrics_topic=TOPIC) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        with Admin(cluster.bootstrap_servers) as admin:
            admin.configs.alter(Resource.CLIENT_METRICS, "all", OFTEN)
        sent = {broker.address: asyncio.run(within(push_to(broker.address))) for broker in cluster.brokers}
        found: list[Record] = []
        with Consumer(cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(TOPIC, number) for number in range(PARTITIONS)])
            assert wait_until(lambda: found.extend(consumer.poll(100)) or len(found) >= 2 * CLIENTS)
    assert {(one.value.decode(), one.key.decode()) for one in found} == {
        (address, name) for address, names in sent.items() for name in names
    }
    assert all(one.partition == positive_hash(one.key) % PARTITIONS for one in found)


def test_a_broker_of_the_cluster_may_write_what_was_pushed_whatever_its_principal_may() -> None:
    asking = call(PRODUCE, 13, authorizer=Denying((WRITE_TOPIC, "*"), (READ_TOPIC, "*")))
    assert not asking.may(WRITE_TOPIC, TOPIC)
    asking.session.become_broker(Introduction(2, 5))
    assert asking.may(WRITE_TOPIC, TOPIC)
    assert not asking.may(READ_TOPIC, TOPIC)
