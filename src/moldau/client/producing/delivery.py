"""The future result of sending one record. It follows the record when a batch that was too large is split.

A failure counts as seen once somebody asked for it (`result`, `await`, `exception`) or left a callback. `Unseen` keeps
the failures that nobody has seen, so that a producer can raise them when it is closed.
"""

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from moldau.client.producing.batch import Ack, Batch
from moldau.client.time_outs import time_out_s
from moldau.errors import MoldauError, NotDelivered
from moldau.monotonic import monotonic_s
from moldau.names import TopicPartition
from moldau.records.columns import RecordPlace, acknowledge

logger = logging.getLogger(__name__)

UNSEEN_BATCHES_MAX = 1000


def followed(outcome: "Future[Any]") -> "asyncio.Future[Any]":
    """A future of the running loop for what becomes of a batch. Wait for it with `asyncio.wait`, which does not cancel
    it when the caller gives up; asyncio does not report its failure as never retrieved then."""
    future = asyncio.wrap_future(outcome)
    future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return future


class Delivered(NamedTuple):
    """Where a delivered record is. `offset` is -1 with acks=0, where the broker does not report it. `timestamp_ms` is
    the broker's time if the topic has message.timestamp.type=LogAppendTime, else the record's; -1 if unknown."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int = -1


OnDelivery = Callable[[MoldauError | None, Delivered | None], object]
"""Called with the failure and None, or with None and where the record is."""


class Delivery(RecordPlace):
    """The future result of sending one record: call `result`, or await it."""

    __slots__ = ()

    def __repr__(self) -> str:
        place = f"topic={self.topic!r}, partition={self.partition}"
        batch, index = self._placed()
        if not batch.outcome.done():
            return f"<Delivery {place}, waiting>"
        failure = batch.outcome.exception()
        if failure is not None:
            return f"<Delivery {place}, failed: {failure}>"
        where = self._delivered(batch.outcome.result(), index)
        return f"<Delivery {place}, offset={where.offset}, timestamp_ms={where.timestamp_ms}>"

    @property
    def topic(self) -> str:
        topic: str = self._batch.tp.topic
        return topic

    @property
    def partition(self) -> int:
        partition: int = self._batch.tp.partition
        return partition

    @property
    def done(self) -> bool:
        """Whether the record was delivered or has failed."""
        batch, _ = self._placed()
        return batch.outcome.done()

    def result(
        self, timeout_s: float | None = None, *, timeout: float | None = None, timeout_ms: int | None = None
    ) -> Delivered:
        """Wait for the result, at most for `timeout_s` or `timeout`, in seconds, or `timeout_ms`. Raises `KafkaError`
        if the delivery failed, `TimeoutError` if it is still open, and `RuntimeError` on the producer's loop."""
        wait_s = time_out_s("result", timeout_ms, timeout, timeout_s=timeout_s)
        until_s = None if wait_s is None else monotonic_s() + wait_s
        while True:
            batch, index = self._placed()
            batch.outcome.check_wait(wait_s)
            try:
                outcome = batch.outcome.result(None if until_s is None else max(until_s - monotonic_s(), 0.0))
            except MoldauError:
                batch.saw(index)
                raise
            except TimeoutError:
                raise TimeoutError(f"the record was not acknowledged within {wait_s:g} s") from None
            if isinstance(outcome, Ack):
                return self._delivered(outcome, index)

    def exception(
        self, timeout_s: float | None = None, *, timeout: float | None = None, timeout_ms: int | None = None
    ) -> MoldauError | None:
        """Wait as `result` does and return the failure; None if the record was delivered. Raises `TimeoutError`."""
        try:
            self.result(timeout_s, timeout=timeout, timeout_ms=timeout_ms)
        except MoldauError as failure:
            return failure
        return None

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Call `callback(delivery)` once the record was delivered or has failed: on the producer's loop, or at once if
        that has happened. Exceptions of the callback are logged. Raises `TypeError` if it is not a function."""
        check_callback(callback, "callback")

        def ended(_: "Future[Any]") -> None:
            batch, index = self._placed()
            if not batch.outcome.done():
                batch.outcome.add_done_callback(ended)  # the batch was split
                return
            batch.saw(index)
            call_back(callback, f"a callback of {self!r}", self)

        self._placed()[0].outcome.add_done_callback(ended)

    def __await__(self) -> Generator[Any, None, Delivered]:
        while True:
            batch, index = self._placed()
            try:
                if not batch.outcome.done():
                    yield from asyncio.wait([followed(batch.outcome)]).__await__()
                outcome = batch.outcome.result()
            except MoldauError:
                batch.saw(index)
                raise
            if isinstance(outcome, Ack):
                return self._delivered(outcome, index)

    def _placed(self) -> tuple[Batch, int]:
        """The batch that now holds the record, and the record's index in it."""
        batch, index = self._batch, self._index
        while batch.outcome.done() and batch.outcome.exception() is None:
            outcome = batch.outcome.result()
            if isinstance(outcome, Ack):
                break
            batch, index = outcome.holding(index)
        return batch, index

    def _delivered(self, outcome: Any, index: int) -> Delivered:
        return delivered(self._batch.tp, outcome, index, self._timestamp_ms)


def delivered(tp: TopicPartition, ack: Ack, index: int, timestamp_ms: int) -> Delivered:
    """Where the record at `index` of an acknowledged batch is; `timestamp_ms` is the record's own."""
    offset = ack.base_offset + index if ack.base_offset >= 0 else -1
    return Delivered(*tp, offset, ack.append_time_ms if ack.append_time_ms >= 0 else timestamp_ms)


_make: Any = partial(tuple.__new__, Delivered)


def tell(batch: Batch, outcome: Ack | MoldauError) -> None:
    """Call the callbacks of the records of a batch that has ended; what they raise is logged."""
    callbacks, timestamps = batch.callbacks, batch.timestamps
    batch.callbacks, batch.timestamps = [], []
    about = f"the on_delivery callback of a record of {batch.tp}"
    if isinstance(outcome, Ack):
        guarded = [callback and partial(call_back, callback, about) for callback in callbacks]
        acknowledge(guarded, timestamps, *outcome, batch.tp, _make, None)
        return
    for index, callback in enumerate(callbacks):
        if callback is not None:
            if getattr(callback, "asked", True):
                batch.saw(index)
            call_back(callback, about, outcome, None)


def check_callback(callback: object, name: str = "on_delivery") -> None:
    """Raise `TypeError` for what cannot be called, and for a coroutine function, which nobody would await."""
    if not callable(callback):
        raise TypeError(f"{name}={callback!r} is {type(callback).__name__}, not a function")
    if getattr(getattr(callback, "__code__", None), "co_flags", 0) & inspect.CO_COROUTINE:
        raise TypeError(
            f"{name}={callback!r} is a coroutine function, which is not awaited: await the Delivery instead"
        )


def call_back(callback: Callable[..., object], about: str, *arguments: object) -> None:
    """Call a function of the application on the producer's loop; what it raises is logged. `SystemExit` and Ctrl-C
    would end the loop with all records that are on their way: they end the main thread's loop alone, afterwards."""
    try:
        callback(*arguments)
    except BaseException as raised:
        logger.exception("%s raised", about)
        if isinstance(raised, SystemExit | KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().call_soon(_raise, raised)


def _raise(failure: BaseException) -> None:
    raise failure


class Unseen:
    """The batches that failed and of whose records some have not been asked for; the oldest 1,000 of them."""

    def __init__(self) -> None:
        self._failed: list[tuple[Batch, MoldauError]] = []
        self._more = 0

    def add(self, batch: Batch, failure: MoldauError) -> None:
        if len(self._failed) >= UNSEEN_BATCHES_MAX:
            self._failed = [(one, why) for one, why in self._failed if one.unseen]
        if len(self._failed) < UNSEEN_BATCHES_MAX:
            self._failed.append((batch, failure))
        else:
            self._more += batch.unseen

    def clear(self) -> None:
        """Forget all failures: the caller has been told of them in another way."""
        self._failed, self._more = [], 0

    def failure(self) -> NotDelivered | None:
        """The failure to raise; None if all failures were seen."""
        left = [(batch, why) for batch, why in self._failed if batch.unseen]
        if not left:
            return None
        raised = NotDelivered(sum(batch.unseen for batch, _ in left) + self._more, left[0][1])
        raised.__cause__ = left[0][1]
        return raised
