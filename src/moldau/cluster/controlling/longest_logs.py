"""The election of last resort: the living replica with the longest log leads (KIP-966).

It is held where nobody is left in ISR and ELR: all that were there last may have lost records. It waits until they are
up, unless `unclean.leader.election.enable` allows to lose more. The brokers are asked for the ends of their logs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from moldau.cluster.controlling.candidacy import RETRY_S
from moldau.cluster.controlling.change_queue import ChangeQueue
from moldau.cluster.controlling.conflicting_states import ConflictingStates
from moldau.cluster.controlling.log_ends import AT_ONCE, WantedLog
from moldau.cluster.state.elections import Elected, LeastInSync, can_lead, in_batches, steps_of
from moldau.cluster.state.eligibility import LogEnd, candidates, led_by_longest
from moldau.cluster.state.image import NO_LEADER, BrokerImage, Image, PartitionImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import KafkaError, StorageError
from moldau.metadata_store.store import StoreConflict
from moldau.names import TopicPartition
from moldau.notices import Notices

AskBroker = Callable[[int, int, Sequence[WantedLog]], Awaitable[Mapping[WantedLog, LogEnd]]]
"""The ends of logs of the broker with this id and epoch, those that it has; raises `KafkaError`."""
_Ends = Mapping[WantedLog, LogEnd]

logger = logging.getLogger(__name__)
notices = Notices(logger)


async def nobody_answers(broker_id: int, epoch: int, wanted: Sequence[WantedLog]) -> Mapping[WantedLog, LogEnd]:
    return {}


class Contest(NamedTuple):
    """A partition without a leader, and the brokers whose logs decide; `unclean`: all that are up, whoever is not."""

    tp: TopicPartition
    log: WantedLog
    partition: PartitionImage
    brokers: Sequence[int]
    unclean: bool


def all_partitions(image: Image) -> Iterator[TopicPartition]:
    for topic in image.topics.values():
        for number in range(len(topic.partitions)):
            yield TopicPartition(topic.name, number)


class LongestLogs:
    """`metadata` and `queue` are the controller's, `in_turn` makes a change when its turn has come. `away` returns the
    brokers that are registered, but silent or leaving."""

    def __init__(
        self,
        metadata: MetadataCache,
        queue: ChangeQueue,
        in_turn: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
        least: LeastInSync,
        away: Callable[[], Collection[int]],
        ask: AskBroker,
    ):
        self._metadata = metadata
        self._queue = queue
        self._in_turn = in_turn
        self._least = least
        self._away = away
        self._ask = ask
        self._conflicting = ConflictingStates()
        self.deciding: asyncio.Task[None] | None = None
        """The decision that goes on in the background."""
        self.unclean = 0
        """The unclean elections of this broker as the controller."""

    def contests(self, asked_for: Collection[TopicPartition] = ()) -> list[Contest]:
        """The contests to decide now, at most as many partitions as fit one answer. An unclean election is allowed for
        the partitions that an administrator has `asked_for`; then nothing else is decided."""
        image, away = self._metadata.image, self._away()
        alive = {one: broker for one, broker in image.brokers.items() if one not in away}
        contests: list[Contest] = []
        for tp in asked_for or all_partitions(image):
            part = image.partition(tp)
            if part is not None and part.leader == NO_LEADER and len(contests) < AT_ONCE:
                unclean = bool(asked_for) or self._may_be_unclean(tp.topic)
                asked = candidates(part, partial(can_lead, alive, part), unclean=unclean)
                if asked:
                    contests.append(Contest(tp, (image.topics[tp.topic].id, tp.partition), part, asked, unclean))
        return contests

    def _may_be_unclean(self, topic: str) -> bool:
        return self._metadata.topic_config(topic).unclean_leader_election_enable

    def begin(self, then: Callable[[], object]) -> None:
        """Decide what is to be decided now, in the background: brokers are asked for the ends of their logs, and may be
        slow. `then` is called at the end. Nothing if a decision goes on already."""
        if self.deciding is None and (contests := self.contests()):
            self.deciding = asyncio.ensure_future(self._decide(contests, then))

    async def _decide(self, contests: Sequence[Contest], then: Callable[[], object]) -> None:
        try:
            await self.decide(contests)
            if self.contests():  # somebody has not answered
                await asyncio.sleep(RETRY_S)
        except (StorageError, KafkaError, StoreConflict) as error:
            notices.error("", "partitions whose replicas have lost records have no leader yet: %s", error)
            await asyncio.sleep(RETRY_S)
        except Exception:
            logger.exception("electing the replica with the longest log failed; the controller tries again")
            await asyncio.sleep(RETRY_S)
        finally:
            self.deciding = None
            then()

    async def decide(self, contests: Sequence[Contest]) -> None:
        """Ask the brokers, and let the longest logs lead. Raises what `ChangeQueue.commit` raises."""
        up = self._metadata.image.brokers
        asked = {one: up[one] for contest in contests for one in contest.brokers if one in up}
        answers = await asyncio.gather(*(self._answer(broker, contests) for broker in asked.values()))
        told = [(broker, ends) for broker, ends in zip(asked.values(), answers, strict=True) if ends]
        await self._in_turn(partial(self._lead, contests, told))

    async def _answer(self, broker: BrokerImage, contests: Sequence[Contest]) -> Mapping[WantedLog, LogEnd]:
        wanted = [contest.log for contest in contests if broker.id in contest.brokers]
        try:
            return await self._ask(broker.id, broker.epoch, wanted)
        except (KafkaError, StorageError) as error:
            logger.info("broker %d has not told how far its logs go: %s", broker.id, error)
            return {}

    async def _lead(self, contests: Sequence[Contest], told: Sequence[tuple[BrokerImage, _Ends]]) -> None:
        """A broker that has gone, or has registered again, since it told does not count: it may have less now."""
        image, away = self._metadata.image, self._away()
        now = {one: broker for one, broker in image.brokers.items() if one not in away}
        answers = {one.id: ends for one, ends in told if one.id in now and now[one.id].epoch == one.epoch}
        changed: list[Elected] = []
        how: dict[TopicPartition, str] = {}
        for tp, log, part, brokers, unclean in contests:
            if image.partition(tp) != part or self._conflicting.still_conflicts(tp, image):
                continue  # decided otherwise meanwhile, or it would refuse all the others
            able = [one for one in brokers if one in answers and can_lead(now, part, one)]
            ends = {one: answers[one][log] for one in able if log in answers[one]}
            after = led_by_longest(part, ends, self._least(tp.topic), unclean=unclean)
            if after != part:
                why = "an unclean election" if unclean else "all that were in sync may have lost records"
                changed.append(Elected(tp.topic, tp.partition, after))
                self.unclean += unclean
                end = ends[after.leader].offset
                how[tp] = f"broker {after.leader} leads with the longest log, up to {end} ({why})"
        with self._conflicting.noted(image, how):
            for batch in in_batches(changed):
                await self._queue.commit(steps_of(self._metadata.image, batch))
                for topic, number, _ in batch:
                    logger.warning("%s-%d: %s", topic, number, how[TopicPartition(topic, number)])
