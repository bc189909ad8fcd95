"""The controller's part of AlterPartition: judges what leaders propose, and writes what it accepts.

Proposals that come while a change is being made are judged together, and written in one step of the store.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from moldau.cluster.controlling.change_queue import ChangeQueue
from moldau.cluster.controlling.conflicting_states import ConflictingStates
from moldau.cluster.state.elections import Elected, LeastInSync, steps_of
from moldau.cluster.state.image import Image, PartitionImage
from moldau.cluster.state.isr_changes import ProposedIsr, is_stale, judged
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition

JudgedPartition = TopicPartition | ErrorCode


@dataclass(eq=False)
class _Asked:
    """The proposals of one broker. `results` are the partitions after the change, or why they stay as they are."""

    sender: int
    broker_epoch: int
    proposals: Sequence[ProposedIsr]
    refusal: ErrorCode | None = None
    results: list[PartitionImage | ErrorCode] = field(default_factory=list)


class IsrAlterations:
    """`in_turn` makes a change when its turn has come; `away` returns the brokers that are registered, but silent."""

    def __init__(
        self,
        metadata: MetadataCache,
        queue: ChangeQueue,
        in_turn: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
        least: LeastInSync,
        away: Callable[[], Collection[int]],
    ):
        self._metadata = metadata
        self._queue = queue
        self._in_turn = in_turn
        self._least = least
        self._away = away
        self._waiting: list[_Asked] = []
        self._conflicting = ConflictingStates()

    async def alter(
        self, sender: int, broker_epoch: int, proposals: Sequence[ProposedIsr]
    ) -> list[PartitionImage | ErrorCode]:
        """Each partition after the change, or the reason why it was refused. Raises `KafkaError(STALE_BROKER_EPOCH)`,
        and what `ChangeQueue.commit` raises."""
        asked = _Asked(sender, broker_epoch, proposals)
        self._waiting.append(asked)
        try:
            await self._in_turn(self._judge_all)
        finally:
            if asked in self._waiting:
                self._waiting.remove(asked)
        if asked.refusal is not None:
            raise KafkaError(asked.refusal)
        return asked.results

    async def _judge_all(self) -> None:
        """Judge all that wait; the first one in the queue does it for those behind it."""
        together = list(self._waiting)
        image, away = self._metadata.image, self._away()
        changed: dict[TopicPartition, PartitionImage] = {}
        count = sum(len(asked.proposals) for asked in together)
        judgements = await self._queue.decided(
            count, lambda: [self._judged(image, asked, away, changed) for asked in together]
        )
        steps = steps_of(image, [Elected(tp.topic, tp.partition, part) for tp, part in changed.items()])
        with self._conflicting.noted(image, changed):
            await self._queue.commit(steps)
        for asked, results in zip(together, judgements, strict=True):
            asked.results = [self._now(one) if isinstance(one, TopicPartition) else one for one in results]
        self._waiting = [asked for asked in self._waiting if asked not in together]

    def _judged(
        self,
        image: Image,
        asked: _Asked,
        away: Collection[int],
        changed: dict[TopicPartition, PartitionImage],
    ) -> list[JudgedPartition]:
        """Judge each proposal, and add the partitions that change to `changed`."""
        asked.refusal = None
        if is_stale(image, asked.sender, asked.broker_epoch):
            asked.refusal = ErrorCode.STALE_BROKER_EPOCH
            return []
        judgements: list[JudgedPartition] = []
        for proposal in asked.proposals:
            topic = image.topics_by_id.get(proposal.topic_id)
            result = judged(image, asked.sender, proposal, self._least(topic.name) if topic else 1, away)
            if isinstance(result, ErrorCode):
                judgements.append(result)
                continue
            tp, part = result
            if tp in changed or self._conflicting.still_conflicts(tp, image):
                judgements.append(ErrorCode.INVALID_UPDATE_VERSION)
                continue
            if part != image.partition(tp):
                changed[tp] = part
            judgements.append(tp)
        return judgements

    def _now(self, tp: TopicPartition) -> PartitionImage | ErrorCode:
        return self._metadata.image.partition(tp) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
