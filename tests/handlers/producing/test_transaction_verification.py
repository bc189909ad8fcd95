"""A Produce that waits for its transaction coordinator: the errors of each version, and what happens meanwhile."""

import asyncio
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from moldau.coordinators.transactions.messages import AddPartitions
from moldau.errors import ErrorCode
from moldau.handlers.producing.transaction_verification import error_in_version
from moldau.names import TopicPartition
from moldau.protocol.apis import PRODUCE
from moldau.records.batch import TRANSACTIONAL_BIT, Marker
from moldau.records.compression import GZIP
from moldau.replication.client_appends import append_off_loop
from moldau.replication.own_appends import append_marker
from tests.handlers.living import NOW_MS, Living, Wire, batch, outcomes, produce, run
from tests.replication.producing import planned

NONE, CONCURRENT = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
AGAIN = ErrorCode.NOT_ENOUGH_REPLICAS
HEAVY = random.Random(6).randbytes(80_000) + bytes(400_000)
"""Inflating it takes more than the loop."""


class FakeCoordinator:
    """Agrees to everything, when and as it is told to."""

    def __init__(self) -> None:
        self.asked: list[AddPartitions] = []
        self.answers: list[ErrorCode] = []
        self.held: asyncio.Future[None] | None = None

    def _next(self) -> ErrorCode:
        return self.answers.pop(0) if self.answers else NONE

    def add_partitions(self, ask: AddPartitions) -> ErrorCode | Awaitable[ErrorCode]:
        self.asked.append(ask)
        return self._next() if self.held is None else self._later(self.held)

    async def _later(self, held: "asyncio.Future[None]") -> ErrorCode:
        await held
        return self._next()

    def verify_partitions(self, ask: AddPartitions) -> dict[TopicPartition, ErrorCode]:
        self.asked.append(ask)
        return dict.fromkeys(ask.partitions, self._next())

    def partitions_changed(self) -> None: ...

    async def stop(self) -> None: ...


def fake(alive: Living) -> FakeCoordinator:
    """Takes the place of the broker's coordinator."""
    coordinator: Any = FakeCoordinator()
    alive.broker.coordinators.transactions = coordinator
    assert isinstance(coordinator, FakeCoordinator)
    return coordinator


def records(value: bytes = b"x", first: int = 0, epoch: int = 0, codec: int = 0) -> bytes:
    return batch(
        value, codec=codec, attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=epoch, base_sequence=first
    )


async def ask(wire: Wire, version: int, *parts: tuple[int, bytes]) -> list[int]:
    request = produce(*(("a", partition, data) for partition, data in parts), transactional_id="t")
    return [error for _, error, _ in outcomes(await wire.ask(PRODUCE, version, request))]


async def end(alive: Living, epoch: int, version: int = 2) -> None:
    replica = alive.replica("a")
    assert not (await append_marker(replica, 7, epoch, Marker(True, 0), version, NOW_MS)).error


@pytest.mark.parametrize("version", [9, 12])
def test_only_the_first_batch_of_a_transaction_in_a_partition_waits_for_its_coordinator(version: int, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 3)
        coordinator, wire = fake(alive), await alive.dial()
        assert await ask(wire, version, (0, records()), (1, records())) == [0, 0]
        assert await ask(wire, version, (0, records(first=1))) == [0]
        assert await ask(wire, version, (1, records(first=1)), (2, records())) == [0, 0]
        await end(alive, 1)
        assert await ask(wire, version, (0, records(epoch=1))) == [0]
        assert [[tp.partition for tp in one.partitions] for one in coordinator.asked] == [[0, 1], [2], [0]]
        assert {(one.transactional_id, one.producer_id) for one in coordinator.asked} == {("t", 7)}
        assert [one.epoch for one in coordinator.asked] == [0, 0, 1]
        assert {one.transaction_version for one in coordinator.asked} == {2 if version >= 12 else 0}

    run(scenario, tmp_path)


@pytest.mark.parametrize("is_heavy", [False, True])
@pytest.mark.parametrize("next_epoch", [0, 1])
def test_an_answer_of_before_a_marker_lets_nothing_into_the_transaction_after_it(
    next_epoch: int, is_heavy: bool, tmp_path: Path
) -> None:
    """Be the epoch after it the same or another, and the batch light or heavy."""

    async def scenario(alive: Living) -> None:
        await alive.make("a")
        coordinator, wire = fake(alive), await alive.dial()
        replica, slow = alive.replica("a"), asyncio.get_running_loop().create_future()
        coordinator.held = slow
        late = produce(("a", 0, records(HEAVY, codec=GZIP) if is_heavy else records()), transactional_id="t")
        wire.send(PRODUCE, 12, late)
        while not coordinator.asked:
            await asyncio.sleep(0)
        await end(alive, next_epoch, version=2 if next_epoch else 0)
        assert planned(replica, records(epoch=next_epoch), NOW_MS).guard is not None, (
            "the next transaction is being verified as well"
        )
        slow.set_result(None)
        ((_, error, _),) = outcomes((await wire.receive(PRODUCE, 12))[1])
        assert error in (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH)
        assert replica.high_watermark == 1, "the marker alone"

    run(scenario, tmp_path)


def test_a_transaction_that_ends_while_its_batch_is_checked_is_not_begun_again(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        fake(alive)
        replica = alive.replica("a")
        assert await ask(await alive.dial(), 11, (0, records())) == [0]
        later = planned(replica, records(HEAVY, first=1, codec=GZIP), NOW_MS)
        assert later.off_loop
        checking = asyncio.ensure_future(append_off_loop(later, NOW_MS))
        await asyncio.sleep(0)
        await end(alive, 0, version=0)
        assert (await checking).error is ErrorCode.INVALID_TXN_STATE

    run(scenario, tmp_path)


def test_the_coordinator_is_asked_again_while_the_transaction_before_ends(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        coordinator, wire = fake(alive), await alive.dial()
        coordinator.answers = [CONCURRENT, CONCURRENT, NONE]
        assert await ask(wire, 12, (0, records())) == [0]
        assert len(coordinator.asked) == 3
        coordinator.answers = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        await end(alive, 1)
        assert await ask(wire, 12, (0, records(epoch=1))) == [AGAIN]
        assert len(coordinator.asked) == 4

    run(
        scenario, tmp_path, add_partitions_to_txn_retry_backoff_ms=1, add_partitions_to_txn_retry_backoff_max_ms=600_000
    )


@pytest.mark.parametrize(("version", "error", "asked"), [(11, AGAIN, 1), (12, CONCURRENT, 1)])
def test_but_not_for_longer_than_is_set(version: int, error: ErrorCode, asked: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        coordinator, wire = fake(alive), await alive.dial()
        coordinator.answers = [CONCURRENT] * 9
        assert await ask(wire, version, (0, records())) == [error]
        assert len(coordinator.asked) == asked
        assert alive.replica("a").high_watermark == 0

    run(scenario, tmp_path, add_partitions_to_txn_retry_backoff_max_ms=0)


@pytest.mark.parametrize(
    ("error", "by_version"),
    [
        (ErrorCode.PRODUCER_FENCED, dict.fromkeys((9, 11, 12), ErrorCode.INVALID_PRODUCER_EPOCH)),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, dict.fromkeys((9, 11, 12), ErrorCode.INVALID_PRODUCER_ID_MAPPING)),
        (ErrorCode.NOT_COORDINATOR, dict.fromkeys((9, 11, 12), AGAIN)),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, dict.fromkeys((9, 11, 12), AGAIN)),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, dict.fromkeys((9, 11, 12), AGAIN)),
        (CONCURRENT, {9: AGAIN, 11: AGAIN, 12: CONCURRENT}),
        (
            ErrorCode.TRANSACTION_ABORTABLE,
            {
                10: ErrorCode.INVALID_TXN_STATE,
                11: ErrorCode.TRANSACTION_ABORTABLE,
                12: ErrorCode.TRANSACTION_ABORTABLE,
            },
        ),
    ],
)
def test_each_version_is_told_what_its_clients_understand(error: ErrorCode, by_version: dict[int, ErrorCode]) -> None:
    assert {version: error_in_version(error, version) for version in by_version} == by_version
