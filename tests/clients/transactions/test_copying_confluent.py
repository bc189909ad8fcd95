"""confluent-kafka copies a topic exactly once, whoever is killed."""

from pathlib import Path

import pytest

from harness.tiers import LONG
from tests.clients.client import DRIVERS
from tests.clients.referee import sizes
from tests.clients.transactions import copying
from tests.clients.transactions.conftest import KILLS
from tests.environments import python_with
from tests.versions import CONFLUENT

pytestmark = pytest.mark.check


@pytest.mark.parametrize("protocol", ["classic", "consumer"] if LONG else ["classic"])
@pytest.mark.parametrize("brokers", sizes(3))
@pytest.mark.timeout(0 if LONG else 600)
def test_the_copy_is_exact_after_workers_and_brokers_were_killed(
    tmp_path: Path, seed: int, protocol: str, brokers: int
) -> None:
    python = python_with(CONFLUENT)

    def command(address: str, settings: str) -> list[str | Path]:
        return [python, DRIVERS / "copying.py", address, copying.SOURCE, copying.COPY, copying.GROUP, settings]

    copying.check_copy(command, tmp_path, seed, KILLS, protocol, brokers)
