"""Why records are rejected, so that they can be counted: rules and fields are stable, reasons speak of JSON."""

import re
from pathlib import Path
from typing import Any

import pytest

from moldau.pipeline.decoding.ddl import columns_of
from moldau.pipeline.decoding.json_numbers import loads
from moldau.pipeline.decoding.json_values import JsonValues
from moldau.pipeline.decoding.rejections import RULES, described
from moldau.pipeline.decoding.text_values import TextValues
from moldau.pipeline.decoding.topic_decoder import TopicDecoder
from tests.pipeline.decoding.fetching import why

WIDE = columns_of(
    "id INT, tags ARRAY<STRUCT<n: INT>>, geo STRUCT<lat: DOUBLE>, m MAP<STRING,INT>, at TIMESTAMP, day DATE, b BINARY,"
    " ok BOOLEAN, price DECIMAL(4,1), name STRING"
)


@pytest.mark.parametrize(
    ("value", "rule", "field", "reason"),
    [
        (b"\xff", "not_utf8", None, "the value is not UTF-8: invalid start byte at byte 0"),
        (b"{", "not_json", None, "the value is not JSON: "), (b"{} {}", "not_json", None, "the value is not JSON: "),
        (b'{"id": NaN}', "not_json", None, "the value is not JSON: NaN is not a number of JSON"),
        (b"[1]", "not_an_object", None, "the value is the array [1], not a JSON object"),
        (b"true", "not_an_object", None, "the value is true, not a JSON object"),
        (b"null", "not_an_object", None, "the value is null, not a JSON object"),
        (b"[" * 100_000, "too_deep", None, "the value nests too deeply"),
        (b'{"name": "\\ud800"}', "not_unicode", "name", "field name is the text"),
        (b'{"id": "x"}', "wrong_type", "id", 'field id is the text "x", not a whole number of 32 bits'),
        (b'{"id": true}', "wrong_type", "id", "field id is true, not a whole number"),
        (b'{"id": {"a": true}}', "wrong_type", "id", 'field id is the object {"a":true}, not a whole number'),
        (b'{"id": 1.5}', "wrong_number", "id", "field id is the number 1.5, not a whole number of 32 bits"),
        (b'{"id": 1e99}', "wrong_number", "id", "field id is the number 1e99, not a whole"),
        (b'{"geo": {"lat": 9007199254740993}}', "wrong_number", "geo.lat", "field geo.lat is the number 900719"),
        (b'{"geo": []}', "wrong_type", "geo", "field geo is the array [], not an object"),
        (b'{"tags": [{}, {"n": "x"}]}', "wrong_type", "tags[].n", 'field tags[1].n is the text "x"'),
        (b'{"tags": [5]}', "wrong_type", "tags[]", "field tags[0] is the number 5, not an object"),
        (b'{"tags": {}}', "wrong_type", "tags", "field tags is the object {}, not an array"),
        (b'{"m": {"k": "x"}}', "wrong_type", "m[]", 'field m.k is the text "x"'),
        (b'{"m": 1}', "wrong_type", "m", "field m is the number 1, not an object"),
        (b'{"at": "soon"}', "wrong_text", "at", 'field at is the text "soon", not a time'),
        (b'{"at": 1e30}', "wrong_number", "at", "field at is the number 1e30, not a time"),
        (b'{"at": []}', "wrong_type", "at", "field at is the array [], not a time"),
        (b'{"day": "2024-02-30"}', "wrong_text", "day", 'field day is the text "2024-02-30", not a date'),
        (b'{"day": 5}', "wrong_type", "day", "field day is the number 5, not a date"),
        (b'{"b": "?"}', "wrong_text", "b", 'field b is the text "?", not bytes in base64'),
        (b'{"ok": 1}', "wrong_type", "ok", "field ok is the number 1, not true or false"),
        (b'{"price": 1234.5}', "wrong_number", "price", "field price is the number 1234.5, not a number of 4 digits"),
        (b'{"price": "x"}', "wrong_text", "price", 'field price is the text "x"'),
    ],
)  # fmt: skip
def test_a_rejected_object_has_a_rule_a_field_and_a_reason(value: bytes, rule: str, field: str, reason: str) -> None:
    found = why(TopicDecoder(JsonValues(WIDE)), value)
    assert found[:2] == (rule, field) and found[2].startswith(reason)


def test_frames_text_and_event_times_have_rules() -> None:
    assert why(TopicDecoder(JsonValues(WIDE, framed=True)), b"{}")[:2] == ("not_framed", None)
    assert why(TopicDecoder(TextValues()), b"\xff")[:2] == ("not_utf8", None)
    dated = TopicDecoder(JsonValues(columns_of("a STRUCT<at: STRING>")), "a.at")
    assert why(dated, b'{"a": {}}') == ("no_event_time", "a.at", "the event time a.at is missing")
    assert why(dated, b'{"a": {"at": "x"}}')[2] == 'the event time a.at is the text "x", which is not a time'


@pytest.mark.parametrize(
    ("text", "words"),
    [("null", "null"), ("false", "false"), ("1.50", "the number 1.50"), ("7", "the number 7"), ('"a"', 'the text "a"'),
     ('{"a": [null, true]}', 'the object {"a":[null,true]}'), ('"' + "x" * 100 + '"', 'the text "' + "x" * 76 + "..."),
     ("[" + "1," * 99 + "1]", "the array [" + "1," * 38 + "...")],
)  # fmt: skip
def test_values_are_described_in_the_words_of_json(text: str, words: str) -> None:
    assert described(loads(text)) == words


@pytest.mark.parametrize("value", [b"x", {"a": b"x"}])
def test_what_json_does_not_have_is_described_too(value: Any) -> None:
    assert "JSON" in described(value)


def test_the_page_lists_every_rule() -> None:
    page = Path(__file__).parents[3] / "docs" / "rejected-records.md"
    table = page.read_text(encoding="utf-8").partition("| `rule` |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == RULES
