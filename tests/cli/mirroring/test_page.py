"""The commands of docs/mirror.md, in the order of the page: over to the other cluster and back."""

import contextlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.patience import stretched, wait_until
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from moldau.testing import Broker
from tests.cli.conftest import Moldau
from tests.cli.test_main import started

PAGE = Path(__file__).parents[3] / "docs" / "mirror.md"
COMMANDS = re.findall(r"^\$ moldau (.*)$", PAGE.read_text(), re.MULTILINE)


def fill(broker: Broker, topic: str, count: int) -> None:
    with Producer(broker.address, acks="all") as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number)


@contextlib.contextmanager
def worker(arguments: list[str]) -> Iterator[None]:
    with started(*arguments, "--refresh", "0.1") as working:
        try:
            yield
            working.send_signal(signal.SIGTERM)
            assert working.wait(stretched()) == 0
        finally:
            working.kill()


@pytest.fixture
def clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as origin, Broker() as backup:
        yield origin, backup


@pytest.mark.check
def test_the_page_leads_over_to_the_other_cluster_and_back(clusters: tuple[Broker, Broker], offline: Moldau) -> None:
    origin, backup = clusters
    there = {"origin:9092": origin.address, "backup:9092": backup.address}

    def words(command: str) -> list[str]:
        return [there.get(word, word.strip("'")) for word in command.split()]

    def level(source: Broker, target: Broker) -> bool:
        shown = offline("mirror", "status", "--from", source.address, "--to", target.address, "--json").json
        return len(shown) == 2 and not any(one["records"] for one in shown)

    start, status, promote, rehearse, fail_over, delete, start_back, promote_back = map(words, COMMANDS)
    for topic, count in (("orders", 5), ("payments", 3)):
        origin.create_topic(topic, 1)
        fill(origin, topic, count)
    with worker(start):
        assert wait_until(lambda: level(origin, backup))
        assert offline(*status).lines[-1] == "a fail-over now would lose 0 records"
        assert offline(*promote).lines == ["orders-0 is writable from offset 6"]
    assert offline(*rehearse).lines == ["payments-0 would be writable from offset 3"]
    assert offline(*fail_over).lines == ["payments-0 is writable from offset 4"]
    assert offline(*fail_over).error.startswith("no mirror in")
    for topic in ("orders", "payments"):
        fill(backup, topic, 2)
    assert offline(*delete).code == 0
    with worker(start_back):
        assert wait_until(lambda: level(backup, origin))
        assert offline(*promote_back).lines == [
            "orders-0 is writable from offset 9",
            "payments-0 is writable from offset 7",
        ]
    fill(origin, "orders", 1)
    with Consumer(origin.address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        found: list[int] = []
        while len(found) < 8:
            found += [record.offset for record in consumer.poll()]
    assert found == [0, 1, 2, 3, 4, 6, 7, 9]
