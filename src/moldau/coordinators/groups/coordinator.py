"""The group coordinator of this broker: which partition a group belongs to, and the questions put to it.

Everything is answered at once or by an awaitable, and every failure is in the answer: what the host raises (not ours,
still loading) becomes the error of that answer. Handlers know this class and `exchange`, and nothing behind it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from inspect import isawaitable
from itertools import chain
from typing import Any, TypeVar

from moldau.cluster.image import Image
from moldau.coordinators.classic.messages import DescribedClassicGroup, Join, Joined, Leaver, Left, Sync, Synced
from moldau.coordinators.consumer.expressions import Expressions
from moldau.coordinators.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatReply, DescribedConsumerGroup
from moldau.coordinators.consumer.rights import check_fetch
from moldau.coordinators.coordinator_runtime import error_for_client, partition_of
from moldau.coordinators.decision import Decision, Now, Ticket, TransactionEnd
from moldau.coordinators.groups.messages import ListedGroup
from moldau.coordinators.groups.resolving import Resolver
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.coordinators.groups.shard import GroupShard
from moldau.coordinators.offsets.committed import OffsetsOfGroup
from moldau.coordinators.offsets.messages import NewOffset, OffsetCommit, TransactionalOffsetCommit
from moldau.coordinators.transactional_runtime import TransactionalLog, TransactionalRuntime
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition, VerificationGuard
from moldau.runtime import Runtime
from moldau.turns import in_turns

A = TypeVar("A")

ID_BYTES_MAX = 32767
"""A longer group id fits into no record."""

OF_A_DECISION = 1000
"""Offsets that one decision commits or deletes."""

RESOLVE_WAIT_S = 2.0
"""Who subscribes with an expression whose topics are not known after this is answered without them, and has them with a
later heartbeat."""

NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What a transaction coordinator hears as NOT_LEADER_OR_FOLLOWER, as from any other partition: it shall try again."""


class GroupCoordinator:
    """`partitions` is how many the offsets topic has, or will have once it is made; `image` is the cluster as it is."""

    def __init__(
        self,
        settings: GroupCoordinatorSettings,
        internal: TransactionalLog,
        runtime: Runtime,
        partitions: Callable[[], int],
        image: Callable[[], Image] = lambda: Image(""),
    ):
        self.settings = settings
        self._partitions = partitions
        self._resolver = Resolver(Expressions(), image, runtime)

        def shard(_: int) -> GroupShard:
            return GroupShard(settings, lambda: str(runtime.random.uuid()), image, self._resolver.match)

        self._internal = internal
        self._unfinished: dict[asyncio.Task[Any], None] = {}
        self._host: TransactionalRuntime[GroupShard] = TransactionalRuntime(internal, shard, runtime.clock)

    def lead(self, partition: int) -> None:
        """Load that partition of the offsets topic and answer for it."""
        self._host.lead(partition)

    def resign(self, partition: int) -> None:
        """Another broker answers for that partition of the offsets topic from now on."""
        self._host.resign(partition)

    def lead_only(self, partitions: Iterable[int]) -> None:
        """Answer for these and no others."""
        wanted = dict.fromkeys(partitions)
        for partition in self._host.partitions():
            if partition not in wanted:
                self._host.resign(partition)
        for partition in wanted:
            self._host.lead(partition)

    async def stop(self) -> None:
        await self._resolver.stop()
        await self._host.stop()
        await asyncio.gather(*self._unfinished)

    def partition_of(self, group_id: str) -> int:
        return partition_of(group_id, self._partitions())

    async def loaded(self, group_id: str) -> None:
        """Wait until the group's partition is loaded; raises `KafkaError` if it is not ours."""
        await self._host.loaded(self.partition_of(group_id))

    def shard(self, partition: int) -> GroupShard:
        """What is known of a partition of the offsets topic, to look at. Raises `KafkaError` as `offsets` does."""
        return self._host.machine(partition)

    def join(self, ask: Join) -> Joined | Awaitable[Joined]:
        def refused(error: ErrorCode) -> Joined:
            return Joined(error=error, member_id=ask.member_id)

        return self._ask(ask.group_id, lambda shard, ticket, now: shard.join(ask, ticket, now), refused)

    def beat(self, ask: ConsumerHeartbeat) -> ConsumerHeartbeatReply | Awaitable[ConsumerHeartbeatReply]:
        """An expression that takes long to resolve is waited for a moment, so that its member has topics at once."""
        later = self._resolver.resolving(ask.expression) if ask.expression else None
        return self._beat(ask) if later is None else self._beat_once_resolved(ask, later)

    async def _beat_once_resolved(self, ask: ConsumerHeartbeat, later: asyncio.Future[None]) -> ConsumerHeartbeatReply:
        await asyncio.wait([later], timeout=RESOLVE_WAIT_S)
        answer = self._beat(ask)
        return await answer if isawaitable(answer) else answer

    def _beat(self, ask: ConsumerHeartbeat) -> ConsumerHeartbeatReply | Awaitable[ConsumerHeartbeatReply]:
        return self._ask(
            ask.group_id,
            lambda shard, ticket, now: shard.beat(ask, ticket, now),
            lambda error: ConsumerHeartbeatReply(error=error),
        )

    def sync(self, ask: Sync) -> Synced | Awaitable[Synced]:
        return self._ask(
            ask.group_id,
            lambda shard, ticket, now: shard.sync(ask, ticket, now),
            lambda error: Synced(error=error),
        )

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None) -> ErrorCode:
        """A member of a group that is still being loaded is taken to be well."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        try:
            shard = self._host.machine(self.partition_of(group_id))
        except KafkaError as error:
            return ErrorCode.NONE if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error.code
        return shard.heartbeat(group_id, generation, member_id, instance_id, self._host.now())

    def leave(self, group_id: str, leavers: list[Leaver]) -> Left | Awaitable[Left]:
        return self._ask(group_id, lambda shard, ticket, now: shard.leave(group_id, leavers, ticket, now), Left)

    def commit(self, ask: OffsetCommit) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        """One error for each offset. More than `OF_A_DECISION` are as many commits as it takes, one after the other, as
        if the member had sent them so: each is allowed or refused, and written, as a whole."""
        if len(ask.offsets) <= OF_A_DECISION:
            return self._commit(ask)
        return self._to_the_end(self._in_parts(ask.offsets, lambda some: self._commit(replace(ask, offsets=some))))

    def _commit(self, ask: OffsetCommit) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
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
        if len(ask.offsets) <= OF_A_DECISION:
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
        """A batch of no producer would belong to no transaction, whoever agreed to it."""
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
            answer: ErrorCode | Awaitable[ErrorCode] = self._host.ask(
                partition, lambda shard, ticket, now: shard.end_transaction(ending, ticket, now)
            )
        except KafkaError as error:
            return _of_a_partition(error.code)
        return _ended(answer) if isawaitable(answer) else _of_a_partition(answer)

    def pending(self, group_id: str) -> frozenset[TopicPartition]:
        """The partitions whose offset depends on a transaction that is open. Raises as `offsets` does."""
        return self._host.machine(self.partition_of(group_id)).offsets.pending_of(group_id)

    def offsets(self, group_id: str) -> OffsetsOfGroup:
        """All that a group has committed. Raises `KafkaError` (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS)."""
        return self._host.machine(self.partition_of(group_id)).offsets.of(group_id)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether who says to be that member may read the group's offsets. Raises `KafkaError` as `offsets` does."""
        live = self._host.machine(self.partition_of(group_id)).consumers.live
        return check_fetch(live.get(group_id), member_id, epoch)

    def delete_groups(
        self, group_ids: list[str]
    ) -> list[tuple[list[str], list[ErrorCode] | Awaitable[list[ErrorCode]]]]:
        """The groups by the partition they belong to, each lot with its errors."""
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
        """An error for the whole, or else one for each partition. Many are deleted in parts, as by
        `commit`."""
        asked = list(partitions)
        if len(asked) <= OF_A_DECISION:
            return self._delete_offsets(group_id, asked)
        return self._to_the_end(self._delete_in_parts(group_id, asked))

    async def _delete_in_parts(self, group_id: str, asked: list[TopicPartition]) -> tuple[ErrorCode, list[ErrorCode]]:
        errors: list[ErrorCode] = []
        async for first in in_turns(range(0, len(asked), OF_A_DECISION), 1):
            answer = self._delete_offsets(group_id, asked[first : first + OF_A_DECISION])
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
        """These topics have been deleted; their offsets go too."""
        gone = frozenset(topics)
        await self._host.tell(lambda shard, now: shard.forget_topics(gone, now))

    def describe(self, group_id: str) -> DescribedClassicGroup | None:
        """None for a group that is not there. Raises `KafkaError` as `offsets` does."""
        return self._host.machine(self.partition_of(group_id)).groups.describe(group_id)

    def describe_consumers(self, group_id: str) -> DescribedConsumerGroup:
        """A group of the newer protocol. Raises `KafkaError` as `offsets` does, and GROUP_ID_NOT_FOUND."""
        shard = self._host.machine(self.partition_of(group_id))
        described = shard.consumers.describe(group_id)
        if described is None:
            classic = shard.groups.describe(group_id) is not None
            what = f"Group {group_id} is no consumer group." if classic else f"There is no group {group_id}."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, what)
        return described

    def listed(self) -> Iterator[ListedGroup]:
        """All groups of this broker, each as it is when its turn comes. Raises `KafkaError`
        (COORDINATOR_LOAD_IN_PROGRESS)."""
        return chain.from_iterable(shard.listed() for shard in self._host.machines())

    async def _in_parts(
        self,
        offsets: list[NewOffset],
        commit: Callable[[list[NewOffset]], list[ErrorCode] | Awaitable[list[ErrorCode]]],
    ) -> list[ErrorCode]:
        errors: list[ErrorCode] = []
        async for first in in_turns(range(0, len(offsets), OF_A_DECISION), 1):
            answer = commit(offsets[first : first + OF_A_DECISION])
            errors += await answer if isawaitable(answer) else answer
        return errors

    def _to_the_end(self, work: Coroutine[Any, Any, A]) -> Awaitable[A]:
        """Decide all parts of one request, even if its connection closes meanwhile."""
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
        """Offsets may be kept under an empty id, as old clients did; there is no such group to join."""
        if (not group_id and not may_be_empty) or len(group_id.encode()) > ID_BYTES_MAX:
            return refused(ErrorCode.INVALID_GROUP_ID)
        try:
            answer: Any = self._host.ask(self.partition_of(group_id), decide)
        except KafkaError as error:
            return refused(error.code)
        return answer  # type: ignore[no-any-return]


async def _ended(answer: Awaitable[ErrorCode]) -> ErrorCode:
    return _of_a_partition(await answer)


def _of_a_partition(error: ErrorCode) -> ErrorCode:
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in NOT_READY else error
