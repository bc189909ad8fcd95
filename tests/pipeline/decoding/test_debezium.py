"""Debezium's envelope: the row of each operation, alone or as a payload, in JSON and Avro, and what is no envelope."""

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import JSON, Schema
from moldau.errors import ConfigError
from moldau.pipeline.decoding.choosing import Decoding, decoder_of, values_of
from moldau.pipeline.decoding.topic_decoder import DELETES, TopicDecoder
from tests.pipeline.decoding.fetching import RECORD_MS, batch, decoded
from tests.pipeline.decoding.fetching import sample as as_sample

DDL = "id BIGINT, name STRING"
ROW = {"id": 1, "name": "a"}


def envelope(op: str, before: Any = None, after: Any = None, *, wrapped: bool = False, **more: Any) -> bytes:
    tree = {"before": before, "after": after, "op": op, "ts_ms": 7, "source": {"db": "x", "lsn": 9}, **more}
    return json.dumps({"schema": {"type": "struct", "fields": []}, "payload": tree} if wrapped else tree).encode()


def decoder(schema: str = DDL, event_time: str = "", known: pa.Schema | None = None, sample: Any = ()) -> TopicDecoder:
    made = decoder_of(
        "t", Decoding("json", schema, None, event_time, envelope="debezium"), lambda: as_sample(sample), known
    )
    found: TopicDecoder = pickle.loads(pickle.dumps(made))
    return found


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_row_of_each_operation_becomes_the_columns(wrapped: bool) -> None:
    new = {"id": 1, "name": "b"}
    values = [
        envelope("r", None, ROW, wrapped=wrapped), envelope("u", ROW, new, wrapped=wrapped), None,
        envelope("d", new, None, wrapped=wrapped), envelope("c", None, {"id": 2}, wrapped=wrapped),
    ] * 4  # fmt: skip
    rows, reasons = decoded(decoder(), values)
    expected = [{**ROW, "__op": "r"}, {**new, "__op": "u"}, None, {**new, "__op": "d"}, {"id": 2, "__op": "c"}]
    nothing = dict.fromkeys(["id", "name", "__op", "__ts_ms"])
    assert rows == [nothing | ({**one, "__ts_ms": 7} if one else {}) for one in expected] * 4 and reasons == {}


def test_what_is_no_envelope_or_has_no_row_is_rejected() -> None:
    values = [b"{}", envelope("t"), envelope("c", ROW, None), envelope("u", None, {"id": "x"}), b"[]", envelope("d")]
    rows, reasons = decoded(decoder(), [*values, envelope("c", None, ROW)])
    assert [row["id"] for row in rows] == [None, 1] and list(reasons) == [0, 1, 2, 3, 4]
    assert reasons[0] == "the value is not Debezium's envelope: it has no op"
    assert reasons[1] == "the envelope's op is 't', none of c, r, u, d, so it has no row"
    assert reasons[2] == "the envelope's op is 'c', but it has no row"
    assert 'field after.id is the text "x"' in reasons[3] and "not a JSON object" in reasons[4]


def test_columns_of_rows_are_inferred_and_grow() -> None:
    first = decoder("", sample=[envelope("c", None, ROW), envelope("d", {"id": 1, "gone": 0.5}), b"no JSON", b"{}"])
    assert first.schema.names == ["id", "name", "gone", "__op", "__ts_ms", "_more"]
    later = envelope("u", None, {**ROW, "new": {"x": 1}, "__op": "mine"}, other=1)
    rows, _ = decoded(first, [later, envelope("c", None, ROW, wrapped=True)] * 20)
    assert json.loads(rows[0]["_more"]) == {"new": {"x": 1}, "__op": "mine"} and rows[1]["_more"] is None
    grown = decoder("", known=first.schema, sample=[later])
    assert grown.schema.names == ["id", "name", "gone", "new", "__op", "__ts_ms", "_more"]
    rows, _ = decoded(grown, [later] * 20)
    assert (rows[0]["__op"], json.loads(rows[0]["_more"])) == ("u", {"__op": "mine"})
    with pytest.raises(ConfigError, match="rows have a field __op, as the envelope's own column"):
        decoder("id BIGINT, __op STRING")
    with pytest.raises(ConfigError, match="none of its first values is an envelope of Debezium with a row"):
        decoder("", sample=[b"{}", envelope("t")])


def test_a_deletion_needs_no_event_time_and_deletes_its_key() -> None:
    made = decoder("id BIGINT, at STRING", "at")
    values = [envelope("d", {"id": 1}), envelope("u", None, {"id": 1}), None, envelope("d", {"id": 2})]
    given = batch(values).append_column(DELETES, pa.array([False, False, True, False]))
    good, bad = made.decode(given)
    assert good[DELETES].to_pylist() == [True, True, True] and good["id"].to_pylist() == [1, None, 2]
    assert {one.timestamp() * 1000 for one in good["at"].to_pylist()} == {RECORD_MS}
    assert bad["reason"].to_pylist() == ["the event time at is missing"]


def test_envelopes_of_a_registry() -> None:
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}]}
    fields = [
        {"name": "before", "type": ["null", row], "default": None}, {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"}, {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]  # fmt: skip
    avro = {"type": "record", "name": "Envelope", "fields": fields}
    kind = {"type": "object", "properties": {"id": {"type": "integer"}}}
    tree = {"type": "object", "properties": {"before": kind, "after": kind, "op": {"type": "string"}, "ts_ms": {}}}
    with SmallRegistry() as small:
        registry = SchemaRegistry(small.url)
        serialize = AvroSerializer(registry, json.dumps(avro)).for_topic("t", "value")
        made = decoder_of("t", Decoding("avro", "", registry, envelope="debezium"), list)
        values = [serialize({"before": None, "after": {"id": 5}, "op": "c", "ts_ms": 7}),
                  serialize({"before": {"id": 6}, "after": None, "op": "d", "ts_ms": None})]  # fmt: skip
        rows, reasons = decoded(made, [*values, b"x"])
        assert rows == [{"id": 5, "__op": "c", "__ts_ms": 7}, {"id": 6, "__op": "d", "__ts_ms": None}]
        assert list(reasons) == [2]
        registry.register("u-value", Schema(json.dumps(tree), JSON))
        made = decoder_of("u", Decoding("json", "", registry, envelope="debezium"), list)
        framed = b"\0\0\0\0\2" + envelope("c", None, {"id": 5})
        assert decoded(made, [framed])[0] == [{"id": 5, "__op": "c", "__ts_ms": 7}]
        with pytest.raises(ConfigError, match="the schema has no fields op and after"):
            decoder_of("t", Decoding("avro", json.dumps(row), registry, envelope="debezium"), list)


def test_keys_may_be_payloads_too() -> None:
    plain, wrapped = b'{"id": 1}', b'{"schema": {"type": "struct", "optional": false}, "payload": {"id": 1}}'
    for schema, sample, columns in (("id BIGINT", (), [{"id": 1}]), ("", (plain, wrapped), [{"id": 1, "_more": None}])):
        given = as_sample(sample)
        chosen = values_of("t", Decoding("json", schema, of="key", envelope="debezium"), lambda given=given: given)
        assert chosen is not None
        made = chosen.values
        done = made.found(pa.array([plain, wrapped] * 12))
        assert pa.RecordBatch.from_arrays(done.columns, schema=made.schema).to_pylist() == columns * 24
    grown = b'{"schema": {"type": "struct"}, "payload": {"id": 1, "region": "eu"}}'
    assert made.found(pa.array([grown])).columns[1].to_pylist() == ['{"region":"eu"}']


@pytest.mark.parametrize(
    ("decoding", "sentence"),
    [(Decoding("json", envelope="maxwell"), "--envelope 'maxwell' is not debezium"),
     (Decoding("text", envelope="debezium"), "--envelope debezium needs --decode json or avro")],
)  # fmt: skip
def test_options_that_cannot_be_are_one_sentence(decoding: Decoding, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        decoding.check()
