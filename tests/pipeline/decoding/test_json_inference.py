"""Columns are inferred from records that pass: a few bad ones shape nothing, and what disagrees is said aloud."""

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from moldau.errors import ConfigError
from moldau.pipeline.decoding import json_inference
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.json_inference import Inferred, inferred
from tests.pipeline.decoding.fetching import decoded, sample

AT = "2024-02-29T12:00:00Z"
Objects = list[dict[str, Any]]


def values(objects: Objects) -> list[bytes]:
    return [json.dumps(one).encode() for one in objects]


def found(objects: Objects, known: pa.Schema | None = None, event_time: str = "", share: float = 0.99) -> Inferred:
    return inferred(sample(values(objects)), known, event_time, share)


def numbered(count: int, **more: Any) -> Objects:
    return [{"id": number, **more} for number in range(count)]


def test_records_without_an_event_time_shape_nothing() -> None:
    objects = [*numbered(960, at=AT), *[{"id": 92233720368547758080}] * 20, *[{"ID": 5, "at": "soon"}] * 20]
    made = found(objects, event_time="at")
    assert made.columns == pa.schema([("id", pa.int64()), ("at", pa.string())]) and not made.notes
    assert (made.objects, made.passing) == (1000, 960)
    nested = [{"meta": {"at": 1709200800}}, {"x": 1}, {"meta": 5, "y": 1}, {"meta": {"at": True}}]
    assert found(nested, event_time="meta.at").columns.names == ["meta"]


def test_one_record_of_another_type_is_rejected_and_named() -> None:
    objects = [*numbered(999), {"id": "x", "only here": 1}]
    made = found(objects)
    assert made.columns == pa.schema([("id", pa.int64())])
    [note] = made.notes
    assert note == (
        "field id becomes long, which 999 of 1,000 sampled records have; the others are rejected, the first of them "
        "(partition 3 offset 1099) has text"
    )
    decoder = decoder_of("t", Decoding("json"), lambda: sample(values(objects)))
    assert decoder is not None and decoder.notes == (f"t: {note}",)
    rows, reasons = decoded(decoder, values(objects))
    assert len(rows) == 999 and reasons == {999: 'field id is the text "x", not a whole number of 64 bits'}


def test_a_field_whose_records_disagree_becomes_text_aloud() -> None:
    for objects, counts in [
        ([{"id": 1}, {"id": "x"}], "text in 1, whole numbers in 1"),
        ([*numbered(98), {"id": "x"}], "text in 1, whole numbers in 98"),
        ([*numbered(985), *[{"id": "x"}] * 15], "text in 15, whole numbers in 985"),
    ]:
        made = found(objects)
        assert made.columns == pa.schema([("id", pa.string())])
        [note] = made.notes
        assert f"becomes string, because {len(objects):,} sampled records disagree ({counts})" in note
        assert "has text: give --schema for another type" in note


def test_the_share_is_the_users() -> None:
    objects = [*numbered(90), *[{"id": "x"}] * 10]
    assert found(objects, share=0.9).columns.field("id").type == pa.int64()
    assert found(objects, share=0.91).columns.field("id").type == pa.string()
    assert found([*numbered(9_999), {"id": "x"}], share=1).columns.field("id").type == pa.string()


@pytest.mark.parametrize(
    ("most", "odd", "kind"),
    [
        ({"a": 1}, {"a": 1.5}, pa.float64()), ({"a": 1}, {"a": 2**53 + 1}, pa.int64()),
        ({"a": 1}, {"a": 7.0}, pa.float64()),
        ({"a": 2**53 + 1}, {"a": 7.0}, pa.int64()), ({"a": 1}, {"a": 2**70}, pa.int64()),
        ({"a": 0.5}, {"a": 2**53 + 1}, pa.float64()),
        ({"a": True}, {"a": 1}, pa.bool_()), ({"a": "x"}, {"a": 1}, pa.string()), ({"a": {}}, {"a": 1}, pa.string()),
        ({"a": [1]}, {"a": [1, "x"]}, pa.list_(pa.int64())), ({"a": [1]}, {"a": {"x": 1}}, pa.list_(pa.int64())),
        ({"a": [{"b": 1}]}, {"a": [{"b": {}}]}, pa.list_(pa.struct([("b", pa.int64())]))),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": 1, "d": 2}}, pa.struct([("b", pa.struct([("c", pa.int64())]))])),
        ({"a": []}, {"a": [None]}, pa.list_(pa.string())), ({"a": 1}, {"a": None}, pa.int64()),
    ],
)  # fmt: skip
def test_the_type_of_nearly_all_wins_at_any_depth(most: Any, odd: Any, kind: pa.DataType) -> None:
    for objects in ([*[most] * 150, odd], [odd, *[most] * 150]):
        assert found(objects).columns == pa.schema([("a", kind)])


def test_a_known_struct_takes_new_fields_whatever_a_bad_record_has() -> None:
    known = pa.schema([("geo", pa.struct([("lat", pa.float64())]))])
    point, both = {"geo": {"lat": 1.5, "lon": 2.5}}, pa.struct([("lat", pa.float64()), ("lon", pa.float64())])
    for objects in ([*[point] * 999, {"geo": "x", "bad": 1}], [point, *[{"geo": "x", "bad": 1}] * 9]):
        made = found(objects, known)
        assert made.columns == pa.schema([("geo", both)]) and not made.notes, "the column says what fits"
    decoder = decoder_of("t", Decoding("json"), lambda: sample(values([point, {"geo": "x"}])), known)
    rows, reasons = decoded(decoder, values([point, {"geo": "x"}] * 20))
    assert rows == [{**point, "_more": None}] * 20 and len(reasons) == 20


def test_a_record_that_a_known_column_does_not_hold_shapes_nothing() -> None:
    known = pa.schema([("at", pa.timestamp("us", "UTC")), ("n", pa.int32()), ("l", pa.list_(pa.date32()))])
    good: Objects = [{"at": AT, "n": 1, "l": ["2024-02-29"], "good": 1}]
    bad: Objects = [{"at": "soon", "bad": 1}, {"n": 2**40, "bad": 1}, {"l": ["never"], "bad": 1}, {"at": [], "bad": 1}]
    assert found([*good, *bad], known).columns.names == ["at", "n", "l", "good"]


def test_fields_that_differ_in_case_have_the_same_columns_in_every_load() -> None:
    known, objects = None, values([{"id": 1, "ID": 2, "_key": 3, "a b": 4, "_more": 5}])
    for _ in range(3):
        decoder = decoder_of("t", Decoding("json"), lambda: sample(objects), known)
        assert decoder is not None
        known = decoder.schema
        assert known.names == ["id", "ID_", "_key_", "a_b", "_more"]
    assert decoded(decoder, objects)[0] == [{"id": 1, "ID_": 2, "_key_": 3, "a_b": 4, "_more": '{"_more":5}'}]


def test_rejections_of_many_fields_together_stay_within_the_share() -> None:
    names = [f"f{number}" for number in range(40)]
    objects: Objects = [dict.fromkeys(names, 1) for _ in range(1_000)]
    for number, name in enumerate(names):
        for record in range(4):
            objects[number * 4 + record][name] = "x"
    made = found(objects)
    kinds = [field.type for field in made.columns]
    assert kinds.count(pa.int64()) == 2 and kinds.count(pa.string()) == 38 and len(made.notes) == 40
    decoder = decoder_of("t", Decoding("json"), lambda: sample(values(objects)))
    assert len(decoded(decoder, values(objects))[1]) == 8, "10 of 1,000 at most"


def test_who_loses_says_nothing_about_other_fields() -> None:
    objects = [*[{"a": 1, "b": 1}] * 995, *[{"a": "x", "b": "x"}] * 5]
    assert found(objects).columns == pa.schema([("a", pa.int64()), ("b", pa.int64())])
    rare = [*[{"a": 1}] * 995, {"a": 1, "c": 1}, *[{"a": "x", "c": "x"}] * 4]
    assert found(rare).columns == pa.schema([("a", pa.int64()), ("c", pa.int64())]), "c is seen in one good record"


def test_an_event_time_in_several_forms_is_no_disagreement_that_rejects() -> None:
    objects = [*numbered(999, at=1709200800), {"id": 1, "at": AT}]
    decoder = decoder_of("t", Decoding("json", event_time="at"), lambda: sample(values(objects)))
    rows, reasons = decoded(decoder, values(objects))
    assert len(rows) == 1000 and not reasons


def test_the_order_of_a_sample_changes_no_type() -> None:
    chance = random.Random(7)
    choices = [1, 1.5, "x", None, True, [1], ["x"], {"b": 1}, {"b": "x"}, 2**60 + 1]
    objects: Objects = [{"a": 1, "b": {"c": 1}}] * 300
    objects += [{chance.choice("abc"): chance.choice(choices)} for _ in range(6)]
    kinds = {field.name: field.type for field in found(objects).columns}
    for _ in range(5):
        chance.shuffle(objects)
        assert {field.name: field.type for field in found(objects).columns} == kinds


def test_what_is_no_unicode_says_nothing() -> None:
    odd = [b'{"\\ud800": 1}', b'{"a": "\\ud800"}', b'{"a": NaN}', b"[" * 100_000]
    assert inferred(sample([*odd, b'{"a": 1, "n": 1e400}'])).columns == pa.schema(
        [("a", pa.int64()), ("n", pa.string())]
    )


def test_a_sample_of_ever_new_shapes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_inference, "PLACES_MAX", 100)
    made = inferred(sample(values([{f"f{number % 900}": {"x": number}} for number in range(2_000)])))
    assert 30 < len(made.columns) < 60


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([b"5", b"{"], "none of its first values is a JSON object"),
        ([b'{"a": 1}', b'{"at": "soon"}'], "none of its first 2 JSON objects has a time in the field at"),
        ([b"{}"], "none of its first 1 JSON object has a time in the field at"),
    ],
)
def test_a_sample_without_a_record_that_passes_is_a_sentence(given: list[bytes], sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"the columns of t cannot be inferred: {sentence}"):
        decoder_of("t", Decoding("json", event_time="at"), lambda: sample(given))
