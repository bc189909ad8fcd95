"""What the console asks a cluster: how many requests a page makes, and for how long answers are kept."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.request import urlopen

import pytest

from harness.patience import stretched
from moldau import Admin, Producer, TopicPartition
from moldau.client.administration.cluster import ClusterDescription
from moldau.console.asking import keeping
from moldau.console.asking.cluster_admin import ClusterAdmin
from moldau.console.asking.health_question import ClusterHealth
from moldau.console.asking.keeping import SharedAnswer
from moldau.console.settings import ConsoleSettings
from moldau.errors import KafkaError
from moldau.peers.address import Address
from moldau.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    NextCursor,
)
from moldau.testing import Broker
from tests.console.browser import ScreenlessBrowser
from tests.console.conftest import served

REQUESTS = re.compile(r'^kafka_network_requestmetrics_requests_total\{.*?request="(\w+)".*?\} (\d+)', re.MULTILINE)
POLLS = {
    "/health": 5, "/pulse": 2, "/pulse/throughput": 7, "/topic-rows": 14, "/group-rows": 11, "/topics/orders": 7,
    "/topics/orders/pulse": 5, "/topics/orders/groups": 13, "/groups/group-01": 10,
}  # fmt: skip
"""Path -> the most requests of one poll of an open page at one broker, if nothing is kept."""


@pytest.fixture(scope="module")
def measured() -> Iterator[Broker]:
    with Broker(metrics_port=0, metrics_host="127.0.0.1") as made:
        yield made


def counted(broker: Broker) -> Counter[str]:
    with urlopen(broker.metrics_url, timeout=stretched(30)) as answer:
        return Counter({name: int(count) for name, count in REQUESTS.findall(answer.read().decode())})


def test_a_poll_of_an_open_page_makes_few_requests_however_many_groups_wait(measured: Broker) -> None:
    measured.create_topic("orders", 12)
    with Producer(measured.address) as producer:
        for number in range(24):
            producer.send("orders", b"x", partition=number % 12).result()
    with Admin(measured.address) as admin:
        for number in range(30):
            offsets = {TopicPartition("orders", partition): number % 2 for partition in range(12)}
            admin.alter_group_offsets(f"group-{number:02d}", offsets)
    found: dict[str, Counter[str]] = {}
    for url in served(ConsoleSettings(measured.client_settings(), "127.0.0.1", 0)):
        with ScreenlessBrowser(url) as browser:
            for path in POLLS:
                browser.get(path, HX_Request="true")
                before = counted(measured)
                assert browser.get(path, HX_Request="true").status == 200
                found[path] = counted(measured) - before
    assert {path: one.total() for path, one in found.items() if one.total() > POLLS[path]} == {}, found


class CountedAdmin(ClusterAdmin):
    """Its cluster is whatever a test says; counts how often partitions are counted."""

    members = ClusterDescription("c", 1, {1: Address("a", 1), 2: Address("b", 2)}, {1: None, 2: None})
    counts = 0
    under_replicated = 0

    async def describe_cluster(self, *, include_fenced: bool = False) -> ClusterDescription:
        return self.members

    async def _health(self) -> ClusterHealth:
        self.counts += 1
        return ClusterHealth(1, 1, 0, self.under_replicated)


def test_partitions_are_counted_again_as_soon_as_a_broker_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "KEPT_S", 1_000.0)

    async def scenario() -> None:
        admin = CountedAdmin({"bootstrap.servers": "127.0.0.1:1"})
        await admin.health()
        await admin.health()
        assert admin.counts == 1
        admin.members = replace(admin.members, controller_id=2, brokers={2: Address("b", 2)})
        admin.under_replicated = 1
        assert (await admin.health()).under_replicated == 1 and admin.counts == 2
        await admin.health()
        assert admin.counts == 2
        await admin.close()

    asyncio.run(scenario())


class PagedAdmin(ClusterAdmin):
    """Its broker describes one partition of the topic `t` in each answer; `places` are where it goes on."""

    places: Iterator[tuple[str, int] | None]

    async def _ask(self, *_: Any) -> Any:
        place = next(self.places)
        topic = DescribeTopicPartitionsResponseTopic(name="t", partitions=[DescribeTopicPartitionsResponsePartition()])
        cursor = None if place is None else NextCursor(topic_name=place[0], partition_index=place[1])
        return DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor)


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ([("t", 1), ("u", 0), None], "3"),
        ([("t", 1), ("t", 1), None], "goes back to a partition that was counted"),
        ([("t", 1), ("s", 9), None], "goes back to a partition that was counted"),
    ],
)
def test_counting_partitions_ends_if_a_broker_goes_back(places: list[tuple[str, int] | None], told: str) -> None:
    async def scenario() -> str:
        admin = PagedAdmin({"bootstrap.servers": "127.0.0.1:1"})
        admin.places = iter(places)
        try:
            return str((await admin._health()).partitions)
        except KafkaError as refused:
            return str(refused)
        finally:
            await admin.close()

    assert told in asyncio.run(scenario())


def test_an_answer_that_waited_for_a_broker_is_not_kept_for_an_hour() -> None:
    async def scenario() -> None:
        times_s = iter([0.0, 10.0])
        task = asyncio.ensure_future(asyncio.sleep(0))
        answer = SharedAnswer(task, lambda: next(times_s))
        await task
        await asyncio.sleep(0)
        assert not answer.is_over(10.0 + keeping.KEPT_MAX_S, 5.0, 300)
        assert answer.is_over(11.0 + keeping.KEPT_MAX_S, 5.0, 300)

    asyncio.run(scenario())
