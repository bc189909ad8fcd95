"""Our own producer and consumer copy a topic exactly once, whoever is killed."""

import sys
from pathlib import Path

import pytest

from harness.tiers import LONG
from tests.clients.client import DRIVERS
from tests.clients.referee import SIZES
from tests.clients.transactions import copying
from tests.clients.transactions.conftest import KILLS


@pytest.mark.parametrize("protocol", ["classic", "consumer"] if LONG else ["classic"])
@pytest.mark.check
@pytest.mark.parametrize("brokers", SIZES)
@pytest.mark.timeout(0 if LONG else 600)
def test_the_copy_is_exact_after_workers_and_brokers_were_killed(
    tmp_path: Path, seed: int, protocol: str, brokers: int
) -> None:
    def command(address: str, settings: str) -> list[str | Path]:
        driver = DRIVERS / "copying_moldau.py"
        return [sys.executable, driver, address, copying.SOURCE, copying.COPY, copying.GROUP, settings]

    copying.check_copy(command, tmp_path, seed, KILLS, protocol, brokers)
