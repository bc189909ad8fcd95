"""What the model takes for granted after a crash: as much as the log may forget, and no more."""

import random
from collections.abc import Iterator

import pytest

from moldau.config import TopicConfig
from moldau.names import TopicPartition
from moldau.records.batch import Row
from tests.crash_points.folder import NOW_MS
from tests.crash_points.machine import Machine

EVENTS = TopicPartition("events", 0)
PRODUCER = 17


def append(machine: Machine, sequence: int) -> None:
    rows = [Row(b"k", b"v", NOW_MS)]
    names = {"producer_id": PRODUCER, "producer_epoch": 0, "base_sequence": sequence, "transactional": True}
    machine.append(EVENTS, rows, **names)


def transaction_start(machine: Machine) -> int:
    known = machine.log(EVENTS).producers.get(PRODUCER)
    return -1 if known is None else known.transaction_start


@pytest.fixture
def retained(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Retention deleted the only batch of an open transaction: only the snapshot of its producer remembers it. A power
    loss takes everything that is not flushed."""
    monkeypatch.setattr("moldau.simulation.disk.SHARES", (0.0,))
    machine = Machine(random.Random(1))
    machine.start()
    machine.create(EVENTS, TopicConfig(cleanup_policy=("delete",), retention_ms=-1))
    append(machine, 0)
    machine.retain(EVENTS, -1, 0)
    machine.checkpoint()
    yield machine
    machine.dispose()


def test_a_log_that_lost_its_snapshot_counts_a_transaction_from_the_first_batch_that_is_left(retained: Machine) -> None:
    machine = retained
    machine.lose_power()
    machine.start()
    assert transaction_start(machine) == -1
    append(machine, 1)
    machine.kill()
    machine.start()
    assert transaction_start(machine) == 1


def test_a_transaction_whose_first_batch_was_retained_still_begins_there_after_a_flush(retained: Machine) -> None:
    machine = retained
    machine.flush(EVENTS)
    machine.lose_power()
    machine.start()
    append(machine, 1)
    machine.kill()
    machine.start()
    assert transaction_start(machine) == 0
