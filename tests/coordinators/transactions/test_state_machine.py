"""Whatever producers do, dead ones, late ones and strangers among them, with a slow log that may refuse, markers that
come one by one, and a coordinator that may die between any two steps.

A hypothesis state machine plays them on the stage of `scene`, against partitions so simple that they
cannot be wrong: lists of writes and markers, where a producer's epoch never goes back. What must hold: a transaction is
decided once, and ends so in all its partitions or in none; what a producer of version 2 wrote for one transaction is
never closed by the end of another, however late it comes; what a client was told is so; no two instances get the same
epoch; what the log says is what is there after a crash.
"""

from typing import NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule

from moldau.coordinators.decision import Ticket
from moldau.coordinators.transactions.messages import (
    AddPartitions,
    Ended,
    EndTransaction,
    Initialized,
    InitProducer,
    TransactionSettings,
)
from moldau.coordinators.transactions.transaction import IDLE, PREPARED, TransactionMetadata, TransactionState
from moldau.errors import ErrorCode
from moldau.names import TopicPartition, TransactionMarkers
from tests.coordinators.slow_log import OnASlowLog
from tests.coordinators.transactions.scene import TransactionStage, transaction_of

IDS = st.sampled_from(["x", "x", "y"])
PARTITIONS = [TopicPartition("t", number) for number in range(3)]
PARTITION = st.sampled_from(PARTITIONS)
SHORT, LONG = 20_000, 60_000


class Producer(NamedTuple):
    """What a client was told: it writes and ends transactions with this."""

    transactional_id: str
    producer_id: int
    epoch: int
    version: int


class Write(NamedTuple):
    producer: Producer
    number: int


class Partition:
    """Entries in order: writes, and markers that close those before them of the same producer id."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.open: dict[int, list[Write]] = {}
        self.closed: list[tuple[Write, TransactionMarkers]] = []

    def is_fenced(self, producer: Producer) -> bool:
        return producer.epoch < self.epochs.get(producer.producer_id, -1)

    def write(self, write: Write) -> None:
        self.epochs[write.producer.producer_id] = write.producer.epoch
        self.open.setdefault(write.producer.producer_id, []).append(write)

    def mark(self, markers: TransactionMarkers) -> None:
        if markers.epoch < self.epochs.get(markers.producer_id, -1):
            return
        self.epochs[markers.producer_id] = markers.epoch
        self.closed += [(write, markers) for write in self.open.pop(markers.producer_id, [])]


class TransactionsUnderFire(OnASlowLog):
    producers = Bundle("producers")
    writes = Bundle("writes")

    @initialize(server_version=st.sampled_from([2, 2, 2, 0]))
    def begin(self, server_version: int) -> None:
        settings = TransactionSettings(
            transaction_version=server_version, id_expiration_ms=600_000, remove_expired_interval_ms=300_000
        )
        self.stage = TransactionStage(settings)
        self.version = server_version
        self.partitions = {tp: Partition() for tp in PARTITIONS}
        self.unmarked: dict[str, tuple[TransactionMarkers, list[TopicPartition]]] = {}
        self.rounds: list[tuple[str, TransactionMarkers]] = []
        self.asked: dict[Ticket, Producer | InitProducer | EndTransaction] = {}
        self.told: dict[tuple[int, int], str] = {}
        self.numbers = 0
        self.seen = 0

    # -- producers

    @rule(target=producers, transactional_id=IDS, timeout_ms=st.sampled_from([SHORT, LONG]))
    def starts(self, transactional_id: str, timeout_ms: int) -> Producer:
        return self._init(InitProducer(transactional_id, timeout_ms))

    @rule(target=producers, who=producers)
    def recovers(self, who: Producer) -> Producer:
        return self._init(InitProducer(who.transactional_id, LONG, who.producer_id, who.epoch))

    def _init(self, ask: InitProducer) -> Producer:
        ticket = self.stage.ticket()
        self.asked[ticket] = ask
        self.stage.carry_out(self.stage.shard.init(ask, ticket, self.stage.now))
        answer = self.stage.answers.get(ticket)
        if answer is not None and answer.error is ErrorCode.NONE:
            return Producer(ask.transactional_id, answer.producer_id, answer.epoch, self.version)
        return self._guess(ask.transactional_id)

    def _guess(self, transactional_id: str) -> Producer:
        """Who was not answered, or a stranger, may say anything; what the log says is the best guess."""
        known = self._last(transactional_id)
        if known is None:
            return Producer(transactional_id, 7, 0, self.version)
        return Producer(transactional_id, known.producer_id, known.epoch, self.version)

    @rule(target=writes, who=producers, tp=PARTITION)
    def sends(self, who: Producer, tp: TopicPartition) -> tuple[TopicPartition, Write]:
        """A batch leaves the producer; when, and whether, it arrives is another matter."""
        self.numbers += 1
        return tp, Write(who, self.numbers)

    @rule(who=producers, tp=PARTITION, ends=st.booleans(), commits=st.booleans())
    def does_a_transaction(self, who: Producer, tp: TopicPartition, ends: bool, commits: bool) -> None:
        """What producers mostly do: without it a random walk hardly ever gets far."""
        self.numbers += 1
        self.arrives((tp, Write(who, self.numbers)))
        if ends:
            self.ends_it(who, commits)

    @rule(sent=writes)
    def arrives(self, sent: tuple[TopicPartition, Write]) -> None:
        """The leader takes a batch if its transaction goes on there already, or if the coordinator says so."""
        tp, write = sent
        who, partition = write.producer, self.partitions[tp]
        if partition.is_fenced(who):
            return
        going_on = partition.open.get(who.producer_id)
        if going_on and going_on[0].producer.epoch == who.epoch:
            partition.write(write)
            return
        ask = AddPartitions(who.transactional_id, who.producer_id, who.epoch, (tp,), who.version)
        ticket = self.stage.ticket()
        self.stage.carry_out(self.stage.shard.add(ask, ticket, self.stage.now))
        answer = self.stage.answers.pop(ticket, None)
        self.stage.waiting.pop(ticket, None)
        if answer is ErrorCode.NONE:
            assert self.stage.shard.verify(ask) == {tp: ErrorCode.NONE}
            partition.write(write)

    @rule(target=producers, who=producers, commits=st.booleans())
    def ends_it(self, who: Producer, commits: bool) -> Producer:
        ask = EndTransaction(who.transactional_id, who.producer_id, who.epoch, commits, who.version)
        ticket = self.stage.ticket()
        self.asked[ticket] = ask
        self.stage.carry_out(self.stage.shard.end(ask, ticket, self.stage.now))
        answer = self.stage.answers.get(ticket)
        if answer is not None and answer.error is ErrorCode.NONE and answer.producer_id >= 0:
            return Producer(who.transactional_id, answer.producer_id, answer.epoch, who.version)
        return who

    # -- markers

    @rule(transactional_id=IDS, at=st.integers(0, 2))
    def a_marker_is_written(self, transactional_id: str, at: int) -> None:
        self._see_marking()
        markers, left = self.unmarked.get(transactional_id, (None, []))
        if markers is not None and left:
            self.partitions[left.pop(at % len(left))].mark(markers)

    @rule(transactional_id=IDS)
    def all_markers_are_written(self, transactional_id: str) -> None:
        self._see_marking()
        markers, left = self.unmarked.get(transactional_id, (None, []))
        if markers is None:
            return
        while left:
            self.partitions[left.pop()].mark(markers)
        ticket = self.stage.ticket()
        self.stage.carry_out(self.stage.shard.complete(transactional_id, markers, ticket, self.stage.now))

    @rule(transactional_id=IDS, at=st.integers(0, 5))
    def a_round_of_before_is_late(self, transactional_id: str, at: int) -> None:
        """Somebody still believes that he has to complete what has long been over."""
        now = self.stage.marking.get(transactional_id)
        late = [markers for name, markers in self.rounds if name == transactional_id and markers != now]
        if late:
            ticket, records = self.stage.ticket(), len(self.stage.log) + len(self.stage.held)
            decided = self.stage.shard.complete(transactional_id, late[-1 - at % len(late)], ticket, self.stage.now)
            self.stage.carry_out(decided)
            assert len(self.stage.log) + len(self.stage.held) == records, "completed by a stranger"

    def _see_marking(self) -> None:
        for transactional_id, markers in self.stage.marking.items():
            if self.unmarked.get(transactional_id, (None,))[0] is not markers:
                self.unmarked[transactional_id] = (markers, list(markers.partitions))
                self.rounds.append((transactional_id, markers))

    # -- the world

    @rule()
    def much_time_passes(self) -> None:
        self.stage.wait(700_000)

    @rule(taken=st.integers(0, 2))
    def broker_dies(self, taken: int) -> None:
        """What it was just about to write may have reached the log, or not."""
        for outcome in self.stage.held[:taken]:
            self.stage.log += outcome.records
        says = {transactional_id: self._last(transactional_id) for transactional_id in ("x", "y")}
        self.stage.crash()
        self.unmarked = {}
        for transactional_id, transaction in says.items():
            found = self.stage.shard.describe(transactional_id)
            assert (found is None) == (transaction is None)
            if found is not None and transaction is not None:
                assert (found.producer_id, found.epoch) == (transaction.producer_id, transaction.epoch)
                assert (found.state, dict.fromkeys(found.partitions)) == (
                    transaction.state.label,
                    transaction.partitions,
                )
                assert (transactional_id in self.stage.marking) == (transaction.state in PREPARED)

    def _last(self, transactional_id: str) -> TransactionMetadata | None:
        found = None
        for name, transaction in map(transaction_of, self.stage.log):
            found = transaction if name == transactional_id else found
        return found

    # -- what must hold

    @invariant()
    def answers_are_true(self) -> None:
        if not hasattr(self, "stage"):
            return
        for ticket, answer in self.stage.answers.items():
            match self.asked.pop(ticket, None), answer:
                case InitProducer() as ask, Initialized(error=ErrorCode.NONE):
                    who = (answer.producer_id, answer.epoch)
                    again = ask.producer_id >= 0
                    assert again or who not in self.told, "two instances were told the same"
                    assert self.told.setdefault(who, ask.transactional_id) == ask.transactional_id
                case EndTransaction() as ask, Ended(error=ErrorCode.NONE):
                    wanted = TransactionState.PREPARE_COMMIT if ask.commits else TransactionState.PREPARE_ABORT
                    assert wanted in self._decisions(ask.producer_id, ask.epoch, ask.transaction_version)
        self.stage.answers.clear()

    def _decisions(self, producer_id: int, epoch: int, version: int) -> list[TransactionState]:
        written = epoch + 1 if version >= 2 else epoch
        return [
            one.state
            for _, one in map(transaction_of, self.stage.log)
            if one is not None and one.state in PREPARED and (one.producer_id, one.epoch) == (producer_id, written)
        ]

    @invariant()
    def each_step_in_the_log_follows_from_the_one_before(self) -> None:
        if not hasattr(self, "stage") or self.seen == len(self.stage.log):
            return
        before: dict[str, TransactionMetadata | None] = {}
        owners: dict[int, str] = {}
        for name, after in map(transaction_of, self.stage.log):
            was = before.get(name)
            before[name] = after
            if after is None:
                assert was is not None and was.state in IDLE
                continue
            assert owners.setdefault(after.producer_id, name) == name, "a producer id belongs to one id"
            if was is None:
                assert after.state is TransactionState.EMPTY and after.epoch == 0
            elif was.state in PREPARED:
                done = (
                    TransactionState.COMPLETE_COMMIT
                    if was.state is TransactionState.PREPARE_COMMIT
                    else TransactionState.COMPLETE_ABORT
                )
                assert after.state is done
            else:
                assert after.producer_id != was.producer_id or after.epoch >= was.epoch, "epochs never go back"
                if after.state in PREPARED and was.state is TransactionState.ONGOING:
                    assert after.partitions == was.partitions
                if after.state is TransactionState.ONGOING:
                    gone_on = was.state is TransactionState.ONGOING
                    assert not gone_on or (
                        after.start_ms == was.start_ms and was.partitions.items() <= after.partitions.items()
                    )
        self.seen = len(self.stage.log)

    @invariant()
    def no_write_is_closed_by_the_end_of_another_transaction(self) -> None:
        if not hasattr(self, "stage") or self.version < 2:
            return
        for partition in self.partitions.values():
            for write, markers in partition.closed:
                assert markers.epoch == write.producer.epoch + 1, "late, and yet taken"

    def teardown(self) -> None:
        """In the end nothing is open, and all is as decided."""
        if not hasattr(self, "stage"):
            return
        self.stage.holding = False
        self.stage.commit_held()
        self.answers_are_true()
        for _ in range(2):
            for transactional_id in ("x", "y"):
                self.all_markers_are_written(transactional_id)
            self.stage.wait(120_000)
        for transactional_id in ("x", "y"):
            self.all_markers_are_written(transactional_id)
            last = self._last(transactional_id)
            assert last is None or last.state in IDLE
        for tp, partition in self.partitions.items():
            assert not any(partition.open.values()), f"a transaction hangs in {tp}"
            for write, markers in partition.closed:
                wanted = TransactionState.PREPARE_COMMIT if markers.commits else TransactionState.PREPARE_ABORT
                if self.version >= 2:
                    assert self._decisions(write.producer.producer_id, write.producer.epoch, 2) == [wanted]


TestTransactionsUnderFire = TransactionsUnderFire.TestCase
