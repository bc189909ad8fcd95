"""The future result of sending a table. It follows the rows when a batch that was too large is split."""

import asyncio
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from moldau.client.producing.batch import Ack, Batch, Parts
from moldau.client.producing.delivery import followed
from moldau.client.time_outs import time_out_s
from moldau.errors import MoldauError
from moldau.monotonic import monotonic_s
from moldau.names import TopicPartition, counted


class DeliveredRows(NamedTuple):
    """Rows that were delivered in one batch: they have the offsets from `offset` on. It is -1 with acks=0, where the
    broker does not report it."""

    topic: str
    partition: int
    offset: int
    rows: int


class TableDelivery:
    """The future result of sending a table: call `result`, or await it. Its length is the number of rows."""

    __slots__ = ("_batches",)

    def __init__(self, batches: list[tuple[TopicPartition, Batch]]):
        self._batches = batches

    def __len__(self) -> int:
        return sum(batch.count for _, batch in self._batches)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<TableDelivery {counted(len(self), 'row')}, {'done' if self.done else 'waiting'}>"

    @property
    def done(self) -> bool:
        """Whether each row was delivered or has failed."""
        return all(batch.outcome.done() for _, batch in self._placed())

    def result(
        self, timeout_s: float | None = None, *, timeout: float | None = None, timeout_ms: int | None = None
    ) -> list[DeliveredRows]:
        """Wait for all rows, for at most `timeout_s` or `timeout`, in seconds, or `timeout_ms`; returns where they are,
        batch by batch. Raises the first `KafkaError` if rows were not delivered (others may have been), `TimeoutError`
        if some are still open, and `RuntimeError` on the producer's loop."""
        wait_s = time_out_s("result", timeout_ms, timeout, timeout_s=timeout_s)
        deadline_s = None if wait_s is None else monotonic_s() + wait_s
        for batch in self._open():
            batch.outcome.check_wait(wait_s)
            batch.outcome.exception(None if deadline_s is None else max(deadline_s - monotonic_s(), 0))
        return self._result()

    def __await__(self) -> Generator[Any, None, list[DeliveredRows]]:
        for batch in self._open():
            yield from asyncio.wait([followed(batch.outcome)]).__await__()
        return self._result()

    def _open(self) -> Iterator[Batch]:
        """The batches without an outcome, one by one, until none is left."""
        waiting = [batch for _, batch in reversed(self._batches)]
        while waiting:
            batch = waiting.pop()
            while not batch.outcome.done():
                yield batch
            if batch.outcome.exception() is None and isinstance(parts := batch.outcome.result(), Parts):
                waiting += reversed(parts)

    def _placed(self) -> Iterator[tuple[TopicPartition, Batch]]:
        """The batches that now hold the rows, in order."""
        waiting = self._batches[::-1]
        while waiting:
            tp, batch = waiting.pop()
            outcome = batch.outcome
            if outcome.done() and outcome.exception() is None and isinstance(outcome.result(), Parts):
                parts = outcome.result()
                waiting += [(tp, part) for part in reversed(parts) if isinstance(part, Batch)]
            else:
                yield tp, batch

    def _result(self) -> list[DeliveredRows]:
        delivered: list[DeliveredRows] = []
        failure: MoldauError | None = None
        for tp, batch in self._placed():
            try:
                outcome = batch.outcome.result(0)
            except MoldauError as failed:
                batch.seen = set(range(batch.count))
                failure = failure or failed
            else:
                assert isinstance(outcome, Ack)
                delivered.append(DeliveredRows(*tp, outcome.base_offset, batch.count))
        if failure is not None:
            raise failure
        return delivered
