"""Worlds of transactions: all there or not at all, whatever producers do and whenever the broker dies."""

import pytest

from harness.tiers import seeds_or, sized
from moldau.names import TopicPartition
from tests.worlds.scenarios import live, run_transactions
from tests.worlds.transactions.ledger import TransactionLedger
from tests.worlds.workload import Broken

SEEDS = range(1, 1 + sized(3, 6, 8))
FRESH = sized(2, 4, 2000)
PLACE = TopicPartition("money", 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_keep_their_promises_when_the_broker_is_killed(seed: int) -> None:
    assert run_transactions(seed).network.delivered > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_keep_their_promises_when_the_power_fails(seed: int) -> None:
    run_transactions(seed, power_loss=True)


def test_fresh_seeds_of_transactions_hold_in_the_long_mode() -> None:
    for seed in seeds_or(7000, FRESH):
        lived = live(seed, "transactions", seed % 2 == 0)
        assert lived.failure is None, f"seed {seed}, power loss {seed % 2 == 0}: {lived.failure}"


def test_what_is_there_in_part_or_without_its_offset_is_noticed() -> None:
    ledger = TransactionLedger()
    transaction = ledger.begin("x", "x-1")
    for value in ("a", "b"):
        ledger.sends(transaction, value)
        transaction.acknowledged.add(value)
    with pytest.raises(Broken, match="was not"):
        ledger.read("a", PLACE, 0)
    transaction.tried_to_commit = transaction.has_offset = True
    ledger.seen.clear()
    ledger.read("a", PLACE, 0)
    with pytest.raises(Broken, match="there in part"):
        ledger.check({})
    ledger.read("b", PLACE, 1)
    ledger.check({"x": 1})
    with pytest.raises(Broken, match="the offset that x committed is None"):
        ledger.check({"x": None})


def test_a_fenced_producer_that_is_heard_is_noticed() -> None:
    ledger = TransactionLedger()
    ledger.initialised("x", "x-1", 0.5, 1.0)
    ledger.initialised("x", "x-2", 1.5, 2.0)
    ledger.taken("x", "x-1", sent_s=1.9)
    with pytest.raises(Broken, match="fenced by x-2"):
        ledger.taken("x", "x-1", sent_s=2.1)
