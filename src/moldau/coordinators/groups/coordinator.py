"""The group coordinator of this broker: finds the partition that a group belongs to, and lets its shard decide.

Every method answers at once or returns an awaitable, and every failure is part of the answer: errors of the runtime
(this broker does not lead the partition, or is loading it) become the error of that answer. Only methods that read
raise. Handlers know this class and the modules called `messages`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from inspect import isawaitable
from itertools import chain
from typing import Any, TypeVar

from moldau.cluster.state.image import Image
from moldau.coordinators.append_errors import error_for_client
from moldau.coordinators.classic.messages import DescribedClassicGroup, Join, Joined, Leaver, Left, Sync, Synced
from moldau.coordinators.consumer.expressions import Expressions
from moldau.coordinators.consumer.large_heartbeats import LargeHeartbeat
from moldau.coordinators.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatReply, DescribedConsumerGroup
from moldau.coordinators.consumer.rights import check_fetch
from moldau.coordinators.decision import Decision, Now, Ticket, TransactionEnd
from moldau.coordinators.groups.messages import ListedGroup
from moldau.coordinators.groups.resolving import Resolver
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.groups.shard import GroupShard
from moldau.coordinators.offsets.committed import OffsetsOfGroup
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit, TransactionalOffsetCommit
from moldau.coordinators.partitioning import partition_of
from moldau.coordinators.transactional_runtime import TransactionalLog, TransactionalRuntime
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition, VerificationGuard
from moldau.runtime import Runtime
from moldau.turns import in_turns

A = TypeVar("A")

ID_BYTES_MAX = 32767
"""The most bytes of a group id that a record's key can hold."""

OFFSETS_PER_DECISION_MAX = 1000
"""The most offsets that one decision commits or deletes."""

LARGE_ATTEMPTS_MAX = 5
"""How often a large heartbeat is decided in the executor."""

RESOLVE_WAIT_S = 2.0
"""How long a heartbeat waits for the topics of a new expression. After that it is answered without them, and a later
heartbeat brings them."""

NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors that a transaction coordinator gets as NOT_LEADER_OR_FOLLOWER, as from other partitions: it retries."""


class GroupCoordinator:
    """`partitions`: how many the offsets topic has, or will have once it exists; `image` returns the cluster now."""

    def __init__(
        self,
        settings: GroupCoordinatorSettings,
        internal: TransactionalLog,
        runtime: Runtime,
        partitions: int,
        image: Callable[[], Image] = lambda: Image(""),
    ):
        self.settings = settings
        self.partitions = partitions
        self._resolver = Resolver(Expressions(), image, runtime)

        def shard(_: int) -> GroupShard:
            return GroupShard(settings, lambda: str(runtime.random.uuid()), image, self._resolver.match)

        self._internal = internal
        self._run = runtime.run
        self._deciding = asyncio.Lock()
        """Held while a large heartbeat is decided in the executor."""
        self._unfinished: dict[asyncio.Task[Any], None] = {}
        self._runtime: TransactionalRuntime[GroupShard] = TransactionalRuntime(internal, shard, runtime.clock)

    def lead(self, partition: int, leader_epoch: int) -> None:
        """Coordinate the groups of that partition of the offsets topic: load it, and again whenever the leader epoch
        changes."""
        self._runtime.lead(partition, leader_epoch)

    def resign(self, partition: int) -> None:
        """Another broker leads that partition of the offsets topic now."""
        self._runtime.resign(partition)

    def lead_only(self, leader_epochs: Mapping[int, int]) -> None:
        """Coordinate the groups of these partitions of the offsets topic, given with their leader epochs, and no
        others."""
        for partition in self._runtime.partitions():
            if partition not in leader_epochs:
                self._runtime.resign(partition)
        for partition, leader_epoch in leader_epochs.items():
            self._runtime.lead(partition, leader_epoch)

    async def stop(self) -> None:
        await self._resolver.stop()
        await self._runtime.stop()
        await asyncio.gather(*self._unfinished)

    def partition_of(self, group_id: str) -> int:
        return partition_of(group_id, self.partitions)

    async def loaded(self, group_id: str) -> None:
        """Wait until the group's partition is loaded; raises `KafkaError` if this broker does not lead it."""
        await self._runtime.loaded(self.partition_of(group_id))

    def shard(self, partition: int) -> GroupShard:
        """The state machine of a partition of the offsets topic, for reading. Raises `KafkaError` as `offsets` does."""
        return self._runtime.machine(partition)

    def loaded_shards(self) -> list[GroupShard]:
        """The state machines of all partitions that are loaded, for reading."""
        return self._runtime.loaded_machines()

    def join(self, ask: Join) -> Joined | Awaitable[Joined]:
        def refused(error: ErrorCode) -> Joined:
            return Joined(error=error, member_id=ask.member_id)

        return self._ask(ask.group_id, lambda shard, ticket, now: shard.join(ask, ticket, now), refused)

    def beat(self, ask: ConsumerHeartbeat) -> ConsumerHeartbeatReply | Awaitable[ConsumerHeartbeatReply]:
        """ConsumerGroupHeartbeat. Waits up to `RESOLVE_WAIT_S` for the topics of a new expression."""
        later = self._resolver.resolving(ask.expression) if ask.expression else None
        return self._beat_or_large(ask) if later is None else self._beat_once_resolved(ask, later)

    async def _beat_once_resolved(self, ask: ConsumerHeartbeat, later: asyncio.Future[None]) -> ConsumerHeartbeatReply:
        await asyncio.wait([later], timeout=RESOLVE_WAIT_S)
        answer = self._beat_or_large(ask)
        return await answer if isawaitable(answer) else answer

    def _beat_or_large(self, ask: ConsumerHeartbeat) -> ConsumerHeartbeatReply | Awaitable[ConsumerHeartbeatReply]:
        return self._beat(ask) if self._to_be_decided_elsewhere(ask) is None else self._large_beat(ask)

    def _to_be_decided_elsewhere(self, ask: ConsumerHeartbeat) -> GroupShard | None:
        """The shard of a large heartbeat; None if the heartbeat is small, or is refused."""
        try:
            shard = self._runtime.machine(self.partition_of(ask.group_id))
        except KafkaError:
            return None
        return shard if shard.is_large(ask) else None

    async def _large_beat(self, ask: ConsumerHeartbeat) -> ConsumerHeartbeatReply:
        """Decide in the executor, one heartbeat at a time. If the group changes meanwhile, decide again; a group that
        never stops changing is decided on the loop in the end."""
        decided: LargeHeartbeat | None = None
        for _ in range(LARGE_ATTEMPTS_MAX):
            async with self._deciding:
                shard = self._to_be_decided_elsewhere(ask)
                if shard is None:
                    break
                large = shard.consumer.large(ask, self._runtime.now())
                await self._run(large.decide)
            if self._to_be_decided_elsewhere(ask) is shard and shard.fits(ask.group_id, large):
                decided = large
                break
        answer = self._beat(ask, decided)
        return await answer if isawaitable(answer) else answer

    def _beat(
        self, ask: ConsumerHeartbeat, large: LargeHeartbeat | None = None
    ) -> ConsumerHeartbeatReply | Awaitable[ConsumerHeartbeatReply]:
        """`large` has been decided, and fits."""

        def decide(shard: GroupShard, ticket: Ticket, now: Now) -> Decision:
            return shard.beat(ask, ticket, now) if large is None else shard.consumer.take_over(large, ticket, now)

        return self._ask(ask.group_id, decide, lambda error: ConsumerHeartbeatReply(error=error))

    def sync(self, ask: Sync) -> Synced | Awaitable[Synced]:
        return self._ask(
            ask.group_id,
            lambda shard, ticket, now: shard.sync(ask, ticket, now),
            lambda error: Synced(error=error),
        )

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        """Heartbeat. While the group is loading, the answer is NONE."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        try:
            shard = self._runtime.machine(self.partition_of(group_id))
        except KafkaError as error:
            return ErrorCode.NONE if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error.code
        return shard.heartbeat(group_id, generation, member_id, instance_id, self._runtime.now())

    def leave(self, group_id: str, leavers: list[Leaver]) -> Left | Awaitable[Left]:
        return self._ask(group_id, lambda shard, ticket, now: shard.leave(group_id, leavers, ticket, now), Left)

    def commit(self, ask: OffsetsToCommit) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        """OffsetCommit: one error for each offset. More than `OFFSETS_PER_DECISION_MAX` offsets are committed in
        several decisions, one after the other, as if the member had sent several requests; each is checked and written
        as a whole."""
        if len(ask.offsets) <= OFFSETS_PER_DECISION_MAX:
            return self._commit(ask)
        return self._to_the_end(self._in_parts(ask.offsets, lambda some: self._commit(replace(ask, offsets=some))))

    def _commit(self, ask: OffsetsToCommit) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        return self._ask(
            ask.group_id,
            lambda shard, ticket, now: shard.commit(ask, ticket, now),
            lambda error: [error] * len(ask.offsets),
            may_be_empty=True,
        )

    def commit_in_transaction(
        self, ask: TransactionalOffsetCommit, may_begin: Callable[[], ErrorCode | Awaitable[ErrorCode]]
    ) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        """One error for each offset; many are several commits, as by `commit`. Where the producer's transaction has not
        begun in the group's partition of the offsets topic, `may_begin` says whether its coordinator agrees that it
        does."""
        if len(ask.offsets) <= OFFSETS_PER_DECISION_MAX:
            return self._commit_or_begin(ask, may_begin)

        def commit(some: list[NewOffset]) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
            return self._commit_or_begin(replace(ask, offsets=some), may_begin)

        return self._to_the_end(self._in_parts(ask.offsets, commit))

    def _commit_or_begin(
        self, ask: TransactionalOffsetCommit, may_begin: Callable[[], ErrorCode | Awaitable[ErrorCode]]
    ) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        partition = self.partition_of(ask.group_id)
        if not ask.group_id or len(ask.group_id.encode()) > ID_BYTES_MAX:
            return [ErrorCode.INVALID_GROUP_ID] * len(ask.offsets)
        try:
            guard = self._internal.begin(partition, ask.producer_id, ask.epoch)
        except KafkaError as error:
            return [error_for_client(error.code)] * len(ask.offsets)
        if guard is None:
            return self._commit_in_transaction(ask, None)
        refusal = may_begin()
        if isawaitable(refusal):
            return self._commit_once_begun(ask, guard, refusal)
        return self._commit_in_transaction(ask, guard) if refusal is ErrorCode.NONE else [refusal] * len(ask.offsets)

    async def _commit_once_begun(
        self, ask: TransactionalOffsetCommit, guard: VerificationGuard, may_begin: Awaitable[ErrorCode]
    ) -> list[ErrorCode]:
        error = await may_begin
        if error is not ErrorCode.NONE:
            return [error] * len(ask.offsets)
        answer = self._commit_in_transaction(ask, guard)
        return await answer if isawaitable(answer) else answer

    def _commit_in_transaction(
        self, ask: TransactionalOffsetCommit, guard: VerificationGuard | None
    ) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        """A batch without a producer id and epoch cannot belong to a transaction, so both are checked."""
        if ask.producer_id < 0 or ask.epoch < 0:
            no_id, no_epoch = ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_EPOCH
            return [no_id if ask.producer_id < 0 else no_epoch] * len(ask.offsets)
        return self._ask(
            ask.group_id,
            lambda shard, ticket, now: shard.commit_in_transaction(ask, guard, ticket, now),
            lambda error: [error] * len(ask.offsets),
        )

    def end_transaction(
        self,
        partition: int,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        commits: bool,
        transaction_version: int,
    ) -> ErrorCode | Awaitable[ErrorCode]:
        """Write the marker of a producer's transaction into a partition of the offsets topic; then its offsets there
        count, or never will. Errors are as of any partition: NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED."""
        ending = TransactionEnd(producer_id, epoch, coordinator_epoch, commits, transaction_version)
        try:
            answer: ErrorCode | Awaitable[ErrorCode] = self._runtime.ask(
                partition, lambda shard, ticket, now: shard.end_transaction(ending, ticket, now)
            )
        except KafkaError as error:
            return _as_partition_error(error.code)
        return _ended(answer) if isawaitable(answer) else _as_partition_error(answer)

    def pending(self, group_id: str) -> frozenset[TopicPartition]:
        """The partitions with an offset that an open transaction may change. Raises as `offsets` does."""
        return self._runtime.machine(self.partition_of(group_id)).offsets.pending_of(group_id)

    def offsets(self, group_id: str) -> OffsetsOfGroup:
        """All committed offsets of a group. Raises `KafkaError` (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        return self._runtime.machine(self.partition_of(group_id)).offsets.of(group_id)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether that member may read the group's offsets. Raises `KafkaError` as `offsets` does."""
        live = self._runtime.machine(self.partition_of(group_id)).consumer.live
        return check_fetch(live.get(group_id), member_id, epoch)

    def delete_groups(
        self, group_ids: list[str]
    ) -> list[tuple[list[str], list[ErrorCode] | Awaitable[list[ErrorCode]]]]:
        """DeleteGroups: one decision for each partition of the offsets topic. Returns the groups of each decision, with
        their errors."""
        lots: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            lots.setdefault(self.partition_of(group_id), []).append(group_id)
        return [(lot, self._delete_lot(lot)) for lot in lots.values()]

    def _delete_lot(self, lot: list[str]) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        return self._ask(
            lot[0],
            lambda shard, ticket, now: shard.delete_groups(lot, ticket, now),
            lambda error: [error] * len(lot),
            may_be_empty=True,
        )

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> tuple[ErrorCode, list[ErrorCode]] | Awaitable[tuple[ErrorCode, list[ErrorCode]]]:
        """OffsetDelete: an error for the whole request, or one for each partition. Many are deleted in several
        decisions, as by `commit`."""
        asked = list(partitions)
        if len(asked) <= OFFSETS_PER_DECISION_MAX:
            return self._delete_offsets(group_id, asked)
        return self._to_the_end(self._delete_in_parts(group_id, asked))

    async def _delete_in_parts(self, group_id: str, asked: list[TopicPartition]) -> tuple[ErrorCode, list[ErrorCode]]:
        errors: list[ErrorCode] = []
        async for first in in_turns(range(0, len(asked), OFFSETS_PER_DECISION_MAX), 1):
            answer = self._delete_offsets(group_id, asked[first : first + OFFSETS_PER_DECISION_MAX])
            whole, some = await answer if isawaitable(answer) else answer
            if whole is not ErrorCode.NONE:
                return whole, []
            errors += some
        return ErrorCode.NONE, errors

    def _delete_offsets(
        self, group_id: str, asked: list[TopicPartition]
    ) -> tuple[ErrorCode, list[ErrorCode]] | Awaitable[tuple[ErrorCode, list[ErrorCode]]]:
        return self._ask(
            group_id,
            lambda shard, ticket, now: shard.delete_offsets(group_id, asked, ticket, now),
            lambda error: (error, []),
        )

    async def forget_topics(self, topics: Iterable[str]) -> None:
        """These topics were deleted: delete their offsets."""
        gone = frozenset(topics)
        await self._runtime.tell(lambda shard, now: shard.forget_topics(gone, now))

    def describe(self, group_id: str) -> DescribedClassicGroup | None:
        """A classic group; None if it does not exist. Raises `KafkaError` as `offsets` does."""
        return self._runtime.machine(self.partition_of(group_id)).classic.describe(group_id)

    def describe_consumers(self, group_id: str) -> DescribedConsumerGroup:
        """A consumer group. Raises `KafkaError` as `offsets` does, and GROUP_ID_NOT_FOUND."""
        shard = self._runtime.machine(self.partition_of(group_id))
        described = shard.consumer.describe(group_id)
        if described is None:
            classic = shard.classic.describe(group_id) is not None
            what = f"Group {group_id} is not a consumer group." if classic else f"Group {group_id} does not exist."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, what)
        return described

    def listed(self) -> Iterator[ListedGroup]:
        """All groups of this broker. They may change between two steps of the iteration. Raises `KafkaError`
        (COORDINATOR_LOAD_IN_PROGRESS)."""
        return chain.from_iterable(shard.listed() for shard in self._runtime.machines())

    async def _in_parts(
        self,
        offsets: list[NewOffset],
        commit: Callable[[list[NewOffset]], list[ErrorCode] | Awaitable[list[ErrorCode]]],
    ) -> list[ErrorCode]:
        errors: list[ErrorCode] = []
        async for first in in_turns(range(0, len(offsets), OFFSETS_PER_DECISION_MAX), 1):
            answer = commit(offsets[first : first + OFFSETS_PER_DECISION_MAX])
            errors += await answer if isawaitable(answer) else answer
        return errors

    def _to_the_end(self, work: Coroutine[Any, Any, A]) -> Awaitable[A]:
        """Run the work to its end, even if the connection of its request closes."""
        task = asyncio.ensure_future(work)
        self._unfinished[task] = None
        task.add_done_callback(self._unfinished.pop)
        return asyncio.shield(task)

    def _ask(
        self,
        group_id: str,
        decide: Callable[[GroupShard, Ticket, Now], Decision],
        refused: Callable[[ErrorCode], A],
        *,
        may_be_empty: bool = False,
    ) -> A | Awaitable[A]:
        """Let the group's shard decide. `may_be_empty`: old clients commit offsets under an empty group id, which
        cannot be joined."""
        if (not group_id and not may_be_empty) or len(group_id.encode()) > ID_BYTES_MAX:
            return refused(ErrorCode.INVALID_GROUP_ID)
        try:
            answer: Any = self._runtime.ask(self.partition_of(group_id), decide)
        except KafkaError as error:
            return refused(error.code)
        return answer  # type: ignore[no-any-return]


async def _ended(answer: Awaitable[ErrorCode]) -> ErrorCode:
    return _as_partition_error(await answer)


def _as_partition_error(error: ErrorCode) -> ErrorCode:
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in NOT_READY else error
