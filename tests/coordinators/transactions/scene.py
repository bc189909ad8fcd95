"""One partition of `__transaction_state` on a stage: the real shard, a log that commits when told to, markers that are
written when told to, and time that moves when told to.

Scripts (`transcripts/`) play on it line by line, each line with the trace that it leaves: what was
appended, what is to be marked, who was answered what. A producer `a` of the id `x` knows by itself which producer id
and epoch it has: what a line says otherwise is what somebody else says. Producer ids count from 1000.
"""

from typing import Any

from moldau.coordinators.decision import InternalRecord, Replies, Ticket
from moldau.coordinators.transactions.messages import (
    AddPartitions,
    Ended,
    EndTransaction,
    Initialized,
    InitProducer,
    TransactionSettings,
)
from moldau.coordinators.transactions.records import read_record, transaction_record
from moldau.coordinators.transactions.shard import TransactionShard
from moldau.coordinators.transactions.transaction import TransactionMetadata, unpack
from moldau.errors import ErrorCode
from moldau.names import TransactionMarkers
from tests.coordinators.groups.scene import blocks, milliseconds, partition
from tests.coordinators.held_log import YEAR_2013_MS, HeldLog

FIRST_PRODUCER_ID = 1000
COORDINATOR_EPOCH = 5


class TransactionStage(HeldLog[TransactionShard]):
    """`marking` is what is to be marked, by transactional id."""

    def __init__(self, settings: TransactionSettings):
        self.settings = settings
        self.ids_at_hand = -1
        self.next_producer_id = FIRST_PRODUCER_ID
        self.marking: dict[str, TransactionMarkers] = {}
        super().__init__()

    def _said(self, written: InternalRecord) -> str:
        return said(written)

    def _applied(self, shard: TransactionShard, written: InternalRecord) -> Replies:
        return shard.apply(written, self.now)

    def _take_id(self) -> int | None:
        if self.ids_at_hand == 0:
            return None
        self.ids_at_hand -= 1
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def _mark(self, transactional_id: str, markers: TransactionMarkers) -> None:
        self.marking[transactional_id] = markers
        what = "commit" if markers.commits else "abort"
        where = " ".join(str(one) for one in markers.partitions) or "nothing"
        self.trace.append(f"mark: {what} of {transactional_id} as {markers.producer_id}/{markers.epoch} in {where}")

    def _loaded(self) -> TransactionShard:
        self.marking = {}
        self.shard = TransactionShard(self.settings, COORDINATOR_EPOCH, self._take_id, self._mark)
        for record in self.log:
            assert self.shard.apply(record, self.now) == []
        self.start(self.shard)
        return self.shard

    def complete(self, transactional_id: str) -> Ticket:
        """Every partition of the transaction has its marker."""
        ticket = self.ticket()
        self.carry_out(self.shard.complete(transactional_id, self.marking[transactional_id], ticket, self.now))
        return ticket


def transaction_of(record: InternalRecord) -> tuple[str, TransactionMetadata | None]:
    """The id that a record is about, and what it says of it; None if it is gone."""
    known = read_record(record)
    assert known is not None
    value = known.value
    return known.transactional_id, unpack(value) if isinstance(value, bytes) else value


def said(record: InternalRecord) -> str:
    """A record in words."""
    transactional_id, transaction = transaction_of(record)
    if transaction is None:
        return f"{transactional_id} gone"
    words = [transactional_id, transaction.state.label, f"{transaction.producer_id}/{transaction.epoch}"]
    words += [str(one) for one in transaction.partitions]
    if transaction.previous_producer_id >= 0:
        words.append(f"after {transaction.previous_producer_id}")
    if transaction.next_producer_id >= 0:
        words.append(f"before {transaction.next_producer_id}")
    return " ".join(words)


class TransactionActor:
    """Plays the lines of a script: a verb, who says it, and `name=value` pairs."""

    def __init__(self, stage: TransactionStage):
        self.stage = stage
        self.names: dict[Ticket, str] = {}
        self.producers: dict[str, tuple[int, int]] = {}

    def play(self, line: str) -> list[str]:
        """The trace of one line."""
        verb, *words = line.split()
        pairs = dict(word.partition("=")[::2] for word in words if "=" in word)
        self.stage.trace = []
        getattr(self, f"_{verb}")([word for word in words if "=" not in word], pairs)
        trace = self.stage.trace
        for ticket in list(self.stage.answers):
            name, what = self.names.pop(ticket), self.stage.answers.pop(ticket)
            if isinstance(what, Initialized | Ended) and what.error is ErrorCode.NONE and what.producer_id >= 0:
                self.producers[name] = (what.producer_id, what.epoch)
            trace = [*trace, f"{name}: {told(what)}"]
        return trace

    def _ticket(self, name: str) -> Ticket:
        ticket = self.stage.ticket()
        self.names[ticket] = name
        return ticket

    def _who(self, name: str, pairs: dict[str, str]) -> tuple[str, int, int]:
        producer_id, epoch = self.producers.get(name, (-1, -1))
        return pairs.get("id", "x"), int(pairs.get("producer", producer_id)), int(pairs.get("epoch", epoch))

    def _init(self, plain: list[str], pairs: dict[str, str]) -> None:
        who = (pairs.get("id", "x"), int(pairs.get("producer", "-1")), int(pairs.get("epoch", "-1")))
        if "again" in plain:
            who = self._who(plain[0], pairs)
        ask = InitProducer(who[0], milliseconds(pairs.get("timeout", "60s")), *who[1:])
        self.stage.carry_out(self.stage.shard.init(ask, self._ticket(plain[0]), self.stage.now))

    def _add_of(self, plain: list[str], pairs: dict[str, str]) -> AddPartitions:
        partitions = tuple(partition(name) for name in plain[1:])
        return AddPartitions(*self._who(plain[0], pairs), partitions, int(pairs.get("v", "2")))

    def _add(self, plain: list[str], pairs: dict[str, str]) -> None:
        ask = self._add_of(plain, pairs)
        self.stage.carry_out(self.stage.shard.add(ask, self._ticket(plain[0]), self.stage.now))

    def _verify(self, plain: list[str], pairs: dict[str, str]) -> None:
        for tp, error in self.stage.shard.verify(self._add_of(plain, pairs)).items():
            self.stage.trace.append(f"{plain[0]}: {tp} {error.name}")

    def _commit(self, plain: list[str], pairs: dict[str, str]) -> None:
        self._end(True, plain, pairs)

    def _abort(self, plain: list[str], pairs: dict[str, str]) -> None:
        self._end(False, plain, pairs)

    def _end(self, commits: bool, plain: list[str], pairs: dict[str, str]) -> None:
        ask = EndTransaction(*self._who(plain[0], pairs), commits, int(pairs.get("v", "2")))
        self.stage.carry_out(self.stage.shard.end(ask, self._ticket(plain[0]), self.stage.now))

    def _marked(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.names[self.stage.complete(pairs.get("id", "x"))] = "markers"

    def _ids(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.ids_at_hand = int(plain[0])

    def _bump(self, plain: list[str], pairs: dict[str, str]) -> None:
        """Let the id be at that epoch, as if it had ended that many transactions."""
        (found,) = [one for record in self.stage.log[-1:] if (one := transaction_of(record)[1]) is not None]
        wanted = found._replace(epoch=int(plain[0]))
        self.stage.log.append(transaction_record(pairs.get("id", "x"), wanted, 2))
        self.stage.crash()
        self.producers = dict.fromkeys(self.producers, (wanted.producer_id, wanted.epoch))

    def _wait(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.wait(milliseconds(plain[0]))

    def _hold(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.holding = True

    def _release(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.holding = False
        self.stage.commit_held()

    def _refuse(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.holding = False
        self.stage.refuse_held(ErrorCode[plain[0]])

    def _crash(self, plain: list[str], pairs: dict[str, str]) -> None:
        self.stage.crash()

    def _show(self, plain: list[str], pairs: dict[str, str]) -> None:
        for listed in self.stage.shard.listed():
            found = self.stage.shard.describe(listed.transactional_id)
            assert found is not None
            began = f", {found.start_ms - YEAR_2013_MS} ms" if found.start_ms >= 0 else ""
            where = "".join(f" {tp}" for tp in found.partitions)
            self.stage.trace.append(
                f"{listed.transactional_id}: {found.state} {found.producer_id}/{found.epoch}{where}{began}"
            )


def told(what: Any) -> str:
    """An answer in words."""
    match what:
        case None:
            return "there is no producer id"
        case Initialized(error=ErrorCode.NONE) | Ended(error=ErrorCode.NONE):
            return f"is {what.producer_id}/{what.epoch}" if what.producer_id >= 0 else "NONE"
        case Initialized() | Ended():
            return what.error.name
        case _:
            return str(what.name)


def played(text: str) -> str:
    """The script with the trace that it leaves now. The first block gives the settings, one `name = value` a line."""
    (first, _), *rest = blocks(text)
    lines = [line.partition("=") for line in first if "=" in line and not line.startswith("#")]
    settings = {name.strip(): int(value) for name, _, value in lines}
    actor = TransactionActor(TransactionStage(TransactionSettings(**settings)))
    parts = ["\n".join(first)]
    for script, _ in rest:
        trace = [row for line in script if not line.startswith("#") for row in actor.play(line)]
        parts.append("\n".join([*script, "----", *trace]))
    return "\n\n".join(parts) + "\n"
