"""The transactional ids of one partition of `__transaction_state`, and every decision about them. Pure.

A transaction has at most one undecided step. CONCURRENT_TRANSACTIONS answers all other requests while its record is not
committed, and from the decision to commit or abort until every partition has its marker (Kafka's pending state). The
checks come in the order of Kafka 4.3, because clients act on the error they get. `mark` is called once a Prepare record
is committed, with the markers to write; the marker writer then calls `complete`, however often and however late.

Ids without a transaction are kept packed, also while a step that begins one is undecided. Timeouts are checked every
`abort_timed_out_interval_ms`, as in Kafka, and only in those intervals in which a transaction times out.
"""

from collections.abc import Callable, Iterable, Iterator

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
"""The number of ids that one turn checks for expiry (about a millisecond), and the pause until the next turn."""

TakeId = Callable[[], int | None]
"""Returns a producer id that was never used before; None while the next block of ids is being fetched."""

Mark = Callable[[str, TransactionMarkers], None]


class TransactionShard:
    """`coordinator_epoch` is the partition's leader epoch. Markers carry it, so that a former leader's are rejected.

    A decision that needs a producer id while none is available replies None: the request is repeated later.
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
        """Damaged records, and those of unknown versions, are skipped."""
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
        """Abort one transaction that timed out, or check the next ids for expiry; None if nothing is due."""
        while (transactional_id := self._deadlines.take(now.monotonic_ms)) is not None:
            decision = self._time_out(transactional_id, now)
            if decision is not None:
                return decision
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
        out.undo.append(lambda _error, _then: self._look_at(transactional_id, now.monotonic_ms + 1))
        return out

    def _expire(self, now: Now) -> Decision:
        """Delete the ids that expired among the next `EXPIRY_LOOKS`."""
        if not self._to_look_at:
            self._to_look_at = list(self._idle)
        before_ms = now.wall_ms - self.settings.id_expiration_ms
        out = Decision()
        expired: list[str] = []
        for _ in range(min(EXPIRY_LOOKS, len(self._to_look_at))):
            transactional_id = self._to_look_at.pop()
            packed = self._idle.get(transactional_id)
            is_used = transactional_id in self._open or transactional_id in self._pending
            if packed is not None and not is_used and is_expired(packed, before_ms):
                self._pending[transactional_id] = None
                out.records.append(transaction_record(transactional_id, None, self.settings.transaction_version))
                expired.append(transactional_id)
        out.undo.append(lambda _error, _then: self._forget_pending(expired))
        pause_ms = EXPIRY_PAUSE_MS if self._to_look_at else self.settings.remove_expired_interval_ms
        self._expiry_ms = now.monotonic_ms + pause_ms
        return out

    # -- decisions

    def init(self, ask: InitProducer, ticket: Ticket, now: Now) -> Decision:
        """InitProducerId; the answer is an `Initialized`, or None (see the class)."""
        out = Decision()
        was = self._find(ask.transactional_id)
        if self._is_busy(ask.transactional_id, was):
            out.reply(ticket, Initialized(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif was is not None and _is_foreign(ask, was):
            out.reply(ticket, Initialized(ErrorCode.PRODUCER_FENCED))
        elif was is not None and was.state is TransactionState.ONGOING:
            if self._abort(ask.transactional_id, was, out, now):
                out.reply(ticket, Initialized(ErrorCode.CONCURRENT_TRANSACTIONS), Initialized)
            else:
                out.reply(ticket, None)
        else:
            step = self._initialized(ask, was, now)
            if isinstance(step, TransactionMetadata):
                self._write(out, ask.transactional_id, step)
                answer = Initialized(ErrorCode.NONE, step.producer_id, step.epoch)
                out.reply(ticket, answer, Initialized)
            else:
                out.reply(ticket, None if step is None else Initialized(step))
        return out

    def _initialized(
        self, ask: InitProducer, was: TransactionMetadata | None, now: Now
    ) -> TransactionMetadata | ErrorCode | None:
        """The next step of an id without an open transaction, or an error; None if no producer id is available."""
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
        """AddPartitionsToTxn; the answer is an `ErrorCode`."""
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
            out.reply(ticket, ErrorCode.NONE, _same)
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
        """NONE for each partition in which the producer's transaction is ongoing; steps that are not committed yet do
        not count."""
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
        """EndTxn; the answer is an `Ended`, or None (see the class)."""
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
        out.reply(ticket, _ended(ask, completed(step, now)), Ended)
        return out

    def _check_end(self, ask: EndTransaction, was: TransactionMetadata) -> ErrorCode | None:
        """The check for a client without transactions of version 2; None if the transaction is to be ended."""
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
        """The check for a client with transactions of version 2; None if the transaction is to be ended. If EndTxn is
        repeated because its reply was lost, the epoch has been bumped by then."""
        if self._is_busy(ask.transactional_id, was):
            return ErrorCode.CONCURRENT_TRANSACTIONS
        is_done = was.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
        # The epochs of the producer id were used up by the end that is repeated, so a new producer id replaced it.
        rotates = ask.producer_id == was.previous_producer_id and ask.epoch == EPOCH_EXHAUSTED and was.epoch == 0
        if was.producer_id != ask.producer_id and not rotates:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        # The end that is repeated bumped the epoch by one.
        repeats = rotates or ask.epoch + 1 == was.epoch
        if was.epoch != ask.epoch and not (is_done and repeats):
            return ErrorCode.PRODUCER_FENCED
        if was.state is TransactionState.ONGOING:
            return None
        if is_done and repeats:
            done = TransactionState.COMPLETE_COMMIT if ask.commits else TransactionState.COMPLETE_ABORT
            return ErrorCode.NONE if was.state is done else ErrorCode.INVALID_TXN_STATE
        # A producer without a transaction may abort, which bumps its epoch, but not commit.
        return ErrorCode.INVALID_TXN_STATE if ask.commits else None

    def complete(self, transactional_id: str, markers: TransactionMarkers, ticket: Ticket, now: Now) -> Decision:
        """Every partition has its marker. The answer is an `ErrorCode`: INVALID_TXN_STATE if these are not the markers
        of the id's transaction."""
        out = Decision()
        was = self._open.get(transactional_id)
        if was is None or was.state not in PREPARED or self._markers(was)[:4] != markers[:4]:
            out.reply(ticket, ErrorCode.INVALID_TXN_STATE)
        elif transactional_id in self._pending:
            out.reply(ticket, ErrorCode.CONCURRENT_TRANSACTIONS)
        else:
            self._write(out, transactional_id, completed(was, now))
            out.reply(ticket, ErrorCode.NONE, _same)
        return out

    # -- for what only reads

    def describe(self, transactional_id: str) -> DescribedTransaction | None:
        """None for an unknown id."""
        transaction = self._find(transactional_id)
        if transaction is None:
            return None
        return DescribedTransaction(
            transactional_id,
            transaction.state.label,
            transaction.producer_id,
            transaction.epoch,
            transaction.timeout_ms,
            transaction.start_ms,
            tuple(transaction.partitions),
        )

    def listed(self) -> Iterator[ListedTransaction]:
        """All ids. They may change between two steps of the iteration."""
        for transactional_id in dict.fromkeys([*self._open, *self._idle]):
            one = self._find(transactional_id)
            if one is not None:
                yield ListedTransaction(transactional_id, one.producer_id, one.state.label, one.start_ms)

    # -- shared steps

    def _find(self, transactional_id: str) -> TransactionMetadata | None:
        transaction = self._open.get(transactional_id)
        if transaction is not None:
            return transaction
        packed = self._idle.get(transactional_id)
        return None if packed is None else unpack(packed)

    def _is_busy(self, transactional_id: str, transaction: TransactionMetadata | None) -> bool:
        if transactional_id in self._pending:
            return True
        return transaction is not None and transaction.state in PREPARED

    def _abort(self, transactional_id: str, was: TransactionMetadata, out: Decision, now: Now) -> bool:
        """Fence the producer and abort its transaction; False if that needs a producer id and none is available."""
        next_producer_id: int | None = NO_PRODUCER_ID
        server_version = self.settings.transaction_version
        if server_version >= 2 and was.is_exhausted:
            next_producer_id = self._take_id()
        if next_producer_id is None:
            return False
        self._write(out, transactional_id, fenced(was, server_version, next_producer_id, now))
        return True

    def _write(self, out: Decision, transactional_id: str, step: TransactionMetadata) -> None:
        """Decide the step: it is pending until its record is committed, and forgotten if that fails."""
        assert transactional_id not in self._pending
        self._pending[transactional_id] = step
        out.records.append(transaction_record(transactional_id, step, self.settings.transaction_version))
        out.undo.append(lambda _error, _then: self._forget_pending((transactional_id,)))

    def _forget_pending(self, transactional_ids: Iterable[str]) -> None:
        for transactional_id in transactional_ids:
            self._pending.pop(transactional_id, None)


def _is_foreign(ask: InitProducer, was: TransactionMetadata) -> bool:
    """Whether a recovering producer (KIP-360) has neither the id's producer id nor the one that it replaced because its
    epochs were used up."""
    if ask.producer_id in (NO_PRODUCER_ID, was.producer_id):
        return False
    return ask.producer_id != was.previous_producer_id or ask.epoch < EPOCH_EXHAUSTED


def _ended(ask: EndTransaction, after: TransactionMetadata) -> Ended:
    """With transactions of version 2 the client continues with the next epoch, otherwise with the same one."""
    return Ended(ErrorCode.NONE, after.producer_id, after.epoch) if ask.transaction_version >= 2 else Ended()


def _same(error: ErrorCode) -> ErrorCode:
    return error
