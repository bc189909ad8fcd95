"""Times of Avro: each unit at any depth, and numbers that no calendar has."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.pipeline.decoding.event_times import TIMESTAMP, US_MAX, US_MIN
from tests.pipeline.decoding.fetching import decoded, why
from tests.pipeline.decoding.test_avro_values import decoder

NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 1000, tzinfo=datetime.UTC)
FIRST = datetime.datetime(1, 1, 1, tzinfo=datetime.UTC)
LAST = datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
MS = {"type": "long", "logicalType": "timestamp-millis"}
US = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
DATE = {"type": "int", "logicalType": "date"}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SmallRegistry() as small:
        yield SchemaRegistry(small.url)


def written(registry: SchemaRegistry, **fields: Any) -> Any:
    """What makes records with these fields of topic t: times are given as the numbers that are written."""
    named = [{"name": name, "type": kind} for name, kind in fields.items()]
    return AvroSerializer(registry, {"type": "record", "name": "R", "fields": named}).for_topic("t", "value")


def test_every_unit_becomes_microseconds_at_any_depth(registry: SchemaRegistry) -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "ms", "type": MS}, {"name": "day", "type": DATE}]}
    kinds: dict[str, Any] = {
        "ms": ["null", MS], "local": LOCAL, "us": US, "day": DATE, "map": ["null", {"type": "map", "values": inner}],
        "list": ["null", {"type": "array", "items": ["null", {"type": "array", "items": ["null", "In"]}]}],
    }  # fmt: skip
    serialize, made = written(registry, **kinds), decoder(registry, "t")
    assert [made.schema.field(name).type for name in ("ms", "local", "us")] == [TIMESTAMP] * 3
    row = {"ms": NOON, "day": NOON.date()}
    full: dict[str, Any] = {
        "ms": NOON, "local": NOON.replace(tzinfo=None), "us": NOON, "day": NOON.date(), "map": {"k": row},
        "list": [None, [None, row], []],
    }  # fmt: skip
    empty = full | {"ms": None, "map": None, "list": None}
    rows, reasons = decoded(made, [serialize(full), serialize(empty), None, serialize(full)])
    assert not reasons and rows[0] == rows[3] == full | {"local": NOON, "map": [("k", row)]}
    assert rows[1] == empty | {"local": NOON} and set(rows[2].values()) == {None}


@pytest.mark.parametrize("nested", [False, True])
def test_a_time_outside_of_the_calendar_rejects_its_record_alone(registry: SchemaRegistry, nested: bool) -> None:
    more = {"l": {"type": "array", "items": MS}} if nested else {}
    serialize, made = written(registry, ms=["null", MS], us=US, day=DATE, **more), decoder(registry, "t")
    bounds = {"ms": (US_MIN // 1000, US_MAX // 1000), "us": (US_MIN, US_MAX), "day": (-719_162, 2_932_896)}
    good: dict[str, Any] = {"ms": None, "us": 0, "day": 0} | {name: [] for name in more}
    values = [good | {name: least} for name, (least, _) in bounds.items()]
    values += [good | {name: greatest} for name, (_, greatest) in bounds.items()]
    values += [good | {name: least - 1} for name, (least, _) in bounds.items()]
    values += [good | {name: greatest + 1} for name, (_, greatest) in bounds.items()]
    values += [good | {"ms": 1 << 62}, good | {name: [1 << 62] for name in more or ["us"]} | {"us": 1 << 62}, good]
    rows, reasons = decoded(made, [serialize(value) for value in values])
    assert list(reasons) == list(range(6, 14)) and len(rows) == 7
    assert rows[0]["ms"] == FIRST and rows[4]["us"] == LAST and rows[5]["day"] == LAST.date()
    assert why(made, serialize(good | {"ms": 1 << 62}))[:2] == ("wrong_avro", "ms")
    assert reasons[6] == "field ms has a time outside of the years 1 to 9999"
