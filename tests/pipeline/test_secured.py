"""Spark on a broker behind TLS and a login: options reach driver and tasks, and secrets are shown nowhere."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import moldau
from harness.certificates import Authority
from moldau import testing
from moldau.admin import Acl
from moldau.client.security.brokers import Brokers, settings_in
from moldau.errors import MoldauError
from moldau.pipeline.loading.load import load
from moldau.pipeline.options import read_options
from moldau.pipeline.sink.options import read_sink_options
from moldau.pipeline.tables.warehouse import Warehouse
from tests.client.security.conftest import authority, login, served, server_certificate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["authority", "login", "served", "server_certificate"]

SECRET = "alice-secret"
SECURITY = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.username": "alice",
    "kafka.sasl.password": SECRET,
}


def test_brokers_carry_the_options_about_security_and_show_none() -> None:
    read = read_options({"bootstrapServers": "a:1", "subscribe": "t", **SECURITY})
    written = read_sink_options({"bootstrapServers": "a:1", "topic": "t", "kafka.linger.ms": "5", **SECURITY})
    for options in (read, written):
        assert SECRET not in repr(options) and "a:1" in repr(options)
        there = pickle.loads(pickle.dumps(options)).bootstrap_servers
        assert there == "a:1" and settings_in(there)["sasl.password"] == SECRET
    assert written.settings == (("linger.ms", "5"),)
    producer = written.producer_settings("x")
    assert (producer.sasl_password, producer.bootstrap_servers, producer.linger_ms) == (SECRET, "a:1", 5)
    plain = read_options({"bootstrapServers": "a:1", "subscribe": "t"}).bootstrap_servers
    assert not isinstance(plain, Brokers)


def test_secrets_of_a_file_stay_in_it(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name.removeprefix('kafka.')}={text}\n" for name, text in SECURITY.items()))
    options = read_options({"bootstrapServers": "a:1", "subscribe": "t", "clientConfig": str(file)})
    assert SECRET.encode() not in pickle.dumps(options)
    assert settings_in(options.bootstrap_servers)["sasl.password"] == SECRET
    won = {"clientConfig": str(file), "kafka.sasl.password": "another"}
    written = read_sink_options({"bootstrapServers": "a:1", "topic": "t", **won})
    assert written.producer_settings("x").sasl_password == "another"


def shown(spark: "SparkSession") -> Iterator[str]:
    """What Spark's pages and event logs show of all queries so far."""
    store: Any = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    for number in range(executions.size()):
        execution = executions.apply(number)
        yield execution.physicalPlanDescription()
        yield execution.details()


@pytest.mark.check
def test_batches_and_streams_go_through_and_no_plan_shows_a_secret(
    spark: "SparkSession", login: str, authority: Authority, tmp_path: Path
) -> None:
    options = {"bootstrapServers": login, "kafka.ssl.ca.location": str(authority.trusted), **SECURITY}
    rows = spark.range(50).selectExpr("cast(id as string) as value")
    rows.write.format("moldau").options(**options).option("topic", "secured").mode("append").save()
    read = spark.read.format("moldau").options(**options).option("subscribe", "secured").load()
    assert {row.value for row in read.select("value").collect()} == {str(number).encode() for number in range(50)}

    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name.removeprefix('kafka.')}={text}\n" for name, text in SECURITY.items()))
    by_file = {
        "bootstrapServers": login, "clientConfig": str(file), "kafka.ssl.ca.location": str(authority.trusted),
    }  # fmt: skip
    stream = spark.readStream.format("moldau").options(**by_file).option("subscribe", "secured")
    query = (
        stream.option("startingOffsets", "earliest").load().select("value")
        .writeStream.format("moldau").options(**options).option("topic", "copied")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    progress = [str(one) for one in query.recentProgress]
    explained = [read._jdf.queryExecution().toString(), query._jsq.explainInternal(True)]
    with moldau.Admin(
        {"bootstrap.servers": login, "ssl.ca.location": str(authority.trusted)}
        | {name.removeprefix("kafka."): text for name, text in SECURITY.items()}
    ) as admin:
        copied = moldau.TopicPartition("copied", 0)
        assert admin.list_offsets({copied: "latest"})[copied].offset >= 50
    files = [path.read_text(errors="replace") for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    texts = [*shown(spark), *progress, *explained, *files]
    assert any("secured" in text or "moldau" in text for text in texts)
    assert not [text for text in texts if SECRET in text]


@pytest.mark.check
def test_a_load_goes_through_and_only_with_the_right_to_read(spark: "SparkSession", tmp_path: Path) -> None:
    rights = [Acl("topic", "secured", "User:alice", operation) for operation in ("read", "write", "create")]
    users = {"alice": SECRET, "eve": "eve-secret"}
    warehouse = Warehouse(tmp_path / "warehouse")
    with testing.Broker(tls=True, users=users, acls=rights) as broker:

        def addresses(user: str) -> Brokers:
            settings = broker.client_settings(user)
            return Brokers(settings.pop("bootstrap.servers"), settings)

        with moldau.Producer(broker.client_settings("alice")) as producer:
            for number in range(500):
                producer.send("secured", b"%d" % number)
        loaded = load(lambda: spark, addresses("alice"), ["secured"], warehouse)
        assert [(one.topic, one.records) for one in loaded.commits] == [("secured", 500)]
        with pytest.raises(MoldauError, match="secured") as denied:
            load(lambda: spark, addresses("eve"), ["secured"], Warehouse(tmp_path / "of eve"))
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not [data for data in files if SECRET.encode() in data]
    assert "eve-secret" not in str(denied.value) and not [text for text in shown(spark) if SECRET in text]
