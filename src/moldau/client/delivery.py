"""The future result of sending one record. It follows the record when a batch that was too large is split."""

import asyncio
from collections.abc import Generator
from typing import Any, NamedTuple

from moldau.client.batching import Ack, Batch
from moldau.names import TopicPartition


class Delivered(NamedTuple):
    """The position of a delivered record; offset -1 with acks=0, where the broker does not report it."""

    topic: str
    partition: int
    offset: int


class Delivery:
    """The future result of sending one record: call `result`, or await it."""

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
        """Whether the record was delivered or has failed."""
        batch, _ = self._placed()
        return batch.outcome.done()

    def result(self, timeout_s: float | None = None) -> Delivered:
        """Wait for the result. Raises `KafkaError` if the delivery failed, `TimeoutError` if it is still open."""
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
        """The batch that now holds the record, and the record's index in it."""
        batch, index = self._batch, self._index
        while batch.outcome.done() and batch.outcome.exception() is None:
            outcome = batch.outcome.result()
            if isinstance(outcome, Ack):
                break
            batch, index = outcome.holding(index)
        return batch, index

    def _delivered(self, base_offset: int, index: int) -> Delivered:
        return Delivered(*self._tp, base_offset + index if base_offset >= 0 else -1)
