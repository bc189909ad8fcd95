"""Clients with a quota of 1 MB a second keep to it, from window to window of eleven seconds: producers within a tenth.

A reader that reads as fast as it may gets ten seconds' worth at once, and the next when all of that is older than the
window: ten seconds' worth in eleven and a half, as the arithmetic of Kafka has it (4.3.1 gave both of these readers
0.83 of a quota of 1 MB a second, where ours gives 0.85).
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker
from harness.patience import stretched
from moldau import Admin, Producer
from tests.clients.client import DRIVERS
from tests.environments import python_with
from tests.versions import CONFLUENT

pytestmark = pytest.mark.long

RATE = 1_000_000
MEASURED_S = 50
"""Four windows and more."""
BURST, BURST_S = 3_000_000, 1.0
"""What a window allows comes at once, when what filled it is old: a burst is more than this in that time."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    ours = Broker(tmp_path, {"num.partitions": "1"})
    ours.start()
    yield ours
    ours.stop()


@pytest.mark.parametrize("library", ["ours", "confluent"])
@pytest.mark.parametrize("what", ["produce", "consume"])
def test_a_client_keeps_to_its_quota(library: str, what: str, broker: Broker) -> None:
    with Admin(broker.address) as admin:
        if what == "consume":
            with Producer(broker.address) as producer:
                for _ in range(8000):
                    producer.send("t", bytes(range(256)) * 40)
        key = "producer_byte_rate" if what == "produce" else "consumer_byte_rate"
        slow = (("client-id", "slow"),)
        assert admin.alter_client_quotas({slow: {key: RATE}}) == {slow: None}
    python = sys.executable if library == "ours" else python_with(CONFLUENT)
    done = subprocess.run(
        [python, DRIVERS / "throttled.py", library, what, broker.address, "t", str(MEASURED_S)],
        capture_output=True, text=True, timeout=stretched(MEASURED_S + 120),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = [(at, size) for at, size in json.loads(done.stdout)]
    ends = burst_ends(seen)
    (began, before), (ended, after) = ends[0], ends[-1]
    rate = (after - before) / (ended - began)
    print(f"{library} {what}: {rate / RATE:.3f} MB/s from {began:.1f} to {ended:.1f} s")
    assert ended - began > 30, ends
    assert (0.9 if what == "produce" else 0.8) * RATE <= rate <= 1.1 * RATE, ends


def burst_ends(seen: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """When each burst was over, and how much had come by then: windows pass from one to the next."""
    ends, is_in_burst = [], False
    for at, size in seen:
        before = max((earlier for then, earlier in seen if then <= at - BURST_S), default=0)
        if is_in_burst and size - before < BURST:
            ends.append((at, size))
        is_in_burst = size - before >= BURST
    return ends
