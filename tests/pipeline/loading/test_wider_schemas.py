"""A schema in the registry becomes wider: no record is rejected. Iceberg's table is widened by the load, Delta's by
`widen`, which the load names; it adds nothing until then."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.small_registry import SmallRegistry
from moldau.client.producing.producer import Producer
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.loading.load import load
from moldau.pipeline.loading.settings import Settings
from moldau.pipeline.loading.widening import widen
from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.tables.warehouse import Warehouse
from tests.pipeline.loading import test_decoded, test_iceberg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., str]
BEYOND = 3_000_000_000


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SmallRegistry() as small:
        yield SchemaRegistry(small.url)


def produce(bootstrap: str, registry: SchemaRegistry, topic: str, number: str, fraction: str, value: int) -> None:
    place = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": fraction}]}
    fields = [{"name": "n", "type": number}, {"name": "place", "type": place}]
    schema = {"type": "record", "name": "Event", "fields": fields}
    with Producer(bootstrap, value_serializer=AvroSerializer(registry, schema)) as producer:
        producer.send(topic, {"n": value, "place": {"x": 0.5}})


@pytest.mark.parametrize(
    "iceberg", [pytest.param(False, id="delta"), pytest.param(True, marks=pytest.mark.check, id="iceberg")]
)
def test_int_becomes_long_and_float_double_and_nothing_is_rejected(
    spark: "SparkSession", bootstrap: str, new_topic: NewTopic, registry: SchemaRegistry, tmp_path: Path, iceberg: bool
) -> None:
    topic, delta = new_topic(), Warehouse(tmp_path)
    warehouse: Any = test_iceberg.warehouse_in(tmp_path) if iceberg else delta
    settings = Settings(decoding=Decoding("avro", "", registry))

    def once() -> tuple[int, int]:
        loaded = load(lambda: spark, bootstrap, [topic], warehouse, settings)
        return loaded.records, loaded.rejected

    produce(bootstrap, registry, topic, "int", "float", 1)
    assert once() == (1, 0)
    produce(bootstrap, registry, topic, "long", "double", BEYOND)
    if not iceberg:
        for _ in range(2):
            with pytest.raises(TableError, match=rf"widen .*/{topic} n=long place\.x=double', then load again"):
                once()
        widen(delta.place(topic), {"n": "long", "place.x": "double"})
    assert once() == (1, 0)
    produce(bootstrap, registry, topic, "int", "float", 2)
    assert once() == (1, 0), "the narrower schema goes on loading"
    if iceberg:
        found = test_iceberg.rows(test_iceberg.table_in(tmp_path, topic), "n", "place")
    else:
        found = test_decoded.rows(delta.table(topic), "n", "place")
    assert [row[-2:] for row in found] == [(n, {"x": 0.5}) for n in (1, BEYOND, 2)]
