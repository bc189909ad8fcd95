"""`metadata.max.age.ms`: producer, consumer and admin client ask again for metadata that is older."""

import re
from typing import Any

import pytest

import moldau
from harness.patience import wait_until
from moldau.client.routing import Router
from tests.client.test_long_waits import closed_if_it_hangs


def test_a_producer_finds_new_partitions(bootstrap: str, topic: str) -> None:
    with (
        moldau.Admin(bootstrap) as admin,
        moldau.Producer(bootstrap, metadata_max_age_ms=20, partitioner="round_robin", linger_ms=0) as producer,
    ):
        admin.create_topic(topic, partitions=1)
        assert producer.send(topic, b"").result(60).partition == 0
        admin.create_partitions(topic, 2)
        assert wait_until(lambda: producer.send(topic, b"").result(60).partition == 1)


@pytest.mark.parametrize("age_ms", [0, 20])
def test_a_consumer_finds_new_topics(age_ms: int, bootstrap: str, topic: str, group: str) -> None:
    settings = {"metadata_max_age_ms": age_ms, "auto_offset_reset": "earliest"}
    with moldau.Consumer(bootstrap, group_id=group, **settings) as consumer, closed_if_it_hangs(consumer):
        consumer.subscribe(re.compile(re.escape(topic)))
        assert consumer.poll(0) == []
        with moldau.Producer(bootstrap) as producer:
            producer.send(topic, b"late")
        assert next(consumer).value == b"late"


@pytest.mark.parametrize(("age_ms", "asks"), [(300_000, 0), (0, 3)])
def test_an_admin_client_asks_again_where_a_broker_is(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch, age_ms: int, asks: int
) -> None:
    asked: list[object] = []
    refresh = Router.refresh

    async def counted(router: Router, topics: Any, **named: Any) -> None:
        asked.append(topics)
        await refresh(router, topics, **named)

    monkeypatch.setattr(Router, "refresh", counted)
    with moldau.Admin(bootstrap, metadata_max_age_ms=age_ms) as admin:
        [broker] = admin.describe_cluster().brokers
        admin.list_topics()
        asked.clear()
        for _ in range(3):
            assert admin.api_versions(broker)
    assert len(asked) == asks
