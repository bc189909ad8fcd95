"""Hanging transactions are looked for with two looks at the partition: one that ended in between does not hang."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from moldau.client.administration.transactions import (
    AsyncTransactions,
    OpenTransaction,
    ProducerDescription,
    ProducersByPartition,
)
from moldau.names import TopicPartition
from tests.client.administration.answering import AnsweringRouter, empty

TP = TopicPartition("t", 0)
OPEN = ProducerDescription(7, 3, 0, 0, 0, 10)


class Looked(AsyncTransactions):
    """Transactions that no coordinator knows; each look at the partition returns the next of `looks`."""

    def __init__(self, *looks: list[ProducerDescription]):
        router: Any = AnsweringRouter(empty)
        super().__init__(router)
        self.looks = [*looks]

    async def producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None = None
    ) -> ProducersByPartition:
        return dict.fromkeys(partitions, self.looks.pop(0))


@pytest.mark.parametrize(
    ("second", "hangs"),
    [
        ([OPEN], True),
        ([], False),
        ([OPEN._replace(start_offset=None)], False),
        ([OPEN._replace(start_offset=11)], False),
        ([OPEN._replace(producer_epoch=4)], False),
    ],
    ids=["still open", "forgotten", "ended", "the next one", "the next one of a later epoch"],
)
def test_a_transaction_hangs_if_it_is_open_at_both_looks(second: list[ProducerDescription], hangs: bool) -> None:
    transactions = Looked([OPEN], second)
    assert asyncio.run(transactions.hanging([TP], 1_000)) == ([OpenTransaction(TP, OPEN)] if hangs else [])
    assert transactions.looks == []


def test_a_partition_without_an_old_transaction_is_looked_at_once() -> None:
    assert asyncio.run(Looked([]).hanging([TP], 1_000)) == []
