"""Which topics of a request its client has no right on."""

from collections.abc import Callable
from typing import TypeAlias

from moldau.replication.replicas import Replicas
from moldau.requests.access import DESCRIBE_TOPIC, Right
from moldau.requests.session import Call

IsDenied: TypeAlias = Callable[[str | None, bytes | None], bool]
"""Whether the client lacks the right on a topic, given by its id, or by name where the id is None. An id that no topic
has is not denied: its answer is that it is unknown, as in Kafka."""


def is_denied(call: Call, right: Right, replicas: Replicas) -> IsDenied:
    """The authorizer is asked once for each topic."""
    told: dict[str | bytes | None, bool] = {}

    def denied(name: str | None, topic_id: bytes | None) -> bool:
        key = name if topic_id is None else topic_id
        answer = told.get(key)
        if answer is None:
            topic = replicas.topic_name(name, topic_id)
            answer = told[key] = topic is not None and not call.may(right, topic)
        return answer

    return denied


def everything(name: str | None, topic_id: bytes | None) -> bool:
    """Denies every topic."""
    return True


def may_see(call: Call) -> Callable[[str], bool] | None:
    """Whether the client may describe a topic that exists; None if it may describe all."""
    if call.session.authorizer is None:
        return None
    return lambda name: call.may(DESCRIBE_TOPIC, name, logged=False)
