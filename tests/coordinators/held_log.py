"""What every coordinator under test stands on: a log that commits when told to, time that moves when told to, and
tickets that are answered.

It knows no shard: `Stage` and `TransactionStage` say how theirs is loaded from the log, takes what is written,
and puts it into words.
"""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from moldau.coordinators.decision import Decision, InternalRecord, InTransaction, Now, Replies, Ticket, TransactionEnd
from moldau.coordinators.ports import StateMachine
from moldau.coordinators.replaying import ReplayStep
from moldau.errors import ErrorCode

YEAR_2013_MS = 1_356_998_400_000

S = TypeVar("S", bound=StateMachine)


class HeldLog(ABC, Generic[S]):
    """`log` is what is committed, and survives a crash; `held` are decisions whose records are not in it yet. What was
    written in a transaction, and what ends one, stands in the log as a `ReplayStep`."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.held: list[Decision] = []
        self.holding = False
        self.ms = 0
        self.answers: dict[Ticket, Any] = {}
        self.waiting: dict[Ticket, None] = {}
        self.trace: list[str] = []
        self._tickets = 0
        self.shard = self._loaded()

    @abstractmethod
    def _loaded(self) -> S:
        """A shard that has replayed the log, and has started; it is `shard` before it starts."""

    def start(self, shard: S) -> None:
        """All of the log has been applied to the shard."""
        out = Decision()
        assert all(bits > 0 for bits in shard.start(self.now, out))
        self.carry_out(out)

    @abstractmethod
    def _applied(self, shard: S, written: Any) -> Replies: ...

    @abstractmethod
    def _said(self, written: Any) -> str:
        """What is written, in words."""

    @property
    def now(self) -> Now:
        return Now(self.ms, YEAR_2013_MS + self.ms)

    def crash(self) -> None:
        """Everything but the log is lost; whoever waits will never be answered."""
        self.held, self.waiting = [], {}
        self.shard = self._loaded()

    def ticket(self) -> Ticket:
        self._tickets += 1
        ticket = Ticket(self._tickets)
        self.waiting[ticket] = None
        return ticket

    def carry_out(self, outcome: Decision) -> None:
        if outcome.records or outcome.transaction is not None:
            self.held.append(outcome)
            if not self.holding:
                self.commit_held()
        else:
            self.answer(outcome.replies)

    def commit_held(self) -> None:
        held, self.held = self.held, []
        for outcome in held:
            for written in written_by(outcome):
                self.log.append(written)
                self.trace.append(f"log: {self._said(written)}")
                self.answer(self._applied(self.shard, written))
            self.answer(outcome.replies)

    def refuse_held(self, error: ErrorCode) -> None:
        held, self.held = self.held, []
        for outcome in held:
            if outcome.chain is not None and outcome.chain.broken:
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self.answer(outcome.take_back(error))

    def answer(self, replies: Replies) -> None:
        for ticket, what in replies:
            if ticket in self.waiting:
                del self.waiting[ticket]
                self.answers[ticket] = what

    def wait(self, ms: int) -> None:
        """Let time pass, stopping at every deadline."""
        until = self.ms + ms
        while (due := self.shard.next_ms()) is not None and due <= until:
            self.ms = max(self.ms, due)
            while (outcome := self.shard.tick(self.now)) is not None:
                self.carry_out(outcome)
        self.ms = until


def written_by(outcome: Decision) -> list[InternalRecord | ReplayStep]:
    """What a decision puts into the log."""
    match outcome.transaction:
        case InTransaction(producer_id):
            return [ReplayStep([record], producer_id) for record in outcome.records]
        case TransactionEnd() as ending:
            return [ReplayStep([], ending.producer_id, ending.commits)]
    return list(outcome.records)
