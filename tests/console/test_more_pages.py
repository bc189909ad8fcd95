"""Transactions, access rights, quotas, schemas, moves and plots: what the pages show, and what their forms change."""

import json
import re
from collections.abc import Iterator

import pytest

from moldau import Admin, Producer, TopicPartition
from moldau.console.asking import cluster_admin, request_times
from moldau.console.asking.throughput import GrowthLook, growth
from moldau.console.settings import ConsoleSettings
from moldau.serializers import Schema, SchemaRegistry
from moldau.testing import Broker, Cluster, RunningRegistry
from tests.console.browser import ScreenlessBrowser
from tests.console.conftest import served
from tests.console.test_guarded import logged_in
from tests.raw_transactions import Producer as OldProducer

HOUR_MS = 3_600_000


def test_transactions_are_listed_with_their_partitions(browser: ScreenlessBrowser, broker: Broker) -> None:
    broker.create_topic("sold", 1)
    with Producer(broker.address, transactional_id="till/1") as producer:
        with producer.transaction():
            producer.send("sold", b"1").result()
            listed = browser.get("/transactions")
            assert "till/1" in listed.text and "Ongoing" in listed.text
            one = browser.get("/transactions/till%2F1")
            assert "sold" in one.text and "Open for" in one.text
    assert "till/1" in browser.get("/transactions?state=CompleteCommit").text
    assert "till/1" not in browser.get("/transactions?q=other").text
    assert browser.get("/transactions/none").status in (400, 404)


def test_a_hanging_transaction_is_found_and_aborted() -> None:
    """One that an old client has begun, and of which no coordinator knows."""
    with Broker({"transaction.partition.verification.enable": "false"}) as broker:
        broker.create_topic(".sold", 1)
        hanging = OldProducer(broker.address, None)
        hanging.write(".sold", 0, age_ms=2 * HOUR_MS, version=9)
        for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0)):
            with ScreenlessBrowser(url) as browser:
                assert "Find hanging ones" in browser.get("/transactions").text
                assert "No transaction hangs" in browser.get("/hanging?topic=.sold&minutes=130").text
                assert browser.get("/hanging?topic=none").status == 400
                page = browser.get("/hanging?topic=.sold")
                assert f"{hanging.producer_id}, epoch 0" in page.text
                place = {"topic": ".sold", "partition": "0", "minutes": "15"}
                assert browser.post("/hanging/abort", {**place, "offset": "7"}).status == 400
                done = browser.post("/hanging/abort", {**place, "offset": "0"})
                assert "was aborted" in done.text and "No transaction hangs" in done.text
                assert browser.post("/hanging/abort", {**place, "offset": "0"}).status == 400
        hanging.close()


def test_a_setting_of_a_broker_is_changed_while_it_runs(browser: ScreenlessBrowser) -> None:
    (broker_id,) = set(re.findall(r'href="/brokers/(\d+)"', browser.get("/brokers").html))
    browser.get(f"/brokers/{broker_id}")
    path = f"/brokers/{broker_id}/settings"
    setting = {"setting": "log.cleaner.threads"}
    assert "log.cleaner.threads 2 broker" in browser.post(path, {**setting, "value": "2"}).text
    assert "log.cleaner.threads 1 default" in browser.post(path, {**setting, "reset": "1"}).text
    wrong = browser.post(path, {**setting, "value": "many"})
    assert wrong.status == 400 and "log.cleaner.threads" in wrong.text
    assert browser.post(path, {"setting": "broker.id", "value": "7"}).status == 400


def test_quotas_are_set_and_removed(browser: ScreenlessBrowser, broker: Broker) -> None:
    browser.get("/quotas")
    quota = {"user": "ann", "client-id": "<default>", "ip": "", "key": "producer_byte_rate"}
    assert "ann <default> – producer_byte_rate 5,000" in browser.post("/quotas", {**quota, "value": "5000"}).text
    with Admin(broker.address) as admin:
        assert admin.describe_client_quotas() == {(("user", "ann"), ("client-id", None)): {"producer_byte_rate": 5e3}}
    for wrong in (
        {"value": "-1"},
        {"value": "much"},
        {"value": "1", "key": "x"},
        {"value": "1", "user": "", "client-id": ""},
    ):
        assert browser.post("/quotas", {**quota, **wrong}).status == 400, wrong
    assert "producer_byte_rate 5,000" not in browser.post("/quotas", {**quota, "value": ""}).text


def test_without_an_authorizer_the_page_of_rights_says_so(browser: ScreenlessBrowser) -> None:
    assert "No access rights to show" in browser.get("/acls").text


def test_rights_are_added_and_removed() -> None:
    with Broker({"super.users": "User:admin"}, users={"admin": "admin-secret"}, acls=[]) as broker:
        for url in served(ConsoleSettings(broker.client_settings("admin"), "127.0.0.1", 0)):
            with logged_in(url, "admin", "admin-secret") as browser:
                assert "No access rights yet" in browser.get("/acls").text
                right = {
                    "principal": "User:<b>", "permission": "allow", "operation": "read", "resource_type": "topic",
                    "pattern": "prefixed", "resource": "orders", "host": "",
                }  # fmt: skip
                added = browser.post("/acls", right)
                assert "User:<b> allow read topic orders…" in added.text and "<b>" not in added.html
                assert browser.post("/acls", {**right, "operation": "fly"}).status == 400
                assert browser.post("/acls", {**right, "principal": "nobody"}).status == 400
                gone = browser.post("/acls/remove", {**right, "host": "*"})
                assert "No access rights yet" in gone.text


def test_schemas_have_versions_and_text(broker: Broker) -> None:
    with RunningRegistry(broker) as running:
        registry = SchemaRegistry(running.url)
        registry.register("a/b-value", Schema('{"type": "record", "name": "River", "fields": []}'))
        for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0, registry=registry)):
            with ScreenlessBrowser(url) as browser:
                assert "a/b-value" in browser.get("/schemas").text
                assert '"name": "River"' in browser.get("/schemas/a%2Fb-value").text
                assert browser.get("/schemas/none").status == 404
                assert browser.get("/schemas/a%2Fb-value?version=9").status == 404
                assert browser.get("/schemas/a%2Fb-value?version=x").status == 404


def test_two_versions_of_a_schema_are_compared(broker: Broker) -> None:
    with RunningRegistry(broker) as running:
        registry = SchemaRegistry(running.url)
        registry.set_compatibility("NONE", "lakes-value")
        name, km = '{"name": "name", "type": "string"}', '{"name": "<km>", "type": "int"}'.replace("<km>", "km")
        for fields in (name, f"{name}, {km}"):
            registry.register("lakes-value", Schema(f'{{"type": "record", "name": "Lake", "fields": [{fields}]}}'))
        registry.set_compatibility("BACKWARD", "lakes-value")
        for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0, registry=registry)):
            with ScreenlessBrowser(url) as browser:
                assert "Compare version" in browser.get("/schemas/lakes-value").text
                page = browser.get("/schemas/lakes-value/compare?from=1&to=2")
                assert '<span class="added">+       &#34;name&#34;: &#34;km&#34;' in page.html, page.html
                assert "not compatible" in page.text and "version 1" in page.text
                back = browser.get("/schemas/lakes-value/compare?from=2&to=1")
                assert "is compatible" in back.text and 'class="removed"' in back.html
                assert browser.get("/schemas/lakes-value/compare?from=x").status == 404
                assert browser.get("/schemas/lakes-value/compare?to=9").status == 404


def test_without_a_registry_the_page_of_schemas_says_so(browser: ScreenlessBrowser) -> None:
    assert "--schema-registry" in browser.get("/schemas").text
    assert browser.get("/schemas/any").status == 404


def test_what_plots_are_drawn_from(browser: ScreenlessBrowser, broker: Broker) -> None:
    broker.create_topic("pulse", 2)
    assert json.loads(browser.get("/topics/pulse/pulse").html) == {"records": 0, "bytes": 0}
    with Producer(broker.address) as producer:
        producer.send("pulse", b"1").result()
    after = json.loads(browser.get("/topics/pulse/pulse").html)
    assert after["records"] == 1 and after["bytes"] > 60
    (took_ms,) = json.loads(browser.get("/pulse").html).values()
    assert took_ms > 0


def test_times_of_requests_come_from_the_metrics_of_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_times, "EACH_S", 0.0)
    with Broker(metrics_port=0, metrics_host="127.0.0.1") as broker:
        urls = (broker.metrics_url, "http://127.0.0.1:1/metrics")
        for url in served(ConsoleSettings(broker.client_settings(), "127.0.0.1", 0, metrics=urls)):
            with ScreenlessBrowser(url) as browser, Producer(broker.address) as producer:
                assert 'data-of="p99 *"' in browser.get("/").html
                assert json.loads(browser.get("/pulse/requests").html) == {}
                producer.send("timed", b"1").result()
                times = json.loads(browser.get("/pulse/requests").html)
                assert 0 < times["average Produce"] <= times["p99 Produce"]
                producer.send("timed", b"2").result()
                throughput = json.loads(browser.get("/pulse/throughput").html)
                assert throughput["records in"] > 0 and throughput["bytes in"] > 60 and throughput["bytes out"] == 0
                producer.send("timed", b"3").result()
                table = browser.get("/request-times").text
                assert "Produce" in table and "127.0.0.1:1/metrics cannot be read" in table


def test_without_metrics_the_throughput_is_what_partitions_grow_by(
    browser: ScreenlessBrowser, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Producer(broker.address) as producer:
        producer.send("grows", b"1").result()
        browser.get("/pulse/throughput")
        assert json.loads(browser.get("/pulse/throughput").html) == {"records in": 0, "bytes in": 0}
        producer.send("grows", b"2").result()
        throughput = json.loads(browser.get("/pulse/throughput").html)
        assert throughput["records in"] > 0 and throughput["bytes in"] > 60
    monkeypatch.setattr(cluster_admin, "PARTITIONS_MAX", 0)
    assert json.loads(browser.get("/pulse/throughput").html) == {}


def test_what_was_deleted_or_is_new_does_not_count_as_throughput() -> None:
    one, other, new = (TopicPartition("t", number) for number in range(3))
    before = GrowthLook(10.0, {one: 5, other: 100}, {one: 50, other: 1_000})
    now = GrowthLook(12.0, {one: 9, other: 0, new: 1_000}, {one: 40, new: 10_000})
    assert growth(before, now) == {"records in": 2.0, "bytes in": 0.0}
    assert growth(None, now) == growth(GrowthLook(-100.0, {}, {}), now) == {}


def test_without_metrics_the_overview_says_how_to_get_them(browser: ScreenlessBrowser) -> None:
    page = browser.get("/")
    assert "--metrics URL" in page.text and "/pulse/requests" not in page.html
    assert json.loads(browser.get("/pulse/requests").html) == {}


def test_no_move_is_under_way(browser: ScreenlessBrowser) -> None:
    assert "Nothing is being moved" in browser.get("/moves").text


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(2) as made:
        yield made


@pytest.mark.check
def test_a_move_shows_its_progress_and_is_cancelled(cluster: Cluster) -> None:
    client = {"bootstrap.servers": cluster.bootstrap_servers}
    with Admin(cluster.bootstrap_servers) as admin:
        brokers = sorted(admin.describe_cluster().brokers)
        admin.create_topic("moving", assignment={0: brokers[:1]})
        with Producer(cluster.bootstrap_servers) as producer:
            for _ in range(200):
                producer.send("moving", b"x" * 10_000)
        throttle = {"follower.replication.throttled.rate": "1000", "leader.replication.throttled.rate": "1000"}
        for broker in brokers:
            admin.configs.alter("broker", str(broker), throttle)
        every = {"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
        admin.alter_topic_configs("moving", every)
        from moldau import TopicPartition

        admin.alter_reassignments({TopicPartition("moving", 0): brokers[1:]})
        for url in served(ConsoleSettings(client, "127.0.0.1", 0)):
            with ScreenlessBrowser(url) as browser:
                page = browser.get("/moves")
                assert "moving" in page.text and "of 2." in page.text and "<progress" in page.html
                after = browser.post("/moves/cancel", {"topic": "moving", "partition": "0"})
                assert "was cancelled" in after.text
        assert not admin.list_reassignments()
