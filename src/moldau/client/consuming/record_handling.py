"""A consumer's records handed to a function one by one: `process`, beside `poll` and iteration."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from moldau.client.consuming.commits import Commits
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.deserializing import Maker
from moldau.client.consuming.fetched.handout import Handout
from moldau.client.consuming.fetched.record import Record
from moldau.client.consuming.groups.membership import GroupMembership
from moldau.client.consuming.polling import Poller
from moldau.names import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from moldau.client.consuming.processing import Processing

NOTHING: Mapping[TopicPartition, int] = MappingProxyType({})


class RecordHandling:
    """The part of `AsyncConsumer` that handles records for its caller."""

    settings: ConsumerSettings
    commits_automatically: Callable[[], bool]
    walk: Callable[[], Iterator[Record] | None]
    ready: Callable[[float], Coroutine[Any, Any, bool]]
    _commits: Commits
    _handout: Handout
    _loop: asyncio.AbstractEventLoop
    _maker: Maker
    _membership: GroupMembership
    _poller: Poller

    async def process(
        self,
        handler: Callable[[Record], object],
        *,
        retries: int = 3,
        backoff_ms: int = 100,
        backoff_max_ms: int = 10_000,
        dead_letter: str | None = None,
        until: Callable[[], bool] | None = None,
        idle_ms: int | None = None,
    ) -> int:
        """Call `handler`, a function or coroutine function, with one record after another; returns their number once
        `until()` is true or no record came for `idle_ms`.

        A record whose handler or deserializer raises is tried `retries` times more, with waits that double from
        `backoff_ms` to `backoff_max_ms`. Then it is sent to the topic `dead_letter` with headers that say why, and
        counts as processed; without `dead_letter` the exception is raised, and the record is read again.
        """
        from moldau.client.consuming.processing import Handling, Processing  # few programs need it

        processing = Processing(self, handler, Handling(retries, backoff_ms, backoff_max_ms, dead_letter), until)
        return await self.run_processing(processing, idle_ms)

    async def run_processing(self, processing: "Processing", idle_ms: int | None) -> int:
        """Run it, with records that are not deserialized meanwhile."""
        self._give_back()
        self._maker.keeps_bytes = True
        try:
            return await processing.run(idle_ms)
        finally:
            self._maker.keeps_bytes = False
            self._give_back(self._handout.unprocessed())

    def deserialized(self, record: Record) -> Record:
        """A record of bytes, deserialized as the settings say. Raises `DeserializationFailed`."""
        return self._maker.deserialized(record)

    def acknowledge(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Automatic commits cover the records before these offsets."""
        self._commits.acknowledge({tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()})

    async def commit_processed(self) -> None:
        """Commit what is processed, where automatic commits do not."""
        if self.settings.group_id and not self.commits_automatically():
            await self._commits.commit(self._commits.processed())

    def sign_of_life(self) -> None:
        """Count as a call of `poll` for `max_poll_interval_ms`."""
        self._membership.polled(self._loop.time())

    def _give_back(self, unhandled: Mapping[TopicPartition, int] = NOTHING) -> None:
        """Have what the caller never asked for fetched again: all else that it got is processed, except `unhandled`
        records that it has not acknowledged."""
        back = self._handout.come_back()
        with self._poller.lock:
            for tp, state in self._poller.assigned.items():
                first = unhandled.get(tp)
                offset = back.get(tp) if first is None or first < state.acknowledged else first
                if offset is not None:
                    state.go_back(offset)
