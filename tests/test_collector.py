"""Full collections stay short however much a broker holds, and cycles are reclaimed all the same."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from moldau import collector
from moldau.collector import IDLE_SHARE, LOOK_S, THAW_IDLE_S, THAW_S, Collector


class Cycle:
    def __init__(self) -> None:
        self.itself = self


class Machine:
    """The two clocks of a process that is busy for some share of the time."""

    def __init__(self) -> None:
        self.now_s = self.used_s = 0.0

    def passes(self, seconds: float, busy: float) -> None:
        self.now_s += seconds
        self.used_s += seconds * busy


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def policy(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setattr(collector, "SHORT_S", -1)  # every full collection counts as long
    loop = asyncio.new_event_loop()
    made = Collector(loop, lambda: machine.now_s, lambda: machine.used_s)
    made.begin()
    yield made  # what is frozen stays: the worker holds all tests, and no collection needs to look at them again
    made.end()
    loop.close()
    assert made._collecting not in gc.callbacks


def frozen_cycle() -> "weakref.ref[Cycle]":
    """A cycle that became garbage after it was frozen."""
    cycle = Cycle()
    gc.collect()
    gone = weakref.ref(cycle)
    del cycle
    gc.collect()
    assert gone() is not None
    return gone


def test_what_survives_a_long_collection_is_not_looked_at_again(policy: Collector):
    before = gc.get_freeze_count()
    held = [[number] for number in range(10_000)]
    gc.collect()
    assert gc.get_freeze_count() >= before + len(held)
    assert all(one is not held for one in gc.get_objects())
    fresh = weakref.ref(Cycle())
    gc.collect()
    assert fresh() is None


def test_short_collections_freeze_nothing(policy: Collector, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collector, "SHORT_S", 3600)
    before = gc.get_freeze_count()
    held = [[number] for number in range(10_000)]
    gc.collect()
    assert gc.get_freeze_count() <= before  # what other tests froze may go away meanwhile
    assert len(held) == 10_000


def test_a_frozen_cycle_is_reclaimed_when_the_broker_is_idle(policy: Collector, machine: Machine):
    gone = frozen_cycle()
    machine.passes(THAW_IDLE_S - LOOK_S, busy=0)
    policy.look()
    assert gone() is not None
    machine.passes(LOOK_S, busy=IDLE_SHARE / 2)
    policy.look()
    assert gone() is None


def test_a_frozen_cycle_is_reclaimed_some_time_though_the_broker_is_never_idle(policy: Collector, machine: Machine):
    gone = frozen_cycle()
    for _ in range(int(THAW_S / THAW_IDLE_S) - 1):
        machine.passes(THAW_IDLE_S, busy=0.5)
        policy.look()
    assert gone() is not None
    machine.passes(THAW_IDLE_S, busy=0.5)
    policy.look()
    assert gone() is None


def test_a_heap_that_has_not_grown_is_not_thawed(policy: Collector, machine: Machine, monkeypatch: pytest.MonkeyPatch):
    frozen_cycle()
    machine.passes(THAW_IDLE_S, busy=0)
    policy.look()
    monkeypatch.setattr(gc, "unfreeze", lambda: pytest.fail("thawed again"))
    machine.passes(THAW_S, busy=0)
    policy.look()
    monkeypatch.undo()
