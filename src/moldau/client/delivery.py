"""The promise of a record's offset. It follows its record when a batch that was too large is sent in halves."""

import asyncio
from collections.abc import Generator
from typing import Any, NamedTuple

from moldau.client.batching import Ack, Batch
from moldau.names import TopicPartition


class Delivered(NamedTuple):
    """Where a record is; offset -1 if the broker was not asked (acks=0)."""

    topic: str
    partition: int
    offset: int


class Delivery:
    """The promise of a record's offset: ask for its `result`, or await it."""

    __slots__ = ("_batch", "_index", "_tp")

    def __init__(self, tp: TopicPartition, batch: Batch, index: int):
        self._tp = tp
        self._batch = batch
        self._index = index

    @property
    def topic(self) -> str:
        return self._tp.topic

    @property
    def partition(self) -> int:
        return self._tp.partition

    @property
    def done(self) -> bool:
        """Whether it is known what became of the record."""
        batch, _ = self._placed()
        return batch.outcome.done()

    def result(self, timeout_s: float | None = None) -> Delivered:
        """Wait for it. Raises `KafkaError` if the record was not delivered, `TimeoutError` if that is not known yet."""
        while True:
            batch, index = self._placed()
            outcome = batch.outcome.result(timeout_s)
            if isinstance(outcome, Ack):
                return self._delivered(outcome.base_offset, index)

    def __await__(self) -> Generator[Any, None, Delivered]:
        while True:
            batch, index = self._placed()
            outcome = yield from asyncio.shield(asyncio.wrap_future(batch.outcome)).__await__()
            if isinstance(outcome, Ack):
                return self._delivered(outcome.base_offset, index)

    def _placed(self) -> tuple[Batch, int]:
        """The batch that the record is in by now, and its place there."""
        batch, index = self._batch, self._index
        while batch.outcome.done() and batch.outcome.exception() is None:
            outcome = batch.outcome.result()
            if isinstance(outcome, Ack):
                break
            batch, index = outcome.holding(index)
        return batch, index

    def _delivered(self, base_offset: int, index: int) -> Delivered:
        return Delivered(*self._tp, base_offset + index if base_offset >= 0 else -1)
