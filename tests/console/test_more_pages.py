"""Transactions, access rights, quotas, schemas, moves and plots: what the pages show, and what their forms change."""

import json
from collections.abc import Iterator

import pytest

from moldau import Admin, Producer
from moldau.console.settings import ConsoleSettings
from moldau.serializers import Schema, SchemaRegistry
from moldau.testing import Broker, Cluster, RunningRegistry
from tests.console.browser import ScreenlessBrowser
from tests.console.conftest import served
from tests.console.test_guarded import logged_in


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
