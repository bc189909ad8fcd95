"""Which requests go first: by the frames that clients and brokers send."""

import pytest

from moldau.protocol import codec
from moldau.protocol.apis import (
    CONSUMER_GROUP_HEARTBEAT,
    ENVELOPE,
    FETCH,
    FOLLOW_CLUSTER,
    HEARTBEAT,
    METADATA,
    PRODUCE,
    Api,
)
from moldau.protocol.messages.fetch import FetchRequest, ReplicaState
from moldau.requests.urgency import is_urgent


@pytest.mark.parametrize(
    ("api", "version", "urgent"),
    [
        (HEARTBEAT, 4, True),
        (CONSUMER_GROUP_HEARTBEAT, 1, True),
        (FOLLOW_CLUSTER, 0, True),
        (ENVELOPE, 0, True),
        (METADATA, 12, False),
        (PRODUCE, 9, False),
        (FETCH, 17, False),
    ],
)
def test_heartbeats_and_requests_of_brokers_are_urgent(api: Api, version: int, urgent: bool) -> None:
    frame = memoryview(codec.write_request(api, version, 1, "c", api.request())[4:])
    assert is_urgent(frame) is urgent
    assert is_urgent(frame[:2]) is urgent
    assert not is_urgent(frame[:1]) and not is_urgent(frame[:0])


def test_a_followers_fetch_is_urgent() -> None:
    request = FetchRequest(replica_state=ReplicaState(replica_id=2, replica_epoch=5))
    assert is_urgent(memoryview(codec.write_request(FETCH, 17, 1, "c", request)[4:]))
