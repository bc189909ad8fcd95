"""Which requests a broker under overload answers first: heartbeats of groups, and what other brokers ask.

A frame that only looks like one of them gains little: urgent connections share half of the loop's time.
"""

from moldau.protocol.apis import BETWEEN_BROKERS, CONSUMER_GROUP_HEARTBEAT, FETCH, HEARTBEAT
from moldau.protocol.hot_topics import FOLLOWER

_FETCH = FETCH.key.to_bytes(2, "big")
_FOLLOWER_AT = slice(-17, -13)
_URGENT = frozenset(key.to_bytes(2, "big") for key in (HEARTBEAT.key, CONSUMER_GROUP_HEARTBEAT.key, *BETWEEN_BROKERS))


def is_urgent(frame: memoryview) -> bool:
    """By its API key, and for a Fetch by how a follower's ends. The frame may be cut short."""
    key = bytes(frame[:2])
    return key in _URGENT or (key == _FETCH and frame[_FOLLOWER_AT] == FOLLOWER)
