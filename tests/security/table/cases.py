"""How the table is written: cases of an API, each a request and the sets of rights with which it is sent."""

import enum
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
ANNA, CARL, DORA = "anna", "carl", "dora"
"""Users with passwords. Dora is a renewer of one of Bob's tokens, and Anna has asked for another one."""
OWNER, NO_OWNER = "bobb", "zedd"
"""A user with three tokens, and one who does not exist."""
THEIR_TOKEN = "theirs"
"""In a right: the id of Bob's third token, which nobody else has to do with."""
MADE, RENEWABLE, REQUESTED, OF_OWNER = "made", "renewable", "requested", "of the owner"
"""Variables of the player: the secrets of the token that was made for the case, and of Bob's three."""
UNKNOWN_ID = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")


def password_of(user: str) -> str:
    return f"{user}-secret"


class Entry(enum.Enum):
    """How a client has come in."""

    OPEN = enum.auto()
    """At the listener without logins."""
    NEW = enum.auto()
    """At the one with logins, without a handshake yet."""
    HANDSHAKE = enum.auto()
    """There, after its handshake for PLAIN."""
    PASSWORD = enum.auto()
    """There, logged in by PLAIN."""
    TOKEN = enum.auto()
    """There, logged in by a delegation token."""


class Token(enum.Enum):
    """A token that is made for a case."""

    VALID = enum.auto()
    OVER = enum.auto()


@dataclass(frozen=True)
class Case:
    """`fields` are those of the request, or a function of the version and the id of the topic `here`; they may hold
    variables of the player. `versions` are those in which it is asked, both ends included. `user` logs in where the
    `entry` needs it. With `token`, one of Anna's is made before.
    """

    name: str
    fields: Fields | Callable[[int, uuid.UUID], Fields]
    rights: tuple[Rights, ...] = (NOTHING,)
    versions: tuple[int, int] = (0, 99)
    entry: Entry = Entry.OPEN
    user: str = ANNA
    token: Token | None = None

    def of(self, version: int, here: uuid.UUID) -> Fields:
        return self.fields(version, here) if callable(self.fields) else self.fields


@dataclass(frozen=True)
class Unasked:
    """An API without cases, and why."""

    why: str


Row = tuple[Case, ...] | Unasked
