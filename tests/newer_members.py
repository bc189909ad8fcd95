"""A member of a consumer group (KIP-848) by one raw request: our own client is in classic groups only."""

from collections.abc import Iterator
from contextlib import contextmanager

from moldau.client.blocking import BlockingLink
from moldau.errors import ErrorCode
from moldau.peers.address import bootstrap_addresses
from moldau.protocol.apis import CONSUMER_GROUP_HEARTBEAT
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

CLIENT_ID, MEMBER_ID = "reader", "m"


@contextmanager
def joined(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """That member has joined a group whose coordinator is there, and has loaded; it does nothing more."""
    link = BlockingLink(bootstrap_addresses(bootstrap)[0], CLIENT_ID, 30_000)
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=MEMBER_ID,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    try:
        assert link.call(CONSUMER_GROUP_HEARTBEAT, request).error_code == ErrorCode.NONE
        yield
    finally:
        link.close()
