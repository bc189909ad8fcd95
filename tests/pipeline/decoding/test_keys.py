"""Keys as columns: names, nulls, keys that cannot be decoded, schemas of a registry, inference and evolution."""

import json
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.errors import ConfigError
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.keys import KeyedDecoder, with_keys
from moldau.pipeline.tables.columns import WHY
from tests.pipeline.decoding.fetching import RECORD_MS
from tests.pipeline.decoding.fetching import sample as as_sample

Pairs = Sequence[tuple[bytes | None, bytes | None]]
NONE = Decoding()


def keys_of(kind: str, schema: str = "", registry: SchemaRegistry | None = None) -> Decoding:
    return Decoding(kind, schema, registry, of="key")


def decoder(keys: Decoding, values: Decoding = NONE, known: pa.Schema | None = None, given: Pairs = ()) -> KeyedDecoder:
    def sample(of: str) -> Iterable[Sampled]:
        return as_sample([one for pair in given if (one := pair[of == "value"]) is not None])

    made: KeyedDecoder = pickle.loads(pickle.dumps(with_keys("t", values, keys, sample, known)))
    return made


def decoded(made: KeyedDecoder, given: Pairs) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The rows without the record's columns, and the reasons of the others by index."""
    count = len(given)
    batch = pa.RecordBatch.from_pydict(
        {
            "value": pa.array([value for _, value in given], pa.binary()),
            "_key": pa.array([key for key, _ in given], pa.binary()),
            "_partition": pa.array([3] * count, pa.int32()),
            "_offset": pa.array(range(count), pa.int64()),
            "_timestamp": pa.array([RECORD_MS * 1000] * count, pa.timestamp("us", "UTC")),
        }
    )
    good, bad = made.decode(batch)
    good.validate(full=True)
    bad.validate(full=True)
    assert good.schema.names == [*made.schema.names, *made.keys.names, "_partition", "_offset", "_timestamp"]
    assert good.schema.types[: len(made.schema) + len(made.keys)] == [*made.schema.types, *made.keys.types]
    assert bad.schema.names == [*batch.schema.names, *WHY.names]
    assert sorted(good["_offset"].to_pylist() + bad["_offset"].to_pylist()) == list(range(count))
    rejected = bad.to_pylist()
    assert [(one["_key"], one["value"]) for one in rejected] == [given[one["_offset"]] for one in rejected]
    rows = good.select([*made.schema.names, *made.keys.names]).to_pylist()
    return rows, {one["_offset"]: one["reason"] for one in rejected}


def test_text_is_the_column_key_and_values_stay_as_they_are() -> None:
    given: Pairs = [(b"a", b"\xff"), (None, b"v"), (b"\xff", b"w"), (b"", None)]
    rows, reasons = decoded(decoder(keys_of("text")), given)
    assert rows == [{"value": b"\xff", "_key": "a"}, {"value": b"v", "_key": None}, {"value": None, "_key": ""}]
    assert reasons == {2: "the key is not UTF-8: invalid start byte at byte 0"}


def test_fields_of_a_key_are_columns_that_no_field_of_a_value_shares() -> None:
    made = decoder(keys_of("json", "id BIGINT, `a b` STRING"), Decoding("json", "id INT, _key_id STRING, _key STRING"))
    assert made.schema.names == ["id", "__key_id", "_key_"] and made.keys.names == ["_key_id", "_key_a_b"]
    given: Pairs = [
        (b'{"id": 1, "a b": "x"}', b'{"id": 2, "_key_id": "y", "_key": "z"}'), (b'{"id": "x"}', b"{}"),
        (b'{"id": 3}', b"{"), (b"5", b"{}"), (None, b'{"id": 4}'), (b"{}", None),
    ]  # fmt: skip
    rows, reasons = decoded(made, given)
    assert [tuple(row.values()) for row in rows] == [
        (2, "y", "z", 1, "x"), (4, None, None, None, None), (None, None, None, None, None),
    ]  # fmt: skip
    assert list(reasons) == [1, 2, 3]
    assert (
        reasons[1] == 'key: field id is the text "x", not a whole number of 64 bits'
        and "the value is not JSON" in reasons[2]
    )
    assert reasons[3] == "the key is the number 5, not a JSON object"


def test_inferred_columns_of_keys_and_values_grow_apart() -> None:
    first: Pairs = [(b'{"id": 1}', b'{"id": "x"}')]
    made = decoder(keys_of("json"), Decoding("json"), None, first)
    assert [*made.schema.names, *made.keys.names] == ["id", "_more", "_key_id", "_key__more"]
    known = pa.schema([*made.schema, *made.keys, pa.field("_offset", pa.int64())])
    given: Pairs = [(b'{"id": 2, "region": "eu"}', b'{"_key_id": 5}'), (b'{"id": 2.5}', b"{}")]
    grown = decoder(keys_of("json"), Decoding("json"), known, [*given[:1]])
    assert grown.schema.names == ["id", "__key_id", "_more"]
    assert grown.keys.names == ["_key_id", "_key_region", "_key__more"]
    rows, reasons = decoded(grown, given)
    assert rows == [{"id": None, "__key_id": 5, "_more": None, "_key_id": 2, "_key_region": "eu", "_key__more": None}]
    assert reasons == {1: "key: field id is the number 2.5, not a whole number of 64 bits"}
    with pytest.raises(ConfigError, match="none of its first keys is a JSON object"):
        decoder(keys_of("json"), NONE, None, [(b"5", b"{}")])


def test_a_column_of_a_key_keeps_its_type() -> None:
    made = decoder(keys_of("json", "id DOUBLE"), NONE, pa.schema([("_key_id", pa.int32())]))
    assert made.keys == pa.schema([("_key_id", pa.int32())])
    rows, reasons = decoded(made, [(b'{"id": 7}', b"v"), (b'{"id": 7.5}', b"w")])
    assert rows == [{"value": b"v", "_key_id": 7}] and "cannot hold exactly" in reasons[1]


def test_avro_keys_are_records_or_single_values() -> None:
    record = {"type": "record", "name": "K", "fields": [{"name": "value", "type": "long"}]}
    with SmallRegistry() as small:
        registry = SchemaRegistry(small.url)
        for topic, schema, key, column in (
            ("t", record, {"value": 7}, {"_key_value": 7}),
            ("u", ["null", "long"], 7, {"_key": 7}),
            ("v", "string", "x", {"_key": "x"}),
        ):
            key_bytes = AvroSerializer(registry, json.dumps(schema)).for_topic(topic, "key")(key)
            keys = keys_of("avro", json.dumps(schema), registry)
            rows, reasons = decoded(decoder(keys), [(key_bytes, b"v"), (b"k", None), (None, None)])
            assert rows == [{"value": b"v", **column}, {"value": None, **dict.fromkeys(column)}]
            assert list(reasons) == [1] and reasons[1].startswith("key: ")
        with pytest.raises(ConfigError, match=r"no subject w-key, .* give --key-schema"):
            with_keys("w", NONE, keys_of("json", "", registry), list)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [(keys_of("yaml"), "--decode-key 'yaml' is none of none, text, json, avro"),
     (keys_of("avro"), "--decode-key avro needs --schema-registry: keys begin with the id"),
     (keys_of("text", "a INT"), "--key-schema and --schema-registry do not go with --decode-key text")],
)  # fmt: skip
def test_options_that_cannot_be_are_one_sentence(keys: Decoding, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        keys.check()
