"""Runs coordinators: loads a partition of an internal topic; after that decides, appends, applies and replies.

A `StateMachine` is the pure state of one partition; this module does not know whether it holds groups or transactions.
The records of its `Decision`s are appended in the order of the decisions. The decisions that were made while one batch
was being committed share the next batch. Records are applied once they are committed, and then the replies go out. A
decision without records is answered without a task. If an append fails without saying whether the log holds the batch,
the partition is loaded again: the state is always the result of replaying the log. Waiting uses the event loop's
time, record timestamps the clock's.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from moldau.coordinators.decision import Decision, InternalRecord, Now, Replies, Ticket
from moldau.coordinators.replaying import Buffer, Step, steps
from moldau.errors import ErrorCode, KafkaError
from moldau.notices import Notices
from moldau.records.batch import encode_batch
from moldau.runtime import Clock

log = logging.getLogger(__name__)
notices = Notices(log)

BATCH_BYTES_MAX = 512 * 1024
"""What is gathered into one batch at most; a single record may be larger, as far as the topic takes it."""

NOT_TAKEN = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
"""Errors after which the batch is certainly not in the log."""

OF_THE_TOPIC = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
"""Those of them that an operator can do something about."""

RETRY_LOAD_S = 0.5
STOOD_STILL_MS_MIN, HEAR_FIRST_MS = 1000, 500
"""A timer that comes so late finds a process that did not run: what was sent to it meanwhile is heard before anybody is
taken to have been silent. Timers come before sockets where the loop goes on."""
LOAD_BYTES, LOAD_RECORD_BYTES = 24 * 1024, 64
"""How much is applied before the loop gets a turn, and what a record counts beside its value: about a millisecond's
worth, be it hundreds of offsets or one large group."""
START_BITS = 200
"""As much of a start is done before the loop gets a turn: groups, members, transactions."""


class InternalLog(Protocol):
    """The partitions of one internal topic."""

    @property
    def name(self) -> str: ...
    def read_all(self, partition: int) -> AsyncIterator[Buffer]:
        """Whole batches from the start of the log to its end, in chunks."""

    async def append(self, partition: int, batch: bytearray) -> None:
        """Append one batch; returns once it is committed. Raises `KafkaError`."""


class StateMachine(Protocol):
    """The state of one partition: only `apply` changes what lasts."""

    def apply(self, record: InternalRecord, now: Now) -> Replies: ...
    def start(self, now: Now, out: Decision) -> Iterator[int]:
        """All is read back: bit by bit, get ready to decide; gives how much there was to each bit."""

    def tick(self, now: Now) -> Decision | None: ...
    def next_ms(self) -> int | None: ...
    def stop(self, error: ErrorCode) -> Replies: ...


M = TypeVar("M", bound=StateMachine)


@lru_cache(4096)
def partition_of(key: str, count: int) -> int:
    """The partition of a group or transactional id: the amount of Java's hash of the string, modulo the count. The
    least hash has none in Java, and counts as 0."""
    units = key.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return (value if value < 1 << 31 else ((1 << 32) - value) & 0x7FFFFFFF) % count


def error_for_client(error: ErrorCode) -> ErrorCode:
    """What a client is told when the log answered `error`: to try again, to look elsewhere, or that it cannot be."""
    match error:
        case ErrorCode.NOT_LEADER_OR_FOLLOWER | ErrorCode.KAFKA_STORAGE_ERROR | ErrorCode.NOT_COORDINATOR:
            return ErrorCode.NOT_COORDINATOR
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE | ErrorCode.INVALID_RECORD:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        case ErrorCode.INVALID_PRODUCER_EPOCH | ErrorCode.INVALID_TXN_STATE | ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            return error
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


class LedPartition(Generic[M]):
    """One partition. `queue` and `appending` hold the decisions whose records are not committed yet, in order."""

    def __init__(self, partition: int, machine: M):
        self.partition = partition
        self.machine = machine
        self.loaded = False
        self.queue: list[Decision] = []
        self.appending: list[Decision] = []
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ms = 0
        self.patient_until_ms = 0


class CoordinatorRuntime(Generic[M]):
    """The partitions of one internal topic that this broker coordinates."""

    def __init__(self, internal: InternalLog, machine: Callable[[int], M], clock: Clock):
        self._log = internal
        self._machine = machine
        self._clock = clock
        self._replica: dict[int, LedPartition[M]] = {}
        self._loading = asyncio.Lock()
        self._waiting: dict[Ticket, asyncio.Future[Any]] = {}
        self._tickets = 0

    # -- which partitions

    def lead(self, partition: int) -> None:
        """This broker leads the partition from now on: load it. It answers COORDINATOR_LOAD_IN_PROGRESS until then."""
        if partition not in self._replica:
            self._load(partition)

    def resign(self, partition: int, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """The partition is no longer ours: all who wait are told to look elsewhere."""
        replica = self._replica.pop(partition, None)
        if replica is None:
            return
        if replica.timer is not None:
            replica.timer.cancel()
        if replica.task is not None:
            replica.task.cancel()
        undone = replica.appending + replica.queue
        replica.appending, replica.queue = [], []
        for outcome in undone:
            self._refuse(outcome, error)
        self._answer(replica.machine.stop(error))

    def partitions(self) -> list[int]:
        """Those that are loaded or being loaded."""
        return list(self._replica)

    async def stop(self) -> None:
        tasks = [replica.task for replica in self._replica.values() if replica.task is not None]
        for partition in list(self._replica):
            self.resign(partition, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await asyncio.gather(*tasks, return_exceptions=True)

    def machines(self) -> list[M]:
        """Those that answer. Raises `KafkaError` (COORDINATOR_LOAD_IN_PROGRESS) while one is being loaded."""
        if any(not replica.loaded for replica in self._replica.values()):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [replica.machine for replica in self._replica.values()]

    def machine(self, partition: int) -> M:
        """For what only reads. Raises `KafkaError` (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        return self._answering(partition).machine

    async def loaded(self, partition: int) -> None:
        """Wait until the partition answers; raises `KafkaError` (NOT_COORDINATOR) if it is not ours."""
        while not self._find(partition).loaded:
            task = self._replica[partition].task
            assert task is not None
            await asyncio.wait([task])

    # -- asking

    def now(self) -> Now:
        return Now(int(asyncio.get_running_loop().time() * 1000), self._clock.now_ms())

    def ask(self, partition: int, decide: Callable[[M, Ticket, Now], Decision]) -> Any | Awaitable[Any]:
        """Let the machine decide; the answer, or what to await for it.

        Raises `KafkaError` (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS); an awaited answer carries its own error.
        """
        replica = self._answering(partition)
        self._tickets += 1
        ticket = Ticket(self._tickets)
        outcome = decide(replica.machine, ticket, self.now())
        if not outcome.records and outcome.transaction is None:
            self._set_timer(replica)
            for to, answer in outcome.replies:
                if to == ticket:
                    self._answer([reply for reply in outcome.replies if reply[0] != ticket])
                    return answer
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        future.add_done_callback(lambda _: self._waiting.pop(ticket, None))
        self._carry_out(replica, outcome)
        return future

    async def tell(self, decide: Callable[[M, Now], Iterator[Decision]]) -> None:
        """Let every machine that answers decide something nobody waits for, in parts. Others have a turn in between."""
        for replica in [replica for replica in self._replica.values() if replica.loaded]:
            for outcome in decide(replica.machine, self.now()):
                if self._replica.get(replica.partition) is not replica:
                    break
                self._carry_out(replica, outcome)
                await asyncio.sleep(0)

    def _find(self, partition: int) -> LedPartition[M]:
        replica = self._replica.get(partition)
        if replica is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return replica

    def _answering(self, partition: int) -> LedPartition[M]:
        replica = self._find(partition)
        if not replica.loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return replica

    # -- carrying out

    def _carry_out(self, replica: LedPartition[M], outcome: Decision) -> None:
        if outcome.records or outcome.transaction is not None:
            replica.queue.append(outcome)
            if replica.task is None:
                replica.task = asyncio.get_running_loop().create_task(self._append_queued(replica))
        else:
            self._answer(outcome.replies)
        self._set_timer(replica)

    async def _append_queued(self, replica: LedPartition[M]) -> None:
        """Commit what is queued, batch by batch, until nothing is."""
        try:
            while replica.queue:
                replica.appending = self._next_batch(replica)
                await self._append(replica, replica.appending)
                replica.appending = []
        except KafkaError as error:
            replica.task = None
            self._start_over(replica, error)
        except Exception as error:
            log.exception("a coordinator failed")
            replica.task = None
            self._start_over(replica, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
        finally:
            replica.task = None

    @staticmethod
    def _next_batch(replica: LedPartition[M]) -> list[Decision]:
        """What has to do with a transaction stands alone."""
        size = count = 0
        for outcome in replica.queue:
            size += sum(_size(record) for record in outcome.records)
            if count and (size > BATCH_BYTES_MAX or outcome.transaction is not None):
                break
            count += 1
            if outcome.transaction is not None:
                break
        taken, replica.queue = replica.queue[:count], replica.queue[count:]
        return taken

    async def _append(self, replica: LedPartition[M], outcomes: list[Decision]) -> None:
        """Commit these together, or one by one if together they are refused. Raises `KafkaError` if nobody knows."""
        for outcome in [outcome for outcome in outcomes if outcome.chain is not None and outcome.chain.broken]:
            self._refuse(outcome, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            outcomes = [one for one in outcomes if one is not outcome]
        if not outcomes:
            return
        try:
            await self._commit(replica, outcomes)
        except KafkaError as error:
            if error.code in NOT_TAKEN and len(outcomes) > 1:
                for outcome in outcomes:
                    await self._append(replica, [outcome])
                return
            if error.code not in NOT_TAKEN:
                raise
            if error.code in OF_THE_TOPIC:
                self._complain(
                    replica.partition, "cannot be written", error, "Change its settings, or repair its replicas"
                )
            for outcome in outcomes:
                self._refuse(outcome, error_for_client(error.code))
            return
        for outcome in outcomes:
            self._answer(outcome.replies)
        self._set_timer(replica)

    async def _commit(self, replica: LedPartition[M], outcomes: list[Decision]) -> None:
        """Append and apply what was decided. Raises `KafkaError`."""
        for records in split_into_batches([record for outcome in outcomes for record in outcome.records]):
            wall_ms = self._clock.now_ms()
            batch = encode_batch([(record.key, record.value, wall_ms, []) for record in records])
            await self._log.append(replica.partition, batch)
            now = self.now()
            for record in records:
                self._answer(replica.machine.apply(record, now))

    def _refuse(self, outcome: Decision, error: ErrorCode) -> None:
        self._answer(outcome.replies if outcome.refused is None else outcome.refused(error))

    def _answer(self, replies: Replies) -> None:
        for ticket, answer in replies:
            future = self._waiting.pop(ticket, None)
            if future is not None and not future.done():
                future.set_result(answer)

    # -- time

    def _set_timer(self, replica: LedPartition[M]) -> None:
        due_ms = replica.machine.next_ms()
        if due_ms is not None:
            due_ms = max(due_ms, replica.patient_until_ms)
        if replica.timer is not None:
            if due_ms == replica.timer_ms:
                return
            replica.timer.cancel()
            replica.timer = None
        if due_ms is not None:
            replica.timer_ms = due_ms
            replica.timer = asyncio.get_running_loop().call_at((due_ms + 1) / 1000, self._tick, replica)

    def _tick(self, replica: LedPartition[M]) -> None:
        replica.timer = None
        now = self.now()
        if now.monotonic_ms - replica.timer_ms > STOOD_STILL_MS_MIN:
            replica.patient_until_ms = now.monotonic_ms + HEAR_FIRST_MS
            self._set_timer(replica)
            return
        while (outcome := replica.machine.tick(now)) is not None:
            self._carry_out(replica, outcome)
        self._set_timer(replica)

    # -- loading

    def _load(self, partition: int) -> None:
        replica = self._replica[partition] = LedPartition(partition, self._machine(partition))
        replica.task = asyncio.get_running_loop().create_task(self._replay(replica))

    def _complain(self, partition: int, what: str, error: Exception, remedy: str) -> None:
        notices.error(
            f"{self._log.name}-{partition} {what}",
            "%s-%d %s: %s. Clients whose groups or transactional ids it holds are refused. %s",
            self._log.name, partition, what, error, remedy,
        )  # fmt: skip

    def _start_over(self, replica: LedPartition[M], error: KafkaError) -> None:
        log.warning("%s-%d is loaded again: %s", self._log.name, replica.partition, error)
        if self._replica.get(replica.partition) is replica:
            self.resign(replica.partition, error_for_client(error.code))
            self._load(replica.partition)

    async def _replay(self, replica: LedPartition[M]) -> None:
        """Apply the whole log, some records at a time, so that the broker answers others meanwhile.

        Partitions that are loaded at the same time take turns, chunk by chunk: no more than one is in memory.
        """
        try:
            chunks = aiter(self._log.read_all(replica.partition))
            more = True
            while more:
                async with self._loading:
                    more = await self._replay_chunk(replica, chunks)
        except Exception as error:
            if not isinstance(error, KafkaError):
                log.debug("a partition that a coordinator loads cannot be read", exc_info=error)
            remedy = "Loading is retried; `moldau log verify` checks its files"
            self._complain(replica.partition, "cannot be loaded", error, remedy)
            await asyncio.sleep(RETRY_LOAD_S)
            if self._replica.get(replica.partition) is replica:
                self._load(replica.partition)
            return
        out = await self._start(replica.machine)
        replica.task = None
        replica.loaded = True
        self._carry_out(replica, out)

    async def _start(self, machine: M) -> Decision:
        out, room = Decision(), START_BITS
        for bits in machine.start(self.now(), out):
            room -= bits
            if room <= 0:
                await asyncio.sleep(0)
                room = START_BITS
        return out

    async def _replay_chunk(self, replica: LedPartition[M], chunks: AsyncIterator[Buffer]) -> bool:
        """Whether there was one more."""
        chunk = await anext(chunks, None)
        if chunk is None:
            return False
        now, room = self.now(), LOAD_BYTES
        for step in steps(chunk):
            apply = self._applying(replica.machine, step, now)
            for record in step.records:
                apply(record, now)
                room -= LOAD_RECORD_BYTES + len(record[1] or b"")
                if room <= 0:
                    await asyncio.sleep(0)
                    now, room = self.now(), LOAD_BYTES
        return True

    def _applying(self, machine: M, step: Step, now: Now) -> Callable[[InternalRecord, Now], Replies]:
        """What takes the step's records; if there are none it has been taken. Transactions are for those hosts that
        know them: here a record counts as it is read."""
        return machine.apply


def _size(record: InternalRecord) -> int:
    return len(record.key) + len(record.value or b"") + 32


def split_into_batches(records: list[InternalRecord]) -> list[list[InternalRecord]]:
    """The records in order, in parts that make a batch each."""
    found: list[list[InternalRecord]] = [[]]
    size = 0
    for record in records:
        size += _size(record)
        if found[-1] and size > BATCH_BYTES_MAX:
            found.append([])
            size = _size(record)
        found[-1].append(record)
    return found
