"""The transaction coordinator of this broker: finds the partition that a transactional id belongs to, and lets its
shard decide.

Every method answers at once or returns an awaitable, and every failure is part of the answer; only methods that read
raise. Handlers know this class and `messages`. Producer ids come in blocks: when the next block has to be fetched, the
request waits for it and is decided again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from moldau.cluster.state.image import Image
from moldau.coordinators.coordinator_runtime import CoordinatorRuntime
from moldau.coordinators.decision import Decision, Now, Ticket
from moldau.coordinators.partitioning import partition_of
from moldau.coordinators.ports import InternalLog
from moldau.coordinators.transactions.markers import MarkerRound, MarkerRounds
from moldau.coordinators.transactions.messages import (
    AddPartitions,
    DescribedTransaction,
    Ended,
    EndTransaction,
    Initialized,
    InitProducer,
    ListedTransaction,
    TransactionSettings,
    WriteMarkers,
)
from moldau.coordinators.transactions.shard import TransactionShard
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import TopicPartition, TransactionMarkers
from moldau.notices import Notices
from moldau.runtime import Runtime
from moldau.tasks import ended

log = logging.getLogger(__name__)
notices = Notices(log)
A = TypeVar("A")

ID_BYTES_MAX = 32767
"""The most bytes of a transactional id that a record's key can hold."""


class TransactionCoordinator:
    """`partitions`: how many `__transaction_state` has, or will have once it exists."""

    def __init__(
        self,
        settings: TransactionSettings,
        internal: InternalLog,
        runtime: Runtime,
        partitions: int,
        next_producer_id: Callable[[], int | Awaitable[int]],
        write_markers: WriteMarkers,
        image: Callable[[], Image],
    ):
        self.settings = settings
        self.partitions = partitions
        self._next_producer_id = next_producer_id
        self._producer_ids: list[int] = []
        self._taking: asyncio.Task[bool] | None = None
        self._epochs: dict[int, int] = {}
        pauses_ms = (settings.marker_retry_ms_min, settings.marker_retry_ms_max)
        self._markers = MarkerRounds(
            write_markers, self._complete, lambda tp: image().partition(tp) is not None, pauses_ms
        )
        self._runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(internal, self._shard, runtime.clock)

    def _shard(self, partition: int) -> TransactionShard:
        def mark(transactional_id: str, markers: TransactionMarkers) -> None:
            self._markers.add(partition, transactional_id, markers)

        return TransactionShard(self.settings, self._epochs[partition], self._take_id, mark)

    # -- which partitions

    def lead(self, partition: int, leader_epoch: int) -> None:
        """Coordinate that partition of `__transaction_state`: load it, and again whenever the leader epoch changes."""
        if self._epochs.get(partition) != leader_epoch:
            self.resign(partition)
        self._epochs[partition] = leader_epoch
        self._runtime.lead(partition, leader_epoch)

    def resign(self, partition: int) -> None:
        """Another broker leads the partition now, and writes the remaining markers."""
        self._markers.drop(partition)
        self._runtime.resign(partition)
        self._epochs.pop(partition, None)

    def lead_only(self, leader_epochs: Mapping[int, int]) -> None:
        """Coordinate these partitions, given with their leader epochs, and no others."""
        for partition in self._runtime.partitions():
            if partition not in leader_epochs:
                self.resign(partition)
        for partition, leader_epoch in leader_epochs.items():
            self.lead(partition, leader_epoch)

    def partitions_changed(self) -> None:
        """The cluster changed: retry refused markers at once."""
        self._markers.try_now()

    async def stop(self) -> None:
        await self._runtime.stop()  # first: a decision that is committed meanwhile begins a round of markers
        await self._markers.stop()
        await ended(self._taking)

    def partition_of(self, transactional_id: str) -> int:
        return partition_of(transactional_id, self.partitions)

    async def loaded(self, transactional_id: str) -> None:
        """Wait until the id's partition is loaded; raises `KafkaError` if this broker does not lead it."""
        await self._runtime.loaded(self.partition_of(transactional_id))

    def loaded_shards(self) -> list[TransactionShard]:
        """The state machines of all partitions that are loaded, for reading."""
        return self._runtime.loaded_machines()

    # -- what is asked

    def init_producer_id(self, ask: InitProducer) -> Initialized | Awaitable[Initialized]:
        """InitProducerId of a transactional id. A time-out that no coordinator allows is refused before anything else:
        a client would retry an error of the coordinator without end."""
        if ask.transactional_id and not 0 < ask.timeout_ms <= self.settings.max_timeout_ms:
            return Initialized(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return self._ask(ask.transactional_id, lambda shard, ticket, now: shard.init(ask, ticket, now), Initialized)

    def add_partitions(self, ask: AddPartitions) -> ErrorCode | Awaitable[ErrorCode]:
        """AddPartitionsToTxn: all partitions are added, or none."""
        return self._ask(
            ask.transactional_id, lambda shard, ticket, now: shard.add(ask, ticket, now), lambda error: error
        )

    def verify_partitions(self, ask: AddPartitions) -> dict[TopicPartition, ErrorCode]:
        """NONE for each partition in which the transaction is ongoing, an error for the others."""
        error = _check_id(ask.transactional_id)
        if error is ErrorCode.NONE:
            try:
                return self._runtime.machine(self.partition_of(ask.transactional_id)).verify(ask)
            except KafkaError as failure:
                error = failure.code
        return dict.fromkeys(ask.partitions, error)

    def end(self, ask: EndTransaction) -> Ended | Awaitable[Ended]:
        """EndTxn: answered once the decision is committed. The markers are written after that."""
        return self._ask(ask.transactional_id, lambda shard, ticket, now: shard.end(ask, ticket, now), Ended)

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """One transactional id. Raises `KafkaError` (INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS)."""
        error = _check_id(transactional_id)
        if error is not ErrorCode.NONE:
            raise KafkaError(error)
        described = self._runtime.machine(self.partition_of(transactional_id)).describe(transactional_id)
        if described is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return described

    def listed(self) -> Iterator[ListedTransaction]:
        """All transactional ids of this broker. They may change between two steps of the iteration. Raises `KafkaError`
        (COORDINATOR_LOAD_IN_PROGRESS)."""
        return chain.from_iterable(shard.listed() for shard in self._runtime.machines())

    def _ask(
        self,
        transactional_id: str,
        decide: Callable[[TransactionShard, Ticket, Now], Decision],
        refused: Callable[[ErrorCode], A],
    ) -> A | Awaitable[A]:
        error = _check_id(transactional_id)
        if error is not ErrorCode.NONE:
            return refused(error)
        partition = self.partition_of(transactional_id)
        try:
            answer: Any = self._runtime.ask(partition, decide)
        except KafkaError as failure:
            return refused(failure.code)
        if answer is None:
            return self._ask_with_id(partition, decide, refused)
        return answer  # type: ignore[no-any-return]

    # -- producer ids

    async def _ask_with_id(
        self,
        partition: int,
        decide: Callable[[TransactionShard, Ticket, Now], Decision],
        refused: Callable[[ErrorCode], A],
    ) -> A:
        """The decision needs a producer id: wait until one is available, and decide again."""
        while True:
            taking = self._taking
            if taking is not None:
                await asyncio.wait([taking])
                if taking.cancelled() or not taking.result():
                    return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            try:
                answer: Any = self._runtime.ask(partition, decide)
            except KafkaError as failure:
                return refused(failure.code)
            if answer is not None:
                final: A = await answer if isinstance(answer, Awaitable) else answer
                return final

    def _take_id(self) -> int | None:
        if self._producer_ids:
            return self._producer_ids.pop()
        if self._taking is not None:
            return None
        taken = self._next_producer_id()
        if isinstance(taken, int):
            return taken
        self._taking = asyncio.ensure_future(self._await_id(taken))
        return None

    async def _await_id(self, taken: Awaitable[int]) -> bool:
        """Wait for the id; returns whether it could be fetched."""
        try:
            self._producer_ids.append(await taken)
            return True
        except MoldauError as error:
            notices.error("", "producers cannot get producer ids: %s", error)
            return False
        finally:
            self._taking = None

    # -- markers

    async def _complete(self, one: MarkerRound) -> ErrorCode:
        try:
            answer: Any = self._runtime.ask(
                one.partition,
                lambda shard, ticket, now: shard.complete(one.transactional_id, one.markers, ticket, now),
            )
        except KafkaError as failure:
            return failure.code
        error: ErrorCode = await answer if isinstance(answer, Awaitable) else answer
        return error


def _check_id(transactional_id: str) -> ErrorCode:
    if not transactional_id or len(transactional_id.encode()) > ID_BYTES_MAX:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE
