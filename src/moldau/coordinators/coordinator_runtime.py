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
from typing import Any, Generic, TypeVar

from moldau.coordinators.append_errors import CAUSED_BY_TOPIC, NOT_TAKEN, error_for_client
from moldau.coordinators.batching import decisions_of_next_batch, split_into_batches
from moldau.coordinators.decision import Decision, InternalRecord, Now, Replies, Ticket
from moldau.coordinators.ports import InternalLog, StateMachine
from moldau.coordinators.replaying import Buffer, ReplayStep, steps
from moldau.errors import ErrorCode, KafkaError
from moldau.notices import Notices
from moldau.records.batch import encode_batch
from moldau.runtime import Clock

log = logging.getLogger(__name__)
notices = Notices(log)

RETRY_LOAD_S = 0.5
STALL_MS_MIN, STALL_GRACE_MS = 1000, 500
"""A timer that fires this late means that the process was stalled. The loop runs timers before it reads sockets, so
deadlines are put off for the grace time: heartbeats that were sent during the stall are read first. Lateness is
measured by `Clock.elapsed_s`: a loop whose time a test moves on was not stalled."""
LOAD_BYTES, LOAD_RECORD_BYTES = 24 * 1024, 64
"""Replay yields to the loop after this many bytes, about a millisecond: hundreds of offsets or one large group. Each
record counts the bytes of its value and `LOAD_RECORD_BYTES`."""
START_BITS = 200
"""A start yields to the loop after this many groups, members or transactions."""
PASSED_IN_TURN = 20
"""Deadlines that have passed and are handled in one turn of the loop: all sessions of a large group may end at once."""

M = TypeVar("M", bound=StateMachine)


class LedPartition(Generic[M]):
    """One partition that this broker leads, in that leader epoch. `queue` and `appending` hold the decisions whose
    records are not committed yet, in order. `timer` is due at `timer_ms` of the loop's time, which `Clock.elapsed_s`
    reaches at `timer_elapsed_s`. Deadlines wait until `grace_until_ms` after a stall."""

    def __init__(self, partition: int, leader_epoch: int, machine: M):
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.machine = machine
        self.loaded = False
        self.queue: list[Decision] = []
        self.appending: list[Decision] = []
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ms = 0
        self.timer_elapsed_s = 0.0
        self.grace_until_ms = 0


class CoordinatorRuntime(Generic[M]):
    """The partitions of one internal topic that this broker coordinates, each with the state machine that `machine`
    makes."""

    def __init__(self, internal: InternalLog, machine: Callable[[int], M], clock: Clock):
        self._log = internal
        self._machine = machine
        self._clock = clock
        self._led: dict[int, LedPartition[M]] = {}
        self._loading = asyncio.Lock()
        self._waiting: dict[Ticket, asyncio.Future[Any]] = {}
        self._tickets = 0

    # -- which partitions

    def lead(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition in that leader epoch: load it, unless it was loaded in the same epoch.
        Requests get COORDINATOR_LOAD_IN_PROGRESS meanwhile."""
        led = self._led.get(partition)
        if led is None or led.leader_epoch != leader_epoch:
            self.resign(partition)
            self._load(partition, leader_epoch)

    def resign(self, partition: int, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """This broker no longer leads the partition: all waiting requests get the error."""
        led = self._led.pop(partition, None)
        if led is None:
            return
        if led.timer is not None:
            led.timer.cancel()
        if led.task is not None:
            led.task.cancel()
        undone = led.appending + led.queue
        led.appending, led.queue = [], []
        for decision in undone:
            self._refuse(decision, error)
        self._answer(led.machine.stop(error))

    def partitions(self) -> list[int]:
        """The partitions that are loaded or being loaded."""
        return list(self._led)

    async def stop(self) -> None:
        tasks = [led.task for led in self._led.values() if led.task is not None]
        for partition in list(self._led):
            self.resign(partition, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await asyncio.gather(*tasks, return_exceptions=True)

    def machines(self) -> list[M]:
        """The state machines of all partitions. Raises `KafkaError` (COORDINATOR_LOAD_IN_PROGRESS) while one is
        loading."""
        if any(not led.loaded for led in self._led.values()):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [led.machine for led in self._led.values()]

    def loaded_machines(self) -> list[M]:
        """The state machines of the partitions that are loaded."""
        return [led.machine for led in self._led.values() if led.loaded]

    def machine(self, partition: int) -> M:
        """A partition's state machine, for reading. Raises `KafkaError` (NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS)."""
        return self._answering(partition).machine

    async def loaded(self, partition: int) -> None:
        """Wait until the partition is loaded; raises `KafkaError` (NOT_COORDINATOR) if this broker does not lead it."""
        while not self._find(partition).loaded:
            task = self._led[partition].task
            assert task is not None
            await asyncio.wait([task])

    # -- asking

    def now(self) -> Now:
        return Now(int(asyncio.get_running_loop().time() * 1000), self._clock.now_ms())

    def ask(self, partition: int, decide: Callable[[M, Ticket, Now], Decision]) -> Any | Awaitable[Any]:
        """Let the state machine decide. Returns the answer, or an awaitable of it.

        Raises `KafkaError` (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS); an awaited answer carries its own error.
        """
        led = self._answering(partition)
        self._tickets += 1
        ticket = Ticket(self._tickets)
        decision = decide(led.machine, ticket, self.now())
        if not decision.records and decision.transaction is None:
            self._set_timer(led)
            for to, answer in decision.replies:
                if to == ticket:
                    self._answer([reply for reply in decision.replies if reply[0] != ticket])
                    return answer
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        self._execute(led, decision)
        return future

    async def tell(self, decide: Callable[[M, Now], Iterator[Decision]]) -> None:
        """Let every loaded state machine make decisions that no request awaits. The loop gets a turn after each one."""
        for led in [led for led in self._led.values() if led.loaded]:
            for decision in decide(led.machine, self.now()):
                if self._led.get(led.partition) is not led:
                    break
                self._execute(led, decision)
                await asyncio.sleep(0)

    def _find(self, partition: int) -> LedPartition[M]:
        led = self._led.get(partition)
        if led is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return led

    def _answering(self, partition: int) -> LedPartition[M]:
        led = self._find(partition)
        if not led.loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if not self._log.may_answer(partition):
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return led

    # -- executing decisions

    def _execute(self, led: LedPartition[M], decision: Decision) -> None:
        if decision.records or decision.transaction is not None:
            led.queue.append(decision)
            if led.task is None:
                led.task = asyncio.get_running_loop().create_task(self._append_queued(led))
        else:
            self._answer(decision.replies)
            self._set_timer(led)

    async def _append_queued(self, led: LedPartition[M]) -> None:
        """Commit the queued decisions, batch by batch, until the queue is empty."""
        try:
            while led.queue:
                count = decisions_of_next_batch(led.queue)
                led.appending, led.queue = led.queue[:count], led.queue[count:]
                await self._append(led, led.appending)
                led.appending = []
                self._set_timer(led)
        except KafkaError as error:
            led.task = None
            self._start_over(led, error)
        except Exception as error:
            log.exception("%s-%d: a coordinator failed", self._log.name, led.partition)
            led.task = None
            self._start_over(led, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
        finally:
            led.task = None

    async def _append(self, led: LedPartition[M], decisions: list[Decision]) -> None:
        """Commit these decisions in one batch, or one by one if the log refuses the batch. Raises `KafkaError` if the
        log may hold the batch."""
        # An earlier decision of the chain was refused: these must not be appended.
        for decision in [decision for decision in decisions if decision.chain is not None and decision.chain.broken]:
            self._refuse(decision, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            decisions = [one for one in decisions if one is not decision]
        if not decisions:
            return
        try:
            if decisions[0].transaction is None:
                await self._commit(led, decisions)
            else:
                await self._commit_in_transaction(led, decisions[0])
        except KafkaError as error:
            # One of the decisions may be to blame: try them one by one.
            if error.code in NOT_TAKEN and len(decisions) > 1:
                for decision in decisions:
                    await self._append(led, [decision])
                return
            # The log may hold the batch: the caller loads the partition again.
            if error.code not in NOT_TAKEN:
                raise
            if error.code in CAUSED_BY_TOPIC:
                self._complain(led.partition, "cannot be written", error, "Change its settings, or repair its replicas")
            for decision in decisions:
                self._refuse(decision, error_for_client(error.code))
            return
        for decision in decisions:
            self._answer(decision.replies)

    async def _commit(self, led: LedPartition[M], decisions: list[Decision]) -> None:
        """Append and apply the records. Raises `KafkaError`."""
        for records in split_into_batches([record for decision in decisions for record in decision.records]):
            wall_ms = self._clock.now_ms()
            batch = encode_batch([(record.key, record.value, wall_ms, []) for record in records])
            await self._log.append(led.partition, batch, wall_ms)
            now = self.now()
            for record in records:
                self._answer(led.machine.apply(record, now))

    async def _commit_in_transaction(self, led: LedPartition[M], decision: Decision) -> None:
        """As `_commit`, for a decision about a producer's transaction: `TransactionalRuntime` can."""
        raise AssertionError("only a `TransactionalRuntime` is given such decisions")

    def _refuse(self, decision: Decision, error: ErrorCode) -> None:
        self._answer(decision.take_back(error))

    def _answer(self, replies: Replies) -> None:
        for ticket, answer in replies:
            future = self._waiting.pop(ticket, None)
            if future is not None and not future.done():
                future.set_result(answer)

    # -- time

    def _set_timer(self, led: LedPartition[M]) -> None:
        due_ms = led.machine.next_ms()
        if due_ms is not None:
            due_ms = max(due_ms, led.grace_until_ms)
        if led.timer is not None:
            if due_ms == led.timer_ms:
                return
            led.timer.cancel()
            led.timer = None
        if due_ms is not None:
            led.timer_ms = due_ms
            wait_s = max(0.0, due_ms / 1000 - asyncio.get_running_loop().time())
            led.timer_elapsed_s = self._clock.elapsed_s() + wait_s
            led.timer = asyncio.get_running_loop().call_at((due_ms + 1) / 1000, self._tick, led)

    def _tick(self, led: LedPartition[M]) -> None:
        led.timer = None
        now = self.now()
        if (self._clock.elapsed_s() - led.timer_elapsed_s) * 1000 > STALL_MS_MIN:
            led.grace_until_ms = now.monotonic_ms + STALL_GRACE_MS
            self._set_timer(led)
            return
        for _ in range(PASSED_IN_TURN):
            decision = led.machine.tick(now)
            if decision is None:
                break
            self._execute(led, decision)
        self._set_timer(led)

    # -- loading

    def _load(self, partition: int, leader_epoch: int) -> None:
        led = self._led[partition] = LedPartition(partition, leader_epoch, self._machine(partition))
        led.task = asyncio.get_running_loop().create_task(self._replay(led))

    def _complain(self, partition: int, what: str, error: Exception, remedy: str) -> None:
        notices.error(
            f"{self._log.name}-{partition} {what}",
            "%s-%d %s: %s. Requests about its groups or transactional ids are refused. %s",
            self._log.name, partition, what, error, remedy,
        )  # fmt: skip

    def _start_over(self, led: LedPartition[M], error: KafkaError) -> None:
        log.warning("%s-%d is loaded again after a failed append: %s", self._log.name, led.partition, error)
        if self._led.get(led.partition) is led:
            self.resign(led.partition, error_for_client(error.code))
            self._load(led.partition, led.leader_epoch)

    async def _replay(self, led: LedPartition[M]) -> None:
        """Apply the whole log, and wait until all of it is committed: only then is it what any later leader has.

        Partitions that load at the same time take turns chunk by chunk, so that one chunk at most is in memory, and
        yield to the loop in between.
        """
        try:
            chunks = aiter(self._log.read_all(led.partition))
            more = True
            while more:
                async with self._loading:
                    more = await self._replay_chunk(led, chunks)
            await self._log.until_committed(led.partition)
            out = await self._start(led.machine)
        except Exception as error:
            if not isinstance(error, KafkaError):
                log.debug("%s-%d cannot be read", self._log.name, led.partition, exc_info=error)
            if not (isinstance(error, KafkaError) and error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER):
                remedy = "Loading is retried; `moldau log verify` checks its files"
                self._complain(led.partition, "cannot be loaded", error, remedy)
            await asyncio.sleep(RETRY_LOAD_S)
            if self._led.get(led.partition) is led:
                self._load(led.partition, led.leader_epoch)
            return
        led.task = None
        led.loaded = True
        self._execute(led, out)

    async def _start(self, machine: M) -> Decision:
        out, room = Decision(), START_BITS
        for bits in machine.start(self.now(), out):
            room -= bits
            if room <= 0:
                await asyncio.sleep(0)
                room = START_BITS
        return out

    async def _replay_chunk(self, led: LedPartition[M], chunks: AsyncIterator[Buffer]) -> bool:
        """Apply the next chunk; returns whether there was one."""
        chunk = await anext(chunks, None)
        if chunk is None:
            return False
        now, room = self.now(), LOAD_BYTES
        for step in steps(chunk):
            apply = self._applying(led.machine, step, now)
            for record in step.records:
                apply(record, now)
                room -= LOAD_RECORD_BYTES + len(record[1] or b"")
                if room <= 0:
                    await asyncio.sleep(0)
                    now, room = self.now(), LOAD_BYTES
        return True

    def _applying(self, machine: M, step: ReplayStep, now: Now) -> Callable[[InternalRecord, Now], Replies]:
        """The function that applies the step's records. Here records take effect in the order of the log;
        `TransactionalRuntime` also knows transactions."""
        return machine.apply
