"""What became of transactions, as far as producers and readers were told, and the checks of it.

A transaction is all there or not at all: its records in every partition, and the offset that it commits. One whose
commit was acknowledged is there, one whose abort was acknowledged is not, and of one that nobody heard the end of
either may be true. A reader of committed records never sees anything else, not even for a while.
"""

from dataclasses import dataclass, field

from moldau.names import TopicPartition
from tests.worlds.workload import Broken


@dataclass
class SentTransaction:
    """The `number`th of a transactional id; its records are values that occur nowhere else."""

    transactional_id: str
    number: int
    process: str
    sent: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    has_offset: bool = False
    end: bool | None = None
    """True if its commit was acknowledged, False if its abort was."""
    tried_to_commit: bool = False


class TransactionLedger:
    def __init__(self) -> None:
        self.transactions: list[SentTransaction] = []
        self.of_value: dict[str, SentTransaction] = {}
        self.seen: dict[str, tuple[TopicPartition, int]] = {}
        self._holders: dict[str, tuple[str, float]] = {}

    def begin(self, transactional_id: str, process: str) -> SentTransaction:
        transaction = SentTransaction(transactional_id, len(self.transactions) + 1, process)
        self.transactions.append(transaction)
        return transaction

    def sends(self, transaction: SentTransaction, value: str) -> None:
        transaction.sent.add(value)
        self.of_value[value] = transaction

    def initialised(self, transactional_id: str, process: str, sent_s: float, now_s: float) -> None:
        """The process has the id from now on; of two that ask at the same time nobody knows which."""
        _, before_s = self._holders.get(transactional_id, ("", 0.0))
        self._holders[transactional_id] = process if sent_s > before_s else "", now_s

    def taken(self, transactional_id: str, process: str, sent_s: float) -> None:
        """Something that the process sent then was done. Raises `Broken` if it was fenced before."""
        holder, since_s = self._holders.get(transactional_id, ("", 0.0))
        if holder not in ("", process) and sent_s > since_s:
            raise Broken(f"{process} was fenced by {holder} at {since_s:.3f} s and writes at {sent_s:.3f} s")

    def read(self, value: str, place: TopicPartition, offset: int) -> None:
        """A reader of committed records was given this."""
        if self.seen.setdefault(value, (place, offset)) != (place, offset):
            raise Broken(f"{value} is at {self.seen[value]} and at {(place, offset)}")
        transaction = self.of_value.get(value)
        if transaction is None:
            raise Broken(f"{value} was never sent")
        if transaction.end is False or not transaction.tried_to_commit:
            raise Broken(f"{value} is read as committed, of a transaction that was not")

    def check(self, offsets: dict[str, int | None]) -> None:
        """Everything is over and was read to the end; `offsets` are those that transactional ids committed."""
        for transaction in self.transactions:
            there = transaction.sent & self.seen.keys()
            name = f"transaction {transaction.number} of {transaction.process}"
            if transaction.end is True and not transaction.acknowledged <= there:
                raise Broken(f"{name} was committed, and {min(transaction.acknowledged - there)} is lost")
            if there and not transaction.acknowledged <= there:
                raise Broken(f"{name} is there in part: not {min(transaction.acknowledged - there)}")
        for transactional_id, offset in offsets.items():
            self._check_offset(transactional_id, offset)

    def _check_offset(self, transactional_id: str, offset: int | None) -> None:
        mine = [one for one in self.transactions if one.transactional_id == transactional_id and one.has_offset]
        possible: list[int | None] = [None]
        for one in mine:
            is_there = bool(one.sent & self.seen.keys()) if one.sent else None
            if one.end is True or is_there:
                possible = [one.number]
            elif one.end is None and is_there is None and one.tried_to_commit:
                possible.append(one.number)
        if offset not in possible:
            raise Broken(f"the offset that {transactional_id} committed is {offset}, and should be {possible}")
