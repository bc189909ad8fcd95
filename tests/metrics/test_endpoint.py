"""The endpoint: what it answers, in which format, and to whom it answers nothing."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from harness.patience import within
from moldau import Producer
from moldau.config import broker_config
from moldau.errors import CannotListen, ConfigError
from moldau.metrics import collecting, text_server
from moldau.metrics.collecting import Collecting
from moldau.metrics.endpoint import accepts_gzip
from moldau.metrics.snapshot import Snapshot
from moldau.metrics.text_server import HttpQuestion, HttpText, TextServer, plain, question_in
from moldau.testing import Broker
from tests.handlers.living import Living, run
from tests.metrics.scraping import exchanged, get, samples, value
from tests.metrics.traffic import GROUP, READ, RECORDS, TOPIC, some_traffic

MEASURED = {"metrics_port": 0, "metrics_host": "127.0.0.1"}


def port_of(alive: Living) -> int:
    assert alive.broker.metrics is not None
    return alive.broker.metrics.port


def test_a_client_that_prefers_open_metrics_gets_it_and_its_parser_reads_all(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await some_traffic(alive)
        answer = await get(port_of(alive), accept="application/openmetrics-text; version=1.0.0")
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        families = {family.name: family for family in text_string_to_metric_families(answer.text)}
        assert families["kafka_server_brokertopicmetrics_bytesin"].type == "counter"
        assert families["moldau_request_duration_seconds"].type == "histogram"

    run(scenario, tmp_path, **MEASURED)


def test_a_compressed_scrape_has_the_same_samples(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        plain, zipped = await get(port_of(alive)), await get(port_of(alive), accept_encoding="gzip, deflate")
        assert zipped.headers["content-encoding"] == "gzip"
        assert len(zipped.body) < len(plain.body) / 2
        assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert {one.name for one in samples(plain.text)} == {one.name for one in samples(zipped.text)}

    run(scenario, tmp_path, **MEASURED)


def test_a_request_is_counted_with_its_time_also_one_that_waited(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await some_traffic(alive)
        found = samples((await get(port_of(alive))).text)
        counts = {one.labels["api"]: one.value for one in found if one.name == "moldau_request_duration_seconds_count"}
        asked = {
            one.labels["request"]: one.value
            for one in found
            if one.name == "kafka_network_requestmetrics_requests_total"
        }
        waiting = asked.pop("Fetch") - counts.pop("Fetch")  # the consumer has left one
        assert waiting in (0, 1)
        assert counts == asked
        assert {"Produce", "Metadata", "OffsetCommit", "EndTxn"} <= set(counts)

    run(scenario, tmp_path, **MEASURED)


def test_the_names_of_kminion_replace_the_others_or_join_them(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await some_traffic(alive)
        found = samples((await get(port_of(alive))).text)
        names = {one.name for one in found}
        assert "kafka_brokers" not in names
        assert "moldau_broker_info" in names
        group = {"group_id": GROUP, "topic_name": TOPIC}
        assert value(found, "kminion_kafka_consumer_group_topic_lag", **group) == RECORDS - READ
        assert (
            value(found, "kminion_kafka_consumer_group_topic_partition_lag", **group, partition_id=0) == RECORDS - READ
        )
        assert (
            value(found, "kminion_kafka_topic_partition_high_water_mark", topic_name=TOPIC, partition_id=0) == RECORDS
        )
        (info,) = [one.labels for one in found if one.name == "kminion_kafka_cluster_info"]
        assert set(info) == {"broker_count", "cluster_id", "cluster_version", "controller_id"}

    run(scenario, tmp_path, **MEASURED, metrics_names="kminion")
    with pytest.raises(ConfigError, match=r"metrics\.names"):
        broker_config({"metrics.names": "redpanda"})


def test_a_topic_that_is_deleted_during_a_scrape_ends_no_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paced = collecting.ReadingPace.paced

    async def scenario(alive: Living) -> None:
        topics = alive.broker.cluster.topics
        for name in ("first", "second"):
            await alive.make(name)

        async def deleting(pace: collecting.ReadingPace, items: Iterable[Any]) -> AsyncIterator[Any]:
            """Between two turns of the scrape."""
            async for item in paced(pace, items):
                if collects and "second" in alive.broker.cluster.image.topics and item.name == "first":
                    await topics.delete([("second", None)])
                yield item

        async def collecting_cluster(self: Collecting, *given: Any) -> None:
            collects.append(1)
            await collect(self, *given)
            collects.clear()

        collects, collect = list[int](), Collecting._cluster
        monkeypatch.setattr(Collecting, "_cluster", collecting_cluster)
        monkeypatch.setattr(collecting.ReadingPace, "paced", deleting)
        answer = await get(port_of(alive))
        assert answer.status == 200 and 'kafka_topic_partitions{topic="first"} 1' in answer.text
        assert 'kafka_topic_partitions{topic="second"}' not in answer.text

    run(scenario, tmp_path, **MEASURED)


def test_scrapes_that_wait_share_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, snapshot = [], Collecting.snapshot

    async def counted(self: Collecting, *, is_whole: bool = True) -> Snapshot:
        made.append(1)
        return await snapshot(self, is_whole=is_whole)

    monkeypatch.setattr(Collecting, "snapshot", counted)

    async def scenario(alive: Living) -> None:
        metrics = alive.broker.metrics
        assert metrics is not None
        texts = await asyncio.gather(*(metrics.scrape() for _ in range(20)))
        assert len(set(texts)) == 2
        assert len(made) == 2  # the first one had begun before the others came
        await metrics.scrape()
        assert len(made) == 3

    run(scenario, tmp_path, **MEASURED)


def test_families_that_are_named_come_alone_and_those_of_requests_look_at_no_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(alive: Living) -> None:
        await some_traffic(alive)
        both = (
            "/metrics?name[]=moldau_request_duration_seconds&name%5B%5D=kafka_server_brokertopicmetrics_bytesin_total"
        )
        found = {one.name for one in samples((await get(port_of(alive), both)).text)}
        assert {name.rpartition("_")[0] for name in found} == {
            "moldau_request_duration_seconds", "kafka_server_brokertopicmetrics_bytesin",
        }  # fmt: skip
        monkeypatch.delattr(Collecting, "_groups")
        monkeypatch.setattr("moldau.metrics.collecting._partition", None)
        found = {one.name for one in samples((await get(port_of(alive), both.partition("&")[0])).text)}
        assert {name.rpartition("_")[0] for name in found} == {"moldau_request_duration_seconds"}

    run(scenario, tmp_path, **MEASURED)


def test_requests_over_tls_and_after_a_login_are_measured_too() -> None:
    with Broker(tls=True, users={"ann": "secret"}, metrics_port=0, metrics_host="127.0.0.1") as broker:
        with Producer(
            **{name.replace(".", "_"): one for name, one in broker.client_settings("ann").items()}
        ) as producer:
            producer.send("orders", "x").result(timeout=30)
        with urlopen(broker.metrics_url, timeout=30) as answer:
            found = samples(answer.read().decode())
        counts = {one.labels["api"]: one.value for one in found if one.name == "moldau_request_duration_seconds_count"}
        assert counts["Produce"] == 1
        assert counts["SaslAuthenticate"] >= 2
        assert value(found, "kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == 1


def test_a_broker_without_metrics_loads_none_of_it() -> None:
    parts = ("moldau.metrics", "moldau.net.measured")
    program = f"import sys, moldau.process; sys.exit(any(name.startswith({parts}) for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_other_paths_and_methods_are_refused(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        port = port_of(alive)
        assert (await get(port, "/")).status == 404
        assert (await get(port, "/metrics?name[]=x")).status == 200
        head = await get(port, method="HEAD")
        assert (head.status, head.body) == (200, b"")
        assert int(head.headers["content-length"]) > 1000
        posted = await get(port, method="POST")
        assert (posted.status, posted.headers["allow"]) == (405, "GET, HEAD")
        assert (await exchanged(port, b"nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
        assert await exchanged(port, b"GET /metrics HTTP/1.1\r\nx: " + bytes(20_000)) == b""

    run(scenario, tmp_path, **MEASURED)


def test_a_broker_without_the_setting_listens_for_none(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        assert alive.broker.metrics is None
        assert alive.broker.server.times is None

    run(scenario, tmp_path)
    with pytest.raises(ConfigError, match=r"metrics\.port"):
        broker_config({"metrics.port": "70000"})


def test_a_port_in_use_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        server = TextServer(_hello)
        with pytest.raises(CannotListen, match="in use"):
            await server.start("127.0.0.1", port_of(alive))

    run(scenario, tmp_path, **MEASURED)


async def _hello(_: HttpQuestion) -> HttpText:
    return plain(200, "hello")


def test_too_many_connections_are_told_so_and_a_slow_one_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_server, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(text_server, "HEAD_S", 0.2)

    async def scenario() -> None:
        server = TextServer(_hello)
        await server.start("127.0.0.1", 0)
        slow = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        assert (await get(server.port)).status == 503
        for reader, writer in slow:
            assert await reader.read() == b""
            writer.close()
        assert (await get(server.port)).status == 200
        await server.stop()

    asyncio.run(within(scenario()))


def test_an_answer_that_fails_is_an_error_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: HttpQuestion) -> HttpText:
        raise RuntimeError("a bug")

    async def scenario() -> None:
        server = TextServer(fail)
        await server.start("127.0.0.1", 0)
        answer = await get(server.port)
        assert answer.status == 500
        assert b"a bug" not in answer.body
        await server.stop()

    asyncio.run(within(scenario()))
    assert "/metrics cannot be answered" in caplog.text


def test_a_request_is_read_or_refused() -> None:
    method, asked = question_in(b"GET /metrics?a=b HTTP/1.1\r\nAccept: x\r\nACCEPT-Encoding:  gzip ") or ("", None)
    assert (method, asked) == ("GET", HttpQuestion("/metrics", {"accept": "x", "accept-encoding": "gzip"}, "a=b"))
    for wrong in (b"", b"GET /", b"GET / HTTP/2", b"GET metrics HTTP/1.1", b"GET / HTTP/1.1\r\nno colon", b"\xff\x00"):
        assert question_in(wrong) is None
    assert accepts_gzip("deflate, GZIP;q=0.5")
    assert not accepts_gzip("gzip;q=0, br")
    assert not accepts_gzip("")
