"""`moldau top` against a broker, with its metrics."""

import uuid
from typing import Any

from moldau.cli.watching.top import _what_is_wrong, look, view_of
from moldau.client.administration.admin import ClusterDescription
from moldau.client.cluster_view import PartitionView, TopicView
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
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


def test_a_broker_that_is_away_is_shown_and_its_metrics_do_not_end_the_view() -> None:
    part = PartitionView(-1, -1, (1, 2), (1,))
    topics = {"t": TopicView("t", uuid.uuid4(), False, {0: part, 1: part._replace(leader=1, isr=(1, 2))})}

    class Half:
        """An admin client of a cluster that has lost a broker."""

        def list_topics(self, *, internal: bool) -> dict[str, TopicView]:
            return topics

        def offsets(self, wanted: dict[TopicPartition, str], *, known_only: bool) -> dict[TopicPartition, int]:
            return dict.fromkeys(wanted, 5)

        def list_groups(self) -> list[object]:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "broker 2 is away")

        def describe_cluster(self) -> ClusterDescription:
            return ClusterDescription("c", 1, {1: Address("h", 1)}, {})

    admin: Any = Half()
    now = look(admin, ["http://127.0.0.1:1/metrics"], internal=False, needs_metrics=False)
    assert now.ends == {TopicPartition("t", 1): 5}
    view = view_of(admin, now, now)
    assert [*_what_is_wrong(view)] == [
        "away: broker 2",
        "1 partition without a leader",
        "1 partition with replicas that are not in sync",
        "the groups cannot be listed: broker 2 is away",
        "http://127.0.0.1:1/metrics cannot be read: [Errno 111] Connection refused",
    ]
