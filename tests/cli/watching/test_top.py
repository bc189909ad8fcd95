"""`moldau top` against a broker, with its metrics."""

import asyncio
import uuid
from collections.abc import Collection
from typing import Any

import pytest

from moldau.cli.watching import looking
from moldau.cli.watching.changes import ClusterLook, SummedLag
from moldau.cli.watching.looking import look
from moldau.cli.watching.top import _what_is_wrong, view_of
from moldau.client.administration.admin import ClusterDescription
from moldau.client.administration.groups import GroupListing
from moldau.client.cluster_view import PartitionView, TopicView
from moldau.client.consuming.consumer import Consumer
from moldau.client.lag import Lag
from moldau.client.producing.producer import Producer
from moldau.errors import ErrorCode, KafkaError, UnknownTopicOrPartition
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.peers.address import Address
from moldau.testing import Broker
from tests.cli.conftest import Moldau


def test_topics_groups_and_requests_are_shown(offline: Moldau) -> None:
    with Broker({"metrics.port": "0"}) as broker:
        address = broker.bootstrap_servers
        once = ("top", "-b", address, "--once", "--interval", "1")
        with Producer(address) as producer:
            for _ in range(10):
                producer.send("orders", b"x")
        with Consumer(address, group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            assert len(consumer.poll(30_000, 4)) == 4
            consumer.commit()
        view = offline(*once, "--json", "--metrics", broker.metrics_url).json
        assert view["topics"][0] == {"topic": "orders", "partitions": 1, "records_per_second": 0.0, "end_offsets": 10}
        group = view["groups"][0]
        assert (group["group"], group["lag"]) == ("billing", 6) and group["lag_seconds"] > 0
        assert {"Metadata", "ListOffsets"} <= {row["api"] for row in view["requests"]}
        shown = offline(*once)
        assert shown.lines[0].endswith("0.0 records/s written") and "cluster " in shown.lines[0]
        assert shown.lines[2].split() == ["TOPIC", "PARTITIONS", "RECORDS", "PER", "SECOND", "END", "OFFSETS"]
        assert (view["away"], view["leaderless_partitions"], view["under_replicated_partitions"]) == ([], 0, 0)
        assert "is not a URL" in offline(*once, "--metrics", "localhost").error
        refused = offline(*once, "--metrics", "http://127.0.0.1:1/metrics").error
        assert refused == "http://127.0.0.1:1/metrics cannot be read: [Errno 111] Connection refused"


class Half:
    """An admin client of a cluster of two brokers, of which the second hangs."""

    def __init__(self, brokers: tuple[int, ...], *, hangs: bool):
        self.cluster = ClusterDescription("c", 1, {broker: Address("h", broker) for broker in brokers}, {})
        self.hangs = hangs
        part = PartitionView(-1, -1, (1, 2), (1,))
        of = {0: part, 1: part._replace(leader=1, isr=(1, 2)), 2: part._replace(leader=2)}
        self.topics = {"t": TopicView("t", uuid.uuid4(), False, of if 2 in brokers else {0: of[0], 1: of[1]})}

    async def list_topics(self, *, internal: bool) -> dict[str, TopicView]:
        return self.topics

    async def describe_cluster(self) -> ClusterDescription:
        return self.cluster

    async def list_groups(self, *, broker_ids: list[int]) -> list[GroupListing]:
        if broker_ids == [2]:
            if self.hangs:
                await asyncio.Event().wait()
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "connection refused")
        return [GroupListing("billing", "consumer", "Empty", "classic")]

    async def offsets(self, wanted: dict[TopicPartition, str], *, known_only: bool) -> dict[TopicPartition, int]:
        return {tp: 5 for tp in wanted if tp.partition != 2}

    async def group_offsets(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        return {TopicPartition("t", number): OffsetAndMetadata(2) for number in (1, 2)}

    async def lags(self, committed: dict[TopicPartition, int]) -> dict[TopicPartition, Lag]:
        return {tp: Lag(0, 5, 5 - offset, 1.5) for tp, offset in committed.items()}


def looked(admin: Any, *, silent: Collection[int] = (), metrics: tuple[str, ...] = ()) -> ClusterLook:
    return asyncio.run(look(admin, metrics, internal=False, needs_metrics=False, silent=silent))


def test_a_broker_that_is_away_is_shown_and_its_metrics_do_not_end_the_view() -> None:
    now = looked(Half((1,), hangs=False), metrics=("http://127.0.0.1:1/metrics",))
    assert now.ends == {TopicPartition("t", 1): 5}
    view = view_of(now, now)
    assert [*_what_is_wrong(view)] == [
        "away: broker 2",
        "1 partition without a leader",
        "1 partition with replicas that are not in sync",
        "http://127.0.0.1:1/metrics cannot be read: [Errno 111] Connection refused",
    ]


def test_a_broker_that_hangs_is_named_and_the_others_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "ANSWER_S", 0.1)
    monkeypatch.setattr(looking, "AGAIN_S", 0.05)
    hanging = Half((1, 2), hangs=True)
    now = looked(hanging)
    assert now.groups == {"billing": SummedLag("Empty", 2, 3, 1.5)} and now.silent == {2}
    left_out = "its groups and the ends of 1 partition are left out"
    assert now.unread == (f"broker 2 did not answer within 0.1 s; {left_out}",)
    again = looked(hanging, silent=now.silent)
    assert again.unread == (f"broker 2 did not answer within 0.05 s; {left_out}",), "it is not waited for again"
    view = view_of(now, again)
    assert view["silent"] == [2] and view["away"] == []
    refusing = looked(Half((1, 2), hangs=False))
    assert refusing.unread == (f"broker 2 did not answer: connection refused; {left_out}",)


def test_a_topic_that_is_deleted_during_a_look_leaves_the_others_in_it() -> None:
    class Deleting(Half):
        async def list_topics(self, *, internal: bool) -> dict[str, TopicView]:
            return {**self.topics}

        async def offsets(self, wanted: dict[TopicPartition, str], *, known_only: bool) -> dict[TopicPartition, int]:
            if TopicPartition("gone", 0) in wanted:
                del self.topics["gone"]
                raise UnknownTopicOrPartition("topic gone")
            return await super().offsets(wanted, known_only=known_only)

    admin = Deleting((1,), hangs=False)
    admin.topics["gone"] = TopicView("gone", uuid.uuid4(), False, {0: PartitionView(1, 1, (1,), (1,))})
    now = looked(admin)
    assert now.ends == {TopicPartition("t", 1): 5} and not now.unread and not now.silent


def test_groups_beyond_the_first_hundred_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Crowded(Half):
        async def list_groups(self, *, broker_ids: list[int]) -> list[GroupListing]:
            return [GroupListing(name, "consumer", "Empty", "classic") for name in ("c", "a", "b")]

    monkeypatch.setattr(looking, "GROUPS_MAX", 2)
    now = looked(Crowded((1,), hangs=False))
    assert now.groups.keys() == {"a", "b"}
    assert now.unread == ("only the first 2 groups by name are looked at: 1 more",)


def test_groups_whose_lag_takes_long_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Half):
        async def lags(self, committed: dict[TopicPartition, int]) -> dict[TopicPartition, Lag]:
            await asyncio.Event().wait()
            return {}

    monkeypatch.setattr(looking, "ANSWER_S", 0.05)
    now = looked(Slow((1,), hangs=False))
    assert now.groups == {"billing": SummedLag("Empty", 2, 3, None)}, "records are known without their times"
    assert now.unread == ("the lag of 1 group could not be read within 0.05 s",)
