"""`moldau top` against a broker, with its metrics."""

from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
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
        assert view["topics"][0] == {"topic": "orders", "partitions": 1, "records_per_second": 0.0, "records": 10}
        group = view["groups"][0]
        assert (group["group"], group["lag"]) == ("billing", 6) and group["lag_seconds"] > 0
        assert {"Metadata", "ListOffsets"} <= {row["api"] for row in view["requests"]}
        shown = offline(*once)
        assert shown.lines[0].endswith("0.0 records/s written") and "cluster " in shown.lines[0]
        assert shown.lines[2].split() == ["TOPIC", "PARTITIONS", "RECORDS", "PER", "SECOND", "RECORDS"]
        assert "is not a URL" in offline(*once, "--metrics", "localhost").error
        refused = offline(*once, "--metrics", "http://127.0.0.1:1/metrics").error
        assert refused == "http://127.0.0.1:1/metrics cannot be read: [Errno 111] Connection refused"
