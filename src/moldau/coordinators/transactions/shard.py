"""One partition of `__transaction_state`: its transactional ids, and what is decided about them. Pure.

At most one step of a transaction is undecided at a time: while its record is not committed, and from the decision to
commit or abort until every marker is written, all others are told CONCURRENT_TRANSACTIONS (Kafka's pending state). The
order of the checks is Kafka's 4.3, for clients tell by the error what to do. Once a Prepare record is committed, `mark`
is told what to write where; whoever does that calls `complete` when it is done, however often and however late.

Ids that have no transaction are kept packed, and stay so beneath the one that they begin. Time-outs are looked for at
every `abort_timed_out_interval_ms`, as by Kafka, and only where one has passed.
"""

from collections.abc import Callable, Iterator

from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, InternalRecord, Now, Replies, Ticket
from moldau.coordinators.transactions.messages import (
    AddPartitions,
    DescribedTransaction,
    Ended,
    EndTransaction,
    Initialized,
    InitProducer,
    ListedTransaction,
    TransactionSettings,
)
from moldau.coordinators.transactions.records import id_of, read_record, transaction_record
from moldau.coordinators.transactions.transaction import (
    EPOCH_EXHAUSTED,
    IDLE,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    Partitions,
    TransactionMetadata,
    TransactionState,
    bumped,
    completed,
    created,
    fenced,
    is_expired,
    prepared,
    repeated,
    rotated,
    unpack,
    with_partitions,
)
from moldau.errors import ErrorCode, ProtocolViolation
from moldau.names import TopicPartition, TransactionMarkers

EXPIRY_LOOKS, EXPIRY_PAUSE_MS = 1000, 20
"""How many ids are looked at in one turn, and when the next turn comes: about a millisecond's work."""

TakeId = Callable[[], int | None]
"""A producer id that was never given out before; None if there is none at hand just now."""

Mark = Callable[[str, TransactionMarkers], None]


class TransactionShard:
    """`coordinator_epoch` is that of the partition's leader: markers carry it, so that a former one cannot interfere.

    A decision that needs a producer id when there is none answers None: ask again when there is one.
    """

    def __init__(self, settings: TransactionSettings, coordinator_epoch: int, take_id: TakeId, mark: Mark):
        self.settings = settings
        self._coordinator_epoch = coordinator_epoch
        self._take_id = take_id
        self._mark = mark
        self._idle: dict[str, bytes] = {}
        self._open: dict[str, TransactionMetadata] = {}
        self._pending: dict[str, TransactionMetadata | None] = {}
        self._deadlines: Deadlines[str] = Deadlines()
        self._expiry_ms: int | None = None
        self._to_look_at: list[str] = []

    # -- what lasts

    def apply(self, record: InternalRecord, now: Now) -> Replies:
        if self._expiry_ms is None:
            self._replay(record)
            return []
        transactional_id = id_of(record.key)
        transaction = self._pending.pop(transactional_id)
        self._put(transactional_id, transaction)
        if transaction is not None and transaction.state is TransactionState.ONGOING:
            self._set_deadline(transactional_id, transaction, now)
        else:
            self._deadlines.cancel(transactional_id)
        if transaction is not None and transaction.state in PREPARED:
            self._mark(transactional_id, self._markers(transaction))
        return []

    def _replay(self, record: InternalRecord) -> None:
        """Records that nobody understands, of newer brokers or damaged ones, stand for nothing."""
        try:
            known = read_record(record)
        except ProtocolViolation:
            return
        if known is None:
            return
        if isinstance(known.value, bytes):
            self._open.pop(known.transactional_id, None)
            self._idle[known.transactional_id] = known.value
        else:
            self._put(known.transactional_id, known.value)

    def _put(self, transactional_id: str, transaction: TransactionMetadata | None) -> None:
        if transaction is None:
            self._open.pop(transactional_id, None)
            self._idle.pop(transactional_id, None)
        elif transaction.state in IDLE:
            self._open.pop(transactional_id, None)
            self._idle[transactional_id] = transaction.pack()
        else:
            self._open[transactional_id] = transaction

    def _markers(self, transaction: TransactionMetadata) -> TransactionMarkers:
        return TransactionMarkers(
            producer_id=transaction.producer_id,
            epoch=transaction.epoch,
            coordinator_epoch=self._coordinator_epoch,
            commits=transaction.state is TransactionState.PREPARE_COMMIT,
            transaction_version=transaction.client_version,
            partitions=tuple(transaction.partitions),
        )

    # -- time

    def start(self, now: Now, out: Decision) -> Iterator[int]:
        self._expiry_ms = now.monotonic_ms + self.settings.remove_expired_interval_ms
        for transactional_id, transaction in self._open.items():
            if transaction.state is TransactionState.ONGOING:
                self._set_deadline(transactional_id, transaction, now)
            else:
                self._mark(transactional_id, self._markers(transaction))
            yield 1

    def stop(self, error: ErrorCode) -> Replies:
        return []

    def next_ms(self) -> int | None:
        time_out = self._deadlines.next_ms()
        if self._expiry_ms is None or time_out is None:
            return self._expiry_ms
        return min(time_out, self._expiry_ms)

    def tick(self, now: Now) -> Decision | None:
        """Abort one transaction whose time is over, or look at the next ids that may have expired."""
        while (transactional_id := self._deadlines.take(now.monotonic_ms)) is not None:
            outcome = self._time_out(transactional_id, now)
            if outcome is not None:
                return outcome
        if self._expiry_ms is None or now.monotonic_ms < self._expiry_ms:
            return None
        return self._expire(now)

    def _set_deadline(self, transactional_id: str, transaction: TransactionMetadata, now: Now) -> None:
        left_ms = transaction.start_ms + transaction.timeout_ms - now.wall_ms
        self._look_at(transactional_id, now.monotonic_ms + min(max(left_ms, 0), transaction.timeout_ms) + 1)

    def _look_at(self, transactional_id: str, due_ms: int) -> None:
        interval_ms = self.settings.abort_timed_out_interval_ms
        self._deadlines.set(transactional_id, -(-due_ms // interval_ms) * interval_ms)

    def _time_out(self, transactional_id: str, now: Now) -> Decision | None:
        was = self._open.get(transactional_id)
        if was is None or was.state is not TransactionState.ONGOING:
            return None
        out = Decision()
        if transactional_id in self._pending or not self._abort(transactional_id, was, out, now):
            self._look_at(transactional_id, now.monotonic_ms + 1)
            return None

        def refused(error: ErrorCode) -> Replies:
            self._pending.pop(transactional_id, None)
            self._look_at(transactional_id, now.monotonic_ms + 1)
            return []

        out.refused = refused
        return out

    def _expire(self, now: Now) -> Decision:
        """Ids that nobody used for long, among the next that are to be looked at."""
        if not self._to_look_at:
            self._to_look_at = list(self._idle)
        before_ms = now.wall_ms - self.settings.id_expiration_ms
        out, gone = Decision(), []
        for _ in range(min(EXPIRY_LOOKS, len(self._to_look_at))):
            transactional_id = self._to_look_at.pop()
            packed = self._idle.get(transactional_id)
            is_used = transactional_id in self._open or transactional_id in self._pending
            if packed is not None and not is_used and is_expired(packed, before_ms):
                self._pending[transactional_id] = None
                out.records.append(transaction_record(transactional_id, None, self.settings.transaction_version))
                gone.append(transactional_id)
        pause_ms = EXPIRY_PAUSE_MS if self._to_look_at else self.settings.remove_expired_interval_ms
        self._expiry_ms = now.monotonic_ms + pause_ms

        def refused(error: ErrorCode) -> Replies:
            for transactional_id in gone:
                self._pending.pop(transactional_id, None)
            return []

        out.refused = refused
        return out

    # -- decisions

    def init(self, ask: InitProducer, ticket: Ticket, now: Now) -> Decision:
        """The answer is an `Initialized`."""
        out = Decision()
        if not 0 < ask.timeout_ms <= self.settings.max_timeout_ms:
            out.reply(ticket, Initialized(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
            return out
        was = self._find(ask.transactional_id)
        if self._is_busy(ask.transactional_id, was):
            out.reply(ticket, Initialized(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif was is not None and _is_foreign(ask, was):
            out.reply(ticket, Initialized(ErrorCode.PRODUCER_FENCED))
        elif was is not None and was.state is TransactionState.ONGOING:
            if self._abort(ask.transactional_id, was, out, now):
                self._answer(
                    out, ask.transactional_id, ticket, Initialized(ErrorCode.CONCURRENT_TRANSACTIONS), Initialized
                )
            else:
                out.reply(ticket, None)
        else:
            step = self._initialized(ask, was, now)
            if isinstance(step, TransactionMetadata):
                self._write(out, ask.transactional_id, step)
                answer = Initialized(ErrorCode.NONE, step.producer_id, step.epoch)
                self._answer(out, ask.transactional_id, ticket, answer, Initialized)
            else:
                out.reply(ticket, None if step is None else Initialized(step))
        return out

    def _initialized(
        self, ask: InitProducer, was: TransactionMetadata | None, now: Now
    ) -> TransactionMetadata | ErrorCode | None:
        """The next step of an id without a transaction; None if it takes a producer id that is not there."""
        recovers = ask.producer_id != NO_PRODUCER_ID
        if was is None:
            producer_id = self._take_id()
            return None if producer_id is None else created(producer_id, ask.timeout_ms, now)
        if not recovers or ask.epoch == was.epoch:
            if not was.is_exhausted:
                return bumped(was, ask.timeout_ms, recovers, now)
            producer_id = self._take_id()
            return None if producer_id is None else rotated(was, producer_id, ask.timeout_ms, recovers, now)
        if ask.epoch == was.last_epoch != NO_EPOCH:
            return repeated(was, ask.timeout_ms, now)
        return ErrorCode.PRODUCER_FENCED

    def add(self, ask: AddPartitions, ticket: Ticket, now: Now) -> Decision:
        """The answer is an `ErrorCode`."""
        out = Decision()
        was = self._find(ask.transactional_id)
        error = self._check_add(ask, was)
        if was is None or error is not ErrorCode.NONE:
            out.reply(ticket, error)
        elif was.state is TransactionState.ONGOING and all(partition in was.partitions for partition in ask.partitions):
            out.reply(ticket, ErrorCode.NONE)
        else:
            added: Partitions = dict.fromkeys(ask.partitions)
            self._write(out, ask.transactional_id, with_partitions(was, added, ask.transaction_version, now))
            self._answer(out, ask.transactional_id, ticket, ErrorCode.NONE, _same)
        return out

    def _check_add(self, ask: AddPartitions, was: TransactionMetadata | None) -> ErrorCode:
        if was is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if self._is_busy(ask.transactional_id, was):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if was.producer_id != ask.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return ErrorCode.NONE if was.epoch == ask.epoch else ErrorCode.PRODUCER_FENCED

    def verify(self, ask: AddPartitions) -> dict[TopicPartition, ErrorCode]:
        """Whether the producer's transaction is ongoing in the partitions; what is not committed yet does not count."""
        was = self._find(ask.transactional_id)
        if was is None or was.producer_id != ask.producer_id:
            return dict.fromkeys(ask.partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if was.epoch != ask.epoch:
            return dict.fromkeys(ask.partitions, ErrorCode.PRODUCER_FENCED)
        if was.state in PREPARED:
            return dict.fromkeys(ask.partitions, ErrorCode.CONCURRENT_TRANSACTIONS)
        return {
            partition: ErrorCode.NONE if partition in was.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in ask.partitions
        }

    def end(self, ask: EndTransaction, ticket: Ticket, now: Now) -> Decision:
        """The answer is an `Ended`."""
        out = Decision()
        was = self._find(ask.transactional_id)
        if was is None:
            out.reply(ticket, Ended(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
            return out
        check = self._check_end if ask.transaction_version < 2 else self._check_bumping_end
        error = check(ask, was)
        if error is not None:
            out.reply(ticket, _ended(ask, was) if error is ErrorCode.NONE else Ended(error))
            return out
        next_producer_id: int | None = NO_PRODUCER_ID
        if ask.transaction_version >= 2 and was.is_exhausted:
            next_producer_id = self._take_id()
        if next_producer_id is None:
            out.reply(ticket, None)
            return out
        step = prepared(was, ask.commits, ask.transaction_version, next_producer_id, now)
        self._write(out, ask.transactional_id, step)
        self._answer(out, ask.transactional_id, ticket, _ended(ask, completed(step, now)), Ended)
        return out

    def _check_end(self, ask: EndTransaction, was: TransactionMetadata) -> ErrorCode | None:
        """By a client of version 1; None if the transaction is to be ended."""
        if was.producer_id != ask.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if was.epoch != ask.epoch:
            return ErrorCode.PRODUCER_FENCED
        if self._is_busy(ask.transactional_id, was):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if was.state is TransactionState.ONGOING:
            return None
        done = TransactionState.COMPLETE_COMMIT if ask.commits else TransactionState.COMPLETE_ABORT
        return ErrorCode.NONE if was.state is done else ErrorCode.INVALID_TXN_STATE

    def _check_bumping_end(self, ask: EndTransaction, was: TransactionMetadata) -> ErrorCode | None:
        """By a client of version 2, whose last end has bumped the epoch if it is repeated; None as above."""
        if self._is_busy(ask.transactional_id, was):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        is_done = was.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
        rotates = ask.producer_id == was.previous_producer_id and ask.epoch == EPOCH_EXHAUSTED and was.epoch == 0
        if was.producer_id != ask.producer_id and not rotates:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        repeats = rotates or ask.epoch + 1 == was.epoch
        if was.epoch != ask.epoch and not (is_done and repeats):
            return ErrorCode.PRODUCER_FENCED
        if was.state is TransactionState.ONGOING:
            return None
        if is_done and repeats:
            done = TransactionState.COMPLETE_COMMIT if ask.commits else TransactionState.COMPLETE_ABORT
            return ErrorCode.NONE if was.state is done else ErrorCode.INVALID_TXN_STATE
        return ErrorCode.INVALID_TXN_STATE if ask.commits else None

    def complete(self, transactional_id: str, markers: TransactionMarkers, ticket: Ticket, now: Now) -> Decision:
        """Every partition has its marker. The answer is an `ErrorCode`: INVALID_TXN_STATE if that was not asked for."""
        out = Decision()
        was = self._open.get(transactional_id)
        if was is None or was.state not in PREPARED or self._markers(was)[:4] != markers[:4]:
            out.reply(ticket, ErrorCode.INVALID_TXN_STATE)
        elif transactional_id in self._pending:
            out.reply(ticket, ErrorCode.CONCURRENT_TRANSACTIONS)
        else:
            self._write(out, transactional_id, completed(was, now))
            self._answer(out, transactional_id, ticket, ErrorCode.NONE, _same)
        return out

    # -- for what only reads

    def describe(self, transactional_id: str) -> DescribedTransaction | None:
        found = self._find(transactional_id)
        if found is None:
            return None
        return DescribedTransaction(
            transactional_id,
            found.state.label,
            found.producer_id,
            found.epoch,
            found.timeout_ms,
            found.start_ms,
            tuple(found.partitions),
        )

    def listed(self) -> Iterator[ListedTransaction]:
        for transactional_id in dict.fromkeys([*self._open, *self._idle]):
            found = self._find(transactional_id)
            if found is not None:
                yield ListedTransaction(transactional_id, found.producer_id, found.state.label, found.start_ms)

    # -- words they share

    def _find(self, transactional_id: str) -> TransactionMetadata | None:
        found = self._open.get(transactional_id)
        if found is not None:
            return found
        packed = self._idle.get(transactional_id)
        return None if packed is None else unpack(packed)

    def _is_busy(self, transactional_id: str, transaction: TransactionMetadata | None) -> bool:
        if transactional_id in self._pending:
            return True
        return transaction is not None and transaction.state in PREPARED

    def _abort(self, transactional_id: str, was: TransactionMetadata, out: Decision, now: Now) -> bool:
        """Fence and abort an ongoing transaction; False if that takes a producer id that is not there."""
        next_producer_id: int | None = NO_PRODUCER_ID
        server_version = self.settings.transaction_version
        if server_version >= 2 and was.is_exhausted:
            next_producer_id = self._take_id()
        if next_producer_id is None:
            return False
        self._write(out, transactional_id, fenced(was, server_version, next_producer_id, now))
        return True

    def _write(self, out: Decision, transactional_id: str, step: TransactionMetadata) -> None:
        assert transactional_id not in self._pending
        self._pending[transactional_id] = step
        out.records.append(transaction_record(transactional_id, step, self.settings.transaction_version))

    def _answer(
        self,
        out: Decision,
        transactional_id: str,
        ticket: Ticket,
        answer: object,
        failed: Callable[[ErrorCode], object],
    ) -> None:
        """What follows the commit of a step; should the log not take it, it was never decided."""
        out.reply(ticket, answer)

        def refused(error: ErrorCode) -> Replies:
            self._pending.pop(transactional_id, None)
            return [(ticket, failed(error))]

        out.refused = refused


def _is_foreign(ask: InitProducer, was: TransactionMetadata) -> bool:
    """Whether who recovers (KIP-360) is neither the present producer nor the one before, at the end of its epochs."""
    if ask.producer_id in (NO_PRODUCER_ID, was.producer_id):
        return False
    return ask.producer_id != was.previous_producer_id or ask.epoch < EPOCH_EXHAUSTED


def _ended(ask: EndTransaction, after: TransactionMetadata) -> Ended:
    """A client of version 2 goes on with the epoch after; another one with what it has."""
    return Ended(ErrorCode.NONE, after.producer_id, after.epoch) if ask.transaction_version >= 2 else Ended()


def _same(error: ErrorCode) -> ErrorCode:
    return error
