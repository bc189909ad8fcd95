"""Tables in an object store: an S3 server in a process of its own, written by tasks and committed by the driver."""

import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import polars
import pyarrow
import pytest
from deltalake import DeltaTable

from harness.patience import wait_until
from moldau.names import TopicPartition
from moldau.pipeline.loading.writing import Layout, TableWriter
from moldau.pipeline.table_source.batch import TableReader, schema_of_table
from moldau.pipeline.table_source.options import read_table_options
from moldau.pipeline.tables import committing
from moldau.pipeline.tables.columns import TableError, in_files, of_table
from moldau.pipeline.tables.committing import Conflict
from moldau.pipeline.tables.iceberg_warehouse import IcebergWarehouse
from moldau.pipeline.tables.maintenance import compact
from moldau.pipeline.tables.removals import Lost
from moldau.pipeline.tables.storage import location
from moldau.pipeline.tables.table import Table
from moldau.pipeline.tables.warehouse import Warehouse
from tests.pipeline.loading.upserted import Sent, Upserted
from tests.pipeline.tables.test_readers import commit

pytestmark = pytest.mark.check  # the server is a process of its own, and what imports it takes seconds
TP = TopicPartition("flights", 0)


def batch(start: int, end: int) -> pyarrow.RecordBatch:
    """The records `start` to before `end` of partition 0."""
    values = {"_partition": [0] * (end - start), "_offset": list(range(start, end)), "_timestamp": [1] * (end - start)}
    arrays = [pyarrow.array(values.get(field.name, [None] * (end - start)), field.type) for field in in_files()]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=in_files())


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    """The options of a store with the bucket `lake`."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "import sys; from moto.server import main; main(sys.argv[1:])"]
    server = subprocess.Popen(
        [*command, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def listens() -> bool:
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", port)) == 0

    assert wait_until(listens)
    host = "127.0.0.1"
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys).create_bucket(Bucket="lake")
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
    }  # fmt: skip
    server.kill()
    server.wait()


def test_a_warehouse_by_url_has_every_record_once(store: dict[str, str]) -> None:
    warehouse = Warehouse("s3://lake/kafka", store)
    assert warehouse.topics() == []
    for start in (0, 10, 20):
        commit(warehouse.place("flights"), start, start + 10)
    warehouse.check()
    assert warehouse.topics() == ["flights"]
    delta = DeltaTable("s3://lake/kafka/flights", storage_options=store)
    assert sorted(delta.to_pyarrow_table(columns=["_offset"])["_offset"].to_pylist()) == sorted([*range(30)] * 2)
    table = warehouse.table("flights")
    assert table is not None and table.offsets([TP]) == {TP: 30}
    assert compact(warehouse.place("flights")) == (6, 2)
    rows = polars.scan_delta("s3://lake/kafka/flights", storage_options=store).select("_offset").collect()
    assert rows.height == 60


def test_rows_of_a_key_are_replaced_there_too(store: dict[str, str]) -> None:
    upserted = Upserted(Warehouse("s3://lake/latest", store))
    records = [Sent(0, at, b"k%d" % (at % 3), b"v%d" % at if at != 4 else None, at) for at in range(6)]
    upserted.load([records[:4]])
    assert upserted.load([records[4:]]).deleted == 1
    rows = polars.scan_delta("s3://lake/latest/t", storage_options=store).select("_key", "value").collect().rows()
    assert sorted(rows) == [(b"k0", b"v3"), (b"k2", b"v5")]


def test_tasks_write_an_iceberg_table_with_the_options_of_its_catalog(store: dict[str, str], tmp_path: Path) -> None:
    options = {
        "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": "s3://lake/iceberg", "s3.region": "us-east-1",
        "s3.endpoint": store["AWS_ENDPOINT_URL"], "s3.access-key-id": "key", "s3.secret-access-key": "secret",
    }  # fmt: skip
    warehouse = IcebergWarehouse("test", options, "kafka")
    table = warehouse.create("flights", of_table(in_files(), "date"), "date")
    for start in (0, 10):
        where = pickle.loads(pickle.dumps(table.where))
        writer = TableWriter(Layout(where, in_files(), "date", "_timestamp", "lz4", "iceberg"), f"part-{start}")
        writer.add(batch(start, start + 10))
        committing.commit(table, f"load-{start}", writer.finish(), table.offsets([TP]), {TP: start + 10})
    found = warehouse.table("flights")
    assert found is not None and found.offsets([TP]) == {TP: 20}
    assert sorted(found.scan().to_arrow()["_offset"].to_pylist()) == list(range(20))
    assert found.scan().to_arrow()["_date"].null_count == 0


def test_what_was_removed_from_a_table_by_url_is_known(store: dict[str, str]) -> None:
    place = location("s3://lake/removed/flights", store)
    for start in (0, 10):
        commit(place, start, start + 10)
    delta = DeltaTable(place.uri, storage_options=store)
    delta.restore(1)
    table = Table.open(place)
    assert table is not None
    found = table.removed("flights", {TP: 20})
    assert found is not None and found.operation.startswith("RESTORE in version 3 of ")
    assert found.lost == {0: Lost(10, 10)}
    delta.vacuum(0, enforce_retention_duration=False, dry_run=False)
    table.refresh()
    assert table.removed("flights", {TP: 20}) == found._replace(lost=None), "its files are gone"


def test_spark_reads_a_table_by_url(store: dict[str, str]) -> None:
    commit(location("s3://lake/read/flights", store), 0, 10)
    options = {"table": "s3://lake/read/flights", "columns": "_offset,_date"}
    parsed = read_table_options({**options, **{f"storage.{name.lower()}": value for name, value in store.items()}})
    reader = pickle.loads(pickle.dumps(TableReader(parsed, schema_of_table(parsed))))
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch["_offset"].to_pylist()]
    assert sorted(rows) == sorted([*range(10)] * 2)


def test_of_two_loads_at_once_one_commits(store: dict[str, str]) -> None:
    place = location("s3://lake/race/flights", store)
    commit(place, 0, 10)
    results: list[int | None] = []
    opened = [Table.open(place), Table.open(place)]

    def race(load_id: str, table: Table | None) -> None:
        assert table is not None
        try:
            results.append(table.commit(load_id, [], {TP: 10}, {TP: 20}))
        except Conflict:
            results.append(None)

    threads = [threading.Thread(target=race, args=one) for one in zip(("aa", "bb"), opened, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results, key=str) == [2, None]


def test_a_store_that_is_away_or_refuses_is_said_in_one_sentence(store: dict[str, str]) -> None:
    away = {**store, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "max_retries": "0", "connect_timeout": "1s"}
    for options, bucket in ((away, "lake"), (store, "nowhere")):
        with pytest.raises(TableError, match=f"s3://{bucket}/kafka.* cannot be used: ") as said:
            commit(location(f"s3://{bucket}/kafka/flights", options), 0, 1)
        assert "\n" not in str(said.value) and "\x1b" not in str(said.value)
