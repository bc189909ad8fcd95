"""Transactions as blocks: `with producer.transaction() as t`, and `async with` for the asyncio producer.

The end of the block commits, an exception aborts. If a record could not be delivered, the commit fails, the transaction
is aborted and the block raises `TransactionAbortable`: the producer may begin the next transaction. If the transaction
cannot be aborted either, the block raises that failure: `ProducerFenced` where a newer producer has taken over.
"""

import logging
from collections.abc import Mapping
from typing import Protocol, Self

from moldau.client.own_loop import OwnLoop, of_one_loop
from moldau.client.producing.transacting import GroupOffsets
from moldau.errors import ConfigError, KafkaError, TransactionAbortable
from moldau.names import GroupMetadata, OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

NOT_ABORTED = "the transaction could not be aborted: %s"
LATER = "the transaction could not be aborted, the coordinator will do it after its time-out: %s"


class Consumes(Protocol):
    """What a transaction asks of a consumer to commit its positions."""

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]: ...

    def group_metadata(self) -> GroupMetadata: ...


class ConsumesAsync(Protocol):
    """The same of a consumer on asyncio."""

    async def positions(self) -> dict[TopicPartition, OffsetAndMetadata]: ...

    def group_metadata(self) -> GroupMetadata: ...


class _Producer(Protocol):
    def begin_transaction(self) -> None: ...

    def commit_transaction(self) -> None: ...

    def abort_transaction(self) -> None: ...

    def send_offsets_to_transaction(self, offsets: GroupOffsets, group: str | GroupMetadata) -> None: ...


class _AsyncProducer(Protocol):
    own_loop: OwnLoop

    async def begin_transaction(self) -> None: ...

    async def commit_transaction(self) -> None: ...

    async def abort_transaction(self) -> None: ...

    async def send_offsets_to_transaction(self, offsets: GroupOffsets, group: str | GroupMetadata) -> None: ...


class Transaction:
    """A transaction of a `Producer`, which its method `transaction` returns."""

    def __init__(self, producer: _Producer):
        self._producer = producer

    def __enter__(self) -> Self:
        self._producer.begin_transaction()
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is not None:
            self._abort()
            return
        try:
            self._producer.commit_transaction()
        except TransactionAbortable as refused:
            self._abort(refused)
            raise

    def send_offsets(self, offsets: Consumes | GroupOffsets, group: str | GroupMetadata | None = None) -> None:
        """Commit offsets of a group with the transaction: the positions of a consumer, or the given ones of the named
        group. Raises `KafkaError`."""
        if not isinstance(offsets, Mapping):
            group = group or offsets.group_metadata()
            offsets = offsets.positions()
        self._producer.send_offsets_to_transaction(offsets, _named(group))

    def _abort(self, refused: TransactionAbortable | None = None) -> None:
        try:
            self._producer.abort_transaction()
        except KafkaError as failure:
            _not_aborted(failure, refused)


@of_one_loop()
class AsyncTransaction:
    """A transaction of an `AsyncProducer`, which its method `transaction` returns."""

    def __init__(self, producer: _AsyncProducer):
        self._producer = producer
        self.own_loop = producer.own_loop

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        return self

    async def __aexit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is not None:
            await self._abort()
            return
        try:
            await self._producer.commit_transaction()
        except TransactionAbortable as refused:
            await self._abort(refused)
            raise

    async def send_offsets(
        self, offsets: ConsumesAsync | GroupOffsets, group: str | GroupMetadata | None = None
    ) -> None:
        """Commit offsets of a group with the transaction: the positions of a consumer, or the given ones of the named
        group. Raises `KafkaError`."""
        if not isinstance(offsets, Mapping):
            group = group or offsets.group_metadata()
            offsets = await offsets.positions()
        await self._producer.send_offsets_to_transaction(offsets, _named(group))

    async def _abort(self, refused: TransactionAbortable | None = None) -> None:
        try:
            await self._producer.abort_transaction()
        except KafkaError as failure:
            _not_aborted(failure, refused)


def _not_aborted(failure: KafkaError, refused: TransactionAbortable | None) -> None:
    """Raise `failure` if the block would otherwise say, with `refused`, that the producer may go on; else log it."""
    if refused is not None and not failure.retriable:
        raise failure from refused
    logger.warning(LATER if failure.retriable else NOT_ABORTED, failure)


def _named(group: str | GroupMetadata | None) -> str | GroupMetadata:
    if group is None:
        raise ConfigError("send_offsets needs the group of these offsets: its id, or consumer.group_metadata()")
    return group
