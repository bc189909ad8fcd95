"""The transactions of one producer: their state, and the requests to the coordinators (KIP-98, KIP-360, KIP-890).

The coordinator of the transactional id assigns the producer id and epoch, and writes the markers when a transaction
ends. With version 2 of transactions a partition joins with its first Produce, offsets join with TxnOffsetCommit, and
each transaction has an epoch of its own. With version 1 both are announced first, and an epoch is renewed only after
a transaction that lost batches. Links agree on the version (`peers.negotiation`).

The sender asks `covers` before it sends a batch, and reports batches that failed. Records join only while the state is
OPEN; the state changes under the accumulator's lock, which `send` holds as well.
"""

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from moldau.client.failures import check, error_of
from moldau.client.given_positions import position_of
from moldau.client.producing.batch import ProducerIdAndEpoch
from moldau.client.producing.batching import Accumulator
from moldau.client.routing import GROUP_KEY, TRANSACTION_KEY, Router
from moldau.errors import ErrorCode, KafkaError, MoldauError
from moldau.names import GroupMetadata, OffsetAndMetadata, TopicPartition, by_topic
from moldau.peers.link import Link
from moldau.protocol import apis
from moldau.protocol.apis import Api
from moldau.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.protocol.messages.end_txn import EndTxnRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.primitives import ZERO_UUID

logger = logging.getLogger(__name__)

EPOCH_EACH = 5
"""The first version of EndTxn that gives each transaction its epoch: version 2 of transactions."""
TOPIC_IDS = 6
"""The first version of TxnOffsetCommit that names topics by id (KIP-1319)."""
FATAL = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""After one of these from a coordinator the producer can only be closed."""
FATAL_IN_PRODUCE = FATAL - {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE}
"""The same from a partition's leader: whether an epoch is old for good, the coordinator says when the transaction is
aborted."""
_GONE = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE})
_LOST_COORDINATOR = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


GroupOffsets = Mapping[TopicPartition, int | OffsetAndMetadata]


async def _nothing(_: Link) -> None:
    """Nothing is to be done before an attempt."""


class State(enum.Enum):
    NEW = "no transaction was begun yet"
    READY = "no transaction is open"
    OPEN = "a transaction is open"
    FAILED = "the transaction can only be aborted"
    COMMITTING = "the transaction is being committed; the outcome is not known yet"
    ABORTING = "the transaction is being aborted; the outcome is not known yet"
    DEAD = "the producer can only be closed"


class ProducerTransactions:
    """The transactions of one transactional id. Everything runs on the producer's loop, except `check_open`."""

    def __init__(self, transactional_id: str, timeout_ms: int, router: Router, accumulator: Accumulator):
        self.transactional_id = transactional_id
        self.identity: ProducerIdAndEpoch | None = None
        self.state = State.NEW
        self._timeout_ms = timeout_ms
        self._router = router
        self._accumulator = accumulator
        self._failure: MoldauError | None = None
        self._began = False
        self._added: set[TopicPartition] = set()
        self._adds_none = asyncio.Event()
        """No partition is on its way into the transaction."""
        self._adds_none.set()
        self._version_2 = False
        self._coordinators: dict[tuple[str, int], int] = {}

    # -- what `send` and the sender ask

    def check_open(self) -> None:
        """Raise `KafkaError` unless records may join now: INVALID_TXN_STATE without a transaction,
        TRANSACTION_ABORTABLE if it must be aborted, or the reason why the producer is of no use any more."""
        if self.state is not State.OPEN:
            raise self._refusal("begin one first, with producer.transaction()")

    def covers(self, tp: TopicPartition) -> bool:
        """Whether a batch of this partition may be sent now; if not, `add` the partition first."""
        if self._version_2:
            self._began = True
            return True
        return tp in self._added

    @property
    def open(self) -> bool:
        """Whether a transaction was begun and neither committed nor aborted."""
        return self.state in (State.OPEN, State.FAILED)

    @property
    def giving_up(self) -> bool:
        """Whether batches are not worth another attempt."""
        return self.state in (State.ABORTING, State.DEAD)

    def batch_failed(self, failure: MoldauError) -> None:
        """Note that a batch of the transaction has failed for good."""
        self._failed(failure, FATAL_IN_PRODUCE)

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell the coordinator that the transaction writes to these partitions (version 1). Raises `KafkaError`:
        TRANSACTION_ABORTABLE once the transaction is being aborted."""
        self._check_wanted()
        wanted = sorted(partitions)
        producer_id, epoch = self._identified()
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=each) for name, each in by_topic(wanted).items()
            ],
        )
        self._began = True

        def code(reply: Any) -> int:
            results = [p for topic in reply.results_by_topic_v3_and_below for p in topic.results_by_partition]
            codes: list[int] = [p.partition_error_code for p in results if p.partition_error_code]
            real = [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
            return (real or codes or [0])[0]

        about = "adding partitions to the transaction"
        self._adds_none.clear()
        try:
            await self._guarded(self._ask(apis.ADD_PARTITIONS_TO_TXN, request, code, about, before=self._still_wanted))
        finally:
            self._adds_none.set()
        self._added.update(wanted)

    async def _still_wanted(self, _: Link) -> None:
        self._check_wanted()

    def _check_wanted(self) -> None:
        """Raise unless partitions may still join the transaction."""
        if self.state not in (State.OPEN, State.FAILED, State.COMMITTING):
            raise KafkaError(ErrorCode.TRANSACTION_ABORTABLE, f"{self._name}: {self.state.value}")

    # -- the life of a transaction

    async def initialize(self) -> None:
        """Get a producer id and epoch. Fences earlier producers with this transactional id and ends their transaction.
        Raises `KafkaError`."""
        if self.state is State.NEW:
            await self._introduce(ProducerIdAndEpoch(-1, -1))
            self._to(State.READY)

    async def begin(self) -> None:
        """Begin a transaction; the first one initializes the producer. Raises `KafkaError`."""
        await self.initialize()
        if self.state is not State.READY:
            raise self._refusal("end it first")
        self._began, self._failure = False, None
        self._added.clear()
        self._to(State.OPEN)

    async def commit(self, flush: Callable[[], Awaitable[None]]) -> None:
        """Deliver the records and commit. Raises `KafkaError`: TRANSACTION_ABORTABLE if a record failed. After another
        retriable one the outcome is unknown; committing once more finds out."""
        if self.state not in (State.OPEN, State.COMMITTING):
            raise self._refusal("there is nothing to commit")
        self._to(State.COMMITTING)
        await flush()
        if self.state is not State.COMMITTING:
            raise self._refusal("it cannot be committed")
        await self._end(committed=True)

    async def abort(self, flush: Callable[[], Awaitable[None]], drop: Callable[[KafkaError], None]) -> None:
        """Drop the waiting records and abort. Raises `KafkaError`."""
        if self.state not in (State.OPEN, State.FAILED, State.ABORTING):
            raise self._refusal("there is nothing to abort")
        lost = self.state is State.FAILED
        self._to(State.ABORTING)
        drop(KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted before the record was sent"))
        await flush()
        await self._adds_none.wait()  # what the coordinator hears after EndTxn would belong to the next transaction
        await self._end(committed=False, renew=lost or self._failure is not None)

    async def send_offsets(self, offsets: GroupOffsets, group: GroupMetadata) -> None:
        """Let offsets of a group join the transaction: they are committed if it is. Raises `KafkaError`, `ConfigError`
        for what is not an offset."""
        self.check_open()
        positions = {tp: position_of(at, f"the offset of {tp}") for tp, at in offsets.items()}
        if not offsets:
            return
        producer_id, epoch = self._identified()
        if not self._version_2:
            added = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=group.group_id,
            )
            about = f"adding the offsets of group {group.group_id} to the transaction"
            self._began = True
            await self._guarded(self._ask(apis.ADD_OFFSETS_TO_TXN, added, lambda reply: reply.error_code, about))
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for tp, at in sorted(positions.items()):
            topics.setdefault(tp.topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=at.offset,
                    committed_leader_epoch=-1 if at.leader_epoch is None else at.leader_epoch,
                    committed_metadata=at.metadata,
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=each) for name, each in topics.items()],
            group_id=group.group_id,
            generation_id_or_member_epoch=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
        )
        self._began = True
        about = f"committing offsets of group {group.group_id} in the transaction"

        def code(reply: Any) -> int:
            codes: list[int] = [p.error_code for topic in reply.topics for p in topic.partitions if p.error_code]
            first = codes[0] if codes else 0
            # The group is gone, and with it the consumer's generation: a failed commit, as from older brokers.
            return ErrorCode.ILLEGAL_GENERATION if first == ErrorCode.GROUP_ID_NOT_FOUND else first

        async def before(link: Link) -> None:
            if link.versions.of(apis.TXN_OFFSET_COMMIT) >= TOPIC_IDS:
                await self._find_ids(request.topics)

        coordinator = group.group_id, GROUP_KEY
        await self._guarded(self._ask(apis.TXN_OFFSET_COMMIT, request, code, about, coordinator, before))

    async def _find_ids(self, topics: list[TxnOffsetCommitRequestTopic]) -> None:
        """Fill in the ids that the metadata has. An id stays through all attempts; if the topic has another one by now
        (metadata are asked for anew after UNKNOWN_TOPIC_ID), the offsets may be of a topic that is gone. Raises
        `KafkaError`: TRANSACTION_ABORTABLE for that."""
        view = self._router.view
        unknown = [topic.name for topic in topics if topic.name not in view.topics]
        if unknown:
            await self._router.refresh(unknown)
        for topic in topics:
            known = view.topics.get(topic.name)
            if known is None:
                check(view.missing.get(topic.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {topic.name}")
            elif topic.topic_id not in (ZERO_UUID, known.topic_id):
                advice = "abort the transaction, and read the topic again"
                raise KafkaError(ErrorCode.TRANSACTION_ABORTABLE, f"topic {topic.name} was created anew: {advice}")
            else:
                topic.topic_id = known.topic_id

    async def _end(self, *, committed: bool, renew: bool = False) -> None:
        """End the transaction at its coordinator, if that knows of it, and take over the next epoch. `renew`: batches
        were lost, so that their sequences have a gap."""
        producer_id, epoch = self._identified()
        if self._began:
            request = EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=committed,
            )
            about = f"{'committing' if committed else 'aborting'} the transaction"
            reply = await self._guarded(self._ask(apis.END_TXN, request, lambda reply: reply.error_code, about))
            if reply.producer_epoch >= 0 and self._version_2:
                self._use(ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch))
                renew = False
        if renew:
            await self._introduce(ProducerIdAndEpoch(producer_id, epoch))
        self._failure = None
        self._to(State.READY)

    async def _introduce(self, known: ProducerIdAndEpoch) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=known.producer_id,
            producer_epoch=known.epoch,
        )
        about = "requesting a producer id"
        reply = await self._guarded(self._ask(apis.INIT_PRODUCER_ID, request, lambda reply: reply.error_code, about))
        self._use(ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch))

    def _use(self, identity: ProducerIdAndEpoch) -> None:
        """Use a new epoch: the sequences of every partition begin again at 0."""
        with self._accumulator.lock:
            assert not any(q.in_flight or q.again or q.waiting for q in self._accumulator.queues.values())
            self._accumulator.queues.clear()
            self.identity = identity

    # -- states and failures

    def _to(self, state: State) -> None:
        with self._accumulator.lock:
            if self.state is not State.DEAD:
                self.state = state

    def _failed(self, failure: MoldauError, fatal: frozenset[ErrorCode]) -> None:
        code = failure.code if isinstance(failure, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        if self.state is State.DEAD:
            return
        if code in fatal:
            logger.error("%s: %s", self._router.client_id, failure)
            self._failure = failure
            self._to(State.DEAD)
        else:
            self._failure = failure
            if self.state in (State.OPEN, State.COMMITTING):
                self._to(State.FAILED)

    async def _guarded(self, asking: Awaitable[Any]) -> Any:
        """The reply. Failures that are not retriable change the state."""
        try:
            return await asking
        except KafkaError as failure:
            if not failure.retriable or self.state is State.OPEN:
                self._failed(failure, FATAL)
            raise

    def _refusal(self, advice: str) -> KafkaError:
        """The error of a call that the state does not allow."""
        if self.state is State.DEAD:
            cause = self._failure
            code = cause.code if isinstance(cause, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
            return KafkaError(code, f"{self._name}: {self.state.value}: {cause}")
        if self.state is State.FAILED:
            why = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, f"{self._name}: {self.state.value}: {self._failure}")
            why.__cause__ = self._failure
            return why
        return KafkaError(ErrorCode.INVALID_TXN_STATE, f"{self._name}: {self.state.value}: {advice}")

    @property
    def _name(self) -> str:
        return f"transactional id {self.transactional_id}"

    def _identified(self) -> ProducerIdAndEpoch:
        assert self.identity is not None, "check_open and begin come first"
        return self.identity

    async def _ask(
        self,
        api: Api,
        request: Any,
        code_of: Callable[[Any], int],
        about: str,
        coordinator: tuple[str, int] | None = None,
        before: Callable[[Link], Awaitable[None]] = _nothing,
    ) -> Any:
        """The reply of the transaction's coordinator, or of the given one, after retriable errors asked again. Raises
        `KafkaError`, also that of `before`, which is called with the link before each attempt."""
        whose = coordinator or (self.transactional_id, TRANSACTION_KEY)

        async def attempt() -> Any:
            link = await self._link(whose)
            await before(link)
            try:
                reply = await link.call(api, request, self._router.request_timeout_ms)
            except KafkaError:
                self._coordinators.pop(whose, None)
                raise
            code = error_of(code_of(reply))
            if code in _LOST_COORDINATOR:
                self._coordinators.pop(whose, None)
            check(code, f"{self._name}: {about}", self._explained(code))
            return reply

        return await self._router.retrying(attempt)

    def _explained(self, code: ErrorCode) -> str:
        if code in _GONE and self.state is not State.NEW:
            return (
                f"{code.sentence}: a newer producer has taken over, or the transaction was open for longer than"
                f" transaction.timeout.ms ({self._timeout_ms}) and was aborted"
            )
        return code.sentence

    async def _link(self, whose: tuple[str, int]) -> Link:
        if whose not in self._coordinators:
            self._coordinators[whose] = await self._router.coordinator(*whose)
        try:
            link = await self._router.broker(self._coordinators[whose], "coordinator")
        except KafkaError:
            del self._coordinators[whose]
            raise
        if whose[1] == TRANSACTION_KEY:
            self._version_2 = link.versions.of(apis.END_TXN) >= EPOCH_EACH
        return link
