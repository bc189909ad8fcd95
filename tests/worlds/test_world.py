"""Simulated worlds: a broker with real clients' traffic lives through crashes in virtual time; one seed has one
history."""

import os
import subprocess
import sys

import pytest

from harness.patience import stretched
from harness.tiers import sized
from moldau.errors import KafkaError
from moldau.log.log import Log
from moldau.log.producers.producers import Producers
from moldau.replication.replica import Replica
from tests.worlds.scenarios import run_seed
from tests.worlds.workload import Broken

SEEDS = range(1, 1 + sized(4, 8, 12))
MUTATION_SEEDS = range(1, 41)

HEAPS = (("0", "0"), ("4242", "20011"), ("1", "3000"))
"""Seeds of hashes, and how many objects are there before."""
REPLAY = """
import random, sys
held = [bytearray(random.randrange(1, 5000)) for _ in range(int(sys.argv[2]))]
held = held[::3]
from tests.worlds.scenarios import run_seed
print(run_seed(int(sys.argv[1])).digest)
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_or_doubled_when_the_broker_is_killed(seed: int) -> None:
    world = run_seed(seed)
    assert world.loop.time() > 1
    assert world.network.delivered > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_flushed_before_the_answer_survives_the_loss_of_power(seed: int) -> None:
    run_seed(seed, power_loss=True)


def test_virtual_seconds_cost_no_real_ones() -> None:
    worlds = [run_seed(seed) for seed in range(100, 105)]
    assert sum(world.loop.time() for world in worlds) > 10


def test_a_seed_has_one_history_whatever_the_heap_and_the_hashes_are() -> None:
    digests = set()
    for hash_seed, garbage in sized(HEAPS[:2], HEAPS, HEAPS):
        ran = subprocess.run(
            [sys.executable, "-c", REPLAY, "7", garbage],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=stretched(60),
            check=True,
        )
        digests.add(ran.stdout.strip())
    assert len(digests) == 1, digests
    assert run_seed(8).digest not in digests, "another seed, another history"


def caught(power_loss: bool) -> bool:
    """Whether one of the seeds finds the mutation in place: a checker does, or a client that is told nonsense."""
    for seed in MUTATION_SEEDS:
        try:
            run_seed(seed, power_loss=power_loss)
        except (Broken, KafkaError):
            return True
    return False


def test_an_answer_before_the_flush_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def without_flush(self: Replica, size: int) -> None:
        self._reached(self.log.log_end_offset, size)

    monkeypatch.setattr(Replica, "flush_if_due", without_flush)
    assert caught(power_loss=True)


def test_forgotten_sequences_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Producers, "check", lambda self, header: None)
    assert caught(power_loss=False)


def test_offsets_given_twice_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Log.append

    def stuck(self: Log, *args: object) -> object:
        appended = append(self, *args)  # type: ignore[arg-type]
        return appended._replace(base_offset=max(appended.base_offset - 1, 0))

    monkeypatch.setattr(Log, "append", stuck)
    assert caught(power_loss=False)
