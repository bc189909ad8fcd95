"""What a coordinator decides, and the words in which it says so; knows no group, no request and no clock.

A decision changes durable state only by naming records. Whoever runs it appends them as one batch, hands each to
`apply` once it is committed, and only then sends the replies. A reply goes to a ticket: whoever asked was given one,
and hears about it at once, after the commit, or much later (a parked JoinGroup is a ticket that a member holds).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NewType, TypeAlias

from moldau.errors import ErrorCode
from moldau.names import VerificationGuard

Ticket = NewType("Ticket", int)


class Now(NamedTuple):
    """`ms` runs evenly, and deadlines are measured with it; records are stamped with `wall_ms`, since 1970."""

    monotonic_ms: int
    wall_ms: int


class InternalRecord(NamedTuple):
    """One record of an internal topic; without a value it deletes its key."""

    key: bytes
    value: bytes | None


class InTransaction(NamedTuple):
    """The records belong to a producer's transaction, and wait for its end. They show `guard` if they may begin the
    transaction; it is None if the transaction has begun."""

    producer_id: int
    epoch: int
    guard: VerificationGuard | None


class TransactionEnd(NamedTuple):
    """A producer's transaction ends; instead of records there is a marker."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commits: bool
    transaction_version: int


Replies: TypeAlias = list[tuple[Ticket, Any]]


@dataclass(slots=True)
class DecisionChain:
    """Decisions that build on one another. Once one of them is refused, those behind it must not be appended."""

    broken: bool = False


@dataclass(slots=True)
class Decision:
    """One decision. Should its records not be committed, `refused` gives the replies; without it they stay.
    `transaction`: how the records, if any, have to do with one."""

    records: list[InternalRecord] = field(default_factory=list)
    replies: Replies = field(default_factory=list)
    refused: Callable[[ErrorCode], Replies] | None = None
    chain: DecisionChain | None = None
    transaction: InTransaction | TransactionEnd | None = None

    def reply(self, ticket: Ticket | None, answer: Any) -> None:
        if ticket is not None:
            self.replies.append((ticket, answer))

    def refuse(self, ticket: Ticket, answer: Callable[[ErrorCode], Any]) -> None:
        """Should the records not be committed, this ticket gets that answer, and the others what was decided."""
        self.refused = lambda error: [(to, answer(error) if to == ticket else what) for to, what in self.replies]
