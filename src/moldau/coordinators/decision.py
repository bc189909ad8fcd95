"""A coordinator's decision: records to append, replies to send, and how to take both back. Pure.

A decision changes durable state only through its records. The runtime appends them as one batch, hands each to `apply`
once it is committed, and then sends the replies. A reply goes to a ticket: every request gets one, and is answered at
once, after the commit, or much later (a member holds the ticket of its parked JoinGroup). If the records are not
committed, `take_back` runs the undo steps, last one first, and returns the replies for that case.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NewType, TypeAlias

from moldau.errors import ErrorCode
from moldau.names import VerificationGuard

Ticket = NewType("Ticket", int)


class Now(NamedTuple):
    """`monotonic_ms` is for deadlines; `wall_ms`, milliseconds since 1970, is for timestamps in records."""

    monotonic_ms: int
    wall_ms: int


class InternalRecord(NamedTuple):
    """One record of an internal topic; a null value deletes the key."""

    key: bytes
    value: bytes | None


class InTransaction(NamedTuple):
    """The decision's records belong to a producer's open transaction. `guard` is the token with which the transaction
    may begin with these records; None if it has begun in this partition."""

    producer_id: int
    epoch: int
    guard: VerificationGuard | None


class TransactionEnd(NamedTuple):
    """The decision ends a producer's transaction: a marker is appended instead of records."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commits: bool
    transaction_version: int


Replies: TypeAlias = list[tuple[Ticket, Any]]
Refuse: TypeAlias = Callable[[ErrorCode], Any]
"""The error of the append -> the answer to one ticket."""
Undo: TypeAlias = "Callable[[ErrorCode, Decision], None]"
"""Takes one step of a decision back. Gets the error of the append; further replies go into the given decision."""


@dataclass(slots=True)
class DecisionChain:
    """Decisions that build on one another: after the first one that is refused, the later ones must not be appended."""

    broken: bool = False


@dataclass(slots=True)
class Decision:
    """One decision. `undo` lists how to take its steps back, in the order of the steps; `refusals` has the answers to
    tickets if the records are not committed. Tickets without a refusal get the same reply either way."""

    records: list[InternalRecord] = field(default_factory=list)
    replies: Replies = field(default_factory=list)
    undo: list[Undo] = field(default_factory=list)
    refusals: dict[Ticket, Refuse] = field(default_factory=dict)
    chain: DecisionChain | None = None
    transaction: InTransaction | TransactionEnd | None = None

    def reply(self, ticket: Ticket | None, answer: Any, refused: Refuse | None = None) -> None:
        """Answer the ticket, if any, once the records are committed; with `refused(error)` if they are not."""
        if ticket is not None:
            self.replies.append((ticket, answer))
            if refused is not None:
                self.refusals[ticket] = refused

    def prepend(self, first: "Decision") -> None:
        """Make this one decision with `first`, whose records are appended before."""
        self.records[:0] = first.records
        self.undo[:0] = first.undo
        self.take_replies(first)

    def take_replies(self, other: "Decision") -> None:
        """Move the replies of another decision here: they depend on this one's records."""
        self.replies += other.replies
        self.refusals |= other.refusals
        other.replies, other.refusals = [], {}

    def take_back(self, error: ErrorCode) -> Replies:
        """Undo the decision, whose records were not committed; returns the replies for that case."""
        aftermath = Decision()
        for step in reversed(self.undo):
            step(error, aftermath)
        replies = [
            (ticket, self.refusals[ticket](error) if ticket in self.refusals else answer)
            for ticket, answer in self.replies
        ]
        return replies + aftermath.replies
