"""Apache Kafka's Java client copies a topic exactly once, whoever is killed."""

from pathlib import Path

import pytest

from harness.tiers import LONG
from tests.clients.client import DRIVERS
from tests.clients.referee import sizes
from tests.clients.test_java_client import QUICK_START
from tests.clients.transactions import copying
from tests.clients.transactions.conftest import KILLS
from tests.environments import java_class, kafka_jars
from tests.versions import KAFKA

pytestmark = pytest.mark.long  # in `make check` Kafka Streams copies with the same client, and is killed


@pytest.mark.parametrize("protocol", ["classic", "consumer"] if LONG else ["consumer"])
@pytest.mark.parametrize("brokers", sizes(1))
@pytest.mark.timeout(0 if LONG else 600)
def test_the_copy_is_exact_after_workers_and_brokers_were_killed(
    tmp_path: Path, seed: int, protocol: str, brokers: int
) -> None:
    java = ["java", *QUICK_START, "-Xmx128m", "-cp", java_class(DRIVERS / "Copying.java", kafka_jars(KAFKA)), "Copying"]

    def command(address: str, settings: str) -> list[str | Path]:
        return [*java, address, copying.SOURCE, copying.COPY, copying.GROUP, settings]

    copying.check_copy(command, tmp_path, seed, KILLS, protocol, brokers)
