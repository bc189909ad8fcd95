"""A consumer's share of its group's partitions: it watches the topics, joins, assigns and tells the listeners.

`prepare` runs only while the caller is inside `poll`, when all records handed out before are processed.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable

from moldau.client.consuming.consumer_metrics import ConsumerCounters
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.groups.membership import NO_GENERATION, GroupMembership
from moldau.client.consuming.polling import Poller
from moldau.client.consuming.subscription import RebalanceListener, Subscription
from moldau.client.routing import Router
from moldau.errors import KafkaError, NoSuchPartition
from moldau.names import TopicPartition

logger = logging.getLogger(__name__)

MISSING_S = 1.0
"""The time between looks at the metadata while a subscribed topic is missing."""
PAUSE_S_MIN = 0.1
"""The least time between looks, however small `metadata_max_age_ms` is: nothing is handed out while one is due."""

Tell = Callable[[RebalanceListener, list[TopicPartition]], Awaitable[None]]


class Rebalancing:
    """Keeps the assignment of a subscribed consumer. `commit` makes the automatic commit; `tell` calls a listener, in
    the caller's thread or on its loop, and waits for it."""

    def __init__(
        self,
        router: Router,
        poller: Poller,
        membership: GroupMembership,
        settings: ConsumerSettings,
        commit: Callable[[], Awaitable[None]],
        tell: Tell,
        counters: ConsumerCounters,
    ):
        self._router = router
        self._poller = poller
        self._membership = membership
        self._settings = settings
        self._commit = commit
        self._tell = tell
        self._counters = counters
        self._counted = membership.generation
        self._counts: dict[str, int] = {}
        self._watch_at_s = 0.0
        self._missing_since_s: float | None = None
        self._leaving = False
        self._warned: set[str] = set()
        self.subscription: Subscription | None = None

    def subscribe(self, subscription: Subscription) -> None:
        self._membership.subscribed(subscription.streams_wanted)
        self.subscription = subscription
        self._watch_at_s = 0.0
        self._counts, self._warned, self._missing_since_s = {}, set(), None
        self._membership.rejoin_needed = True

    def is_due(self, now_s: float) -> bool:
        """Whether `prepare` has something to do."""
        if self.subscription is None:
            return False
        return now_s >= self._watch_at_s or self._membership.is_due(now_s)

    @property
    def next_watch_s(self) -> float:
        """The time of the loop at which the topics have to be looked at; never without a subscription."""
        return math.inf if self.subscription is None else self._watch_at_s

    async def prepare(self) -> None:
        """Look at the topics if it is time, and rebalance if it is needed. Raises `KafkaError`."""
        assert self.subscription is not None
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._watch_at_s or self._membership.topics_changed:
            self._membership.topics_changed = False
            missing = await self._watch(self.subscription)
            pause_s = max(self._settings.metadata_max_age_ms / 1000, PAUSE_S_MIN)
            now_s = asyncio.get_running_loop().time()
            self._watch_at_s = now_s + (min(MISSING_S, pause_s) if missing else pause_s)
        if self._membership.is_due(asyncio.get_running_loop().time()):
            await self._membership.rebalance(self, self.subscription.wanted)
            if self._membership.generation not in (self._counted, NO_GENERATION):
                self._counted = self._membership.generation
                self._counters.rebalanced()

    # -- the consumer's side of a rebalance (`membership.Share`)

    def owned(self) -> list[TopicPartition]:
        return sorted(self._poller.assigned)

    async def give_up(self, partitions: list[TopicPartition]) -> None:
        await self._commit()
        await self._let_go(partitions, self.subscription.on_revoked if self.subscription else None)

    async def lose(self, partitions: list[TopicPartition]) -> None:
        await self._let_go(partitions, self.subscription.on_lost if self.subscription else None)

    async def _let_go(self, partitions: list[TopicPartition], listener: RebalanceListener | None) -> None:
        try:
            if listener is not None:
                await self._tell(listener, partitions)
        finally:
            gone = set(partitions)
            self._poller.assign([tp for tp in self.owned() if tp not in gone])

    async def take_over(self, partitions: list[TopicPartition]) -> None:
        self._poller.assign(sorted({*self.owned(), *partitions}))
        if self.subscription is not None and self.subscription.on_assigned is not None:
            await self._tell(self.subscription.on_assigned, partitions)

    async def leave(self) -> None:
        """Give the partitions up and leave the group. A listener that is told of it may unsubscribe."""
        if self.subscription is None or self._leaving:
            return
        self._leaving = True
        had = self.owned()
        try:
            if had and self._membership.generation < 0:
                await self.lose(had)
            elif had:
                await self.give_up(had)
        finally:
            self.subscription = None
            self._leaving = False
            await self._membership.leave()

    async def _watch(self, subscription: Subscription) -> bool:
        """Ask for a rebalance if a topic was created or deleted, or its number of partitions changed. Returns whether a
        subscribed topic is missing; raises `KafkaError` if all have been for `default_api_timeout_ms`."""
        topics = None if subscription.selects else subscription.names
        await self._router.retrying(lambda: self._router.refresh(topics))
        view = self._router.view
        if subscription.selects:
            subscription.match([name for name, topic in view.topics.items() if not topic.internal])
        for topic in subscription.names:
            why = view.missing.get(topic)
            if why is not None and not why.retriable:
                raise KafkaError(why, f"topic {topic}: {why.name.lower().replace('_', ' ')}")
        counts = {t: len(view.topics[t].partitions) for t in subscription.names if t in view.topics}
        if counts != self._counts:
            self._counts = counts
            self._membership.rejoin_needed = True
        missing = [topic for topic in subscription.names if topic not in counts]
        self._note_missing(missing, bool(counts))
        if subscription.selects and not counts and not self._warned:
            self._warned.add(str(subscription))
            logger.warning("%s: no topic matches %s yet", self._router.client_id, subscription)
        return bool(missing)

    def _note_missing(self, missing: list[str], reads_others: bool) -> None:
        for topic in missing:
            if topic not in self._warned:
                self._warned.add(topic)
                logger.warning("%s: the subscribed topic %s does not exist", self._router.client_id, topic)
        if reads_others:
            self._warned.intersection_update(missing)
        now_s = asyncio.get_running_loop().time()
        if not missing or reads_others:
            self._missing_since_s = None
        elif self._missing_since_s is None:
            self._missing_since_s = now_s
        elif now_s - self._missing_since_s >= self._router.api_timeout_ms / 1000:
            waited_s = now_s - self._missing_since_s
            self._missing_since_s = None
            raise NoSuchPartition(f"no subscribed topic has existed for {waited_s:.0f} s: {', '.join(missing)}")
