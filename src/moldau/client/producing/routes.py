"""The topics that a producer sends to: how many partitions each has, and which serializers.

`route` finds what is known and new enough, in any thread; `find` asks the brokers, on the loop. A route is used until
metadata are too old, and is dropped if the topic cannot be found any more.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from moldau.client.failures import check
from moldau.client.producing.appending import Appender, TopicAppender
from moldau.client.producing.outgoing import check_partition, check_topic
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError


class TopicRoutes:
    """The routes of one producer. `known` is theirs by topic, for the shortest way; `check_usable` raises once the
    producer is closed."""

    def __init__(
        self,
        router: Router,
        appender: Appender,
        max_block_ms: int,
        check_usable: Callable[[], None],
        is_intercepted: bool,
    ):
        self.known: dict[str, TopicAppender] = {}
        self._router = router
        self._appender = appender
        self._max_block_ms = max_block_ms
        self._check_usable = check_usable
        self._is_intercepted = is_intercepted
        self._learning: dict[str, asyncio.Task[TopicAppender]] = {}

    def route(self, topic: str, partition: int | None, now_s: float) -> TopicAppender | None:
        """The route to a topic; None if it is unknown or too old, or has not that partition. Raises `TypeError`,
        `ValueError`, `InvalidTopic`, `ClientClosed`."""
        self._check_usable()
        route = self.known.get(topic) if isinstance(topic, str) else None
        if route is None:
            check_topic(topic)
        if partition is not None:
            check_partition(partition)
        if route is None or route.until_s < now_s or (partition is not None and partition >= route.count):
            return None
        return route

    async def find(self, topic: str, partition: int | None = None) -> TopicAppender:
        """The route to a topic, by requesting metadata: the broker may create the topic (`auto.create.topics.enable`).
        A route that is merely old is used while it is looked up again. Callers share one look-up. Raises `KafkaError`
        after `max_block_ms`."""
        learning = self._learning.get(topic)
        if learning is None:
            learning = self._learning[topic] = asyncio.get_running_loop().create_task(self._learn(topic))
            learning.add_done_callback(partial(self._learned, topic))
        route = self.known.get(topic)
        if route is None or (partition is not None and partition >= route.count):
            return await asyncio.shield(learning)
        return route

    async def bind(self, topic: str) -> None:
        """Have the serializers of the topic found outside of the loop. Raises what they raise."""
        if self._appender.binds:
            check_topic(topic)
            await asyncio.to_thread(self._appender.serializers, topic)

    def stop(self) -> None:
        """Look up no topic any more."""
        for task in self._learning.values():
            task.cancel()

    def _learned(self, topic: str, learning: asyncio.Task[TopicAppender]) -> None:
        del self._learning[topic]
        if learning.cancelled() or learning.exception() is not None:
            self.known.pop(topic, None)

    async def _learn(self, topic: str) -> TopicAppender:
        async def ask() -> int:
            await self._router.refresh([topic], create=True)
            view = self._router.view
            if topic not in view.topics:
                check(view.missing.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {topic}")
            return len(view.topics[topic].partitions)

        limit_ms = self._max_block_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                count = await self._router.retrying(ask, timeout_ms=limit_ms)
        except TimeoutError:
            latest = self._router.retries.latest or "no broker has answered"
            about = f"topic {topic}: no metadata within {limit_ms} ms (max.block.ms): {latest}"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, about) from None
        self._check_usable()
        await self.bind(topic)
        until_s = self._router.known_until_s(topic, count, partial(self.known.pop, topic, None))
        route = self._appender.route(topic, count, until_s, self._is_intercepted)
        self.known[topic] = route
        return route
