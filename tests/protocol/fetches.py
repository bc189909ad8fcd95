"""Fetch requests as the reader by hand has them."""

from typing import Any

from moldau.protocol.fetch_request import CONSUMER, Fetch
from moldau.protocol.hot_fetch import positions_of


def as_by_hand(message: Any, version: int) -> Fetch:
    """What of a message, as the schema read it, is read by hand."""
    topics = [
        (
            topic.topic if version <= 12 else None,
            topic.topic_id.bytes if version >= 13 else None,
            [
                (part.partition, part.current_leader_epoch, part.fetch_offset, part.partition_max_bytes)
                for part in topic.partitions
            ],
        )
        for topic in message.topics
    ]
    replica_id = message.replica_id if version <= 14 else message.replica_state.replica_id
    return Fetch(
        replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        topics,
        [
            (
                topic.topic if version <= 12 else None,
                topic.topic_id.bytes if version >= 13 else None,
                list(topic.partitions),
            )
            for topic in message.forgotten_topics_data
        ],
        follower=None if replica_id == CONSUMER else positions_of(message),
        rack=message.rack_id if version >= 11 else None,
    )
