"""How the table is written: cases of an API, each a request and the sets of rights with which it is sent."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]
Rights = tuple[str, ...]
"""Each as `topic here read`: what the client is allowed to do; `cluster` has no name."""
NOTHING: Rights = ()

HERE, GONE = "here", "gone"
"""A topic that exists, and one that does not."""
GROUP, NO_GROUP = "grpa", "grpb"
"""A group with an offset, and one that does not exist; so for transactional ids."""
TRANSACTION, NO_TRANSACTION = "txna", "txnb"
CONSUMERS = "cons"
"""A consumer group (KIP-848) whose member has subscribed to the topic `here`."""
UNKNOWN_ID = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


@dataclass(frozen=True)
class Case:
    """`fields` are those of the request, or a function of the version and the id of the topic `here`. `versions` are
    those in which it is asked, both ends included."""

    name: str
    fields: Fields | Callable[[int, uuid.UUID], Fields]
    rights: tuple[Rights, ...] = (NOTHING,)
    versions: tuple[int, int] = (0, 99)

    def of(self, version: int, here: uuid.UUID) -> Fields:
        return self.fields(version, here) if callable(self.fields) else self.fields


@dataclass(frozen=True)
class Unasked:
    """An API without cases, and why."""

    why: str


Row = tuple[Case, ...] | Unasked
