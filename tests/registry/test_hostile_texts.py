"""Texts that only some programs can read: they are refused before they are stored, and skipped where others wrote
them."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from moldau.client.registry.schemas import Schema
from moldau.registry import kinds
from moldau.registry.topic_records import UnreadableRecord, read_key, read_value
from tests.registry.asking import LocalRegistry, body_of

HALF = '"\\ud800"'
"""Half of a surrogate pair, as JSON."""
RECORD = '{"type":"record","name":"R","doc":%s,"fields":[]}'


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"schema":%s}' % HALF.encode(), 400),
        (b'{"schema":"\\"int\\"","metadata":{"properties":{"a":%s}}}' % HALF.encode(), 400),
        (b'{"schema":"\\"int\\"","metadata":{"properties":{"a":NaN}}}', 400),
        (b'{"schema":"\\"int\\"","metadata":{"properties":{"a":1e999}}}', 400),
        (json.dumps({"schema": RECORD % HALF}).encode(), 422),
        (json.dumps({"schema": RECORD % "NaN"}).encode(), 422),
        (json.dumps({"schema": '{"type":"number","maximum":1e999}', "schemaType": "JSON"}).encode(), 422),
        (json.dumps({"schema": f'{{"title":{HALF}}}', "schemaType": "JSON"}).encode(), 422),
        (b'{"schema":"\xed\xa0\x80"}', 400),
    ],
)
def test_a_text_that_is_not_unicode_or_not_json_is_refused(body: bytes, status: int) -> None:
    registry = LocalRegistry()
    answer = registry.ask("POST", "/subjects/s/versions", body)
    assert answer.status == status, answer
    assert not registry.topic.records
    assert registry.register("s", '"int"').tree == {"id": 1}


@pytest.mark.parametrize("reference", ["#/allOf/\u00b2", f"#/allOf/{'9' * 5000}", "http://[#/allOf/0"])
def test_a_reference_that_no_program_can_follow_leads_nowhere(reference: str) -> None:
    schema = json.dumps({"$ref": reference, "allOf": [{"type": "string"}]})
    answer = LocalRegistry().ask("POST", "/subjects/s/versions", {"schema": schema, "schemaType": "JSON"})
    assert answer.status == 422 and "leads nowhere" in answer.tree["message"]


def test_characters_outside_of_ascii_come_back_as_they_were() -> None:
    registry = LocalRegistry()
    text = RECORD % '"řeka 🐟"'
    assert registry.ask("POST", "/subjects/s/versions", json.dumps({"schema": text}).encode()).tree == {"id": 1}
    assert json.loads(registry.ask("GET", "/schemas/ids/1").tree["schema"])["doc"] == "řeka 🐟"


@pytest.mark.parametrize("subject", ["a/b", "a b", "Größe 🐟", "a%2Fb", "?x=1", "#", "+", ":", "..", "a:b", "x" * 900])
def test_a_subject_may_have_any_name(subject: str) -> None:
    registry, name = LocalRegistry(), quote(subject, safe="")
    assert registry.register(name, '"int"').tree == {"id": 1}
    assert registry.ask("GET", "/subjects").tree == [subject]
    assert registry.ask("GET", f"/subjects/{name}/versions/latest").tree["subject"] == subject
    assert registry.ask("GET", f"/subjects?subjectPrefix={name[:40]}").tree == [subject]
    assert registry.ask("PUT", f"/config/{name}", {"compatibility": "NONE"}).status == 200
    assert registry.ask("DELETE", f"/subjects/{name}").tree == [1]
    assert registry.ask("DELETE", f"/subjects/{name}?permanent=true").tree == [1]
    assert registry.restarted().ask("GET", "/subjects?deleted=true").tree == []


def test_a_prefix_may_be_sent_without_percent_signs() -> None:
    registry = LocalRegistry()
    registry.register("Gr%C3%B6%C3%9Fe", '"int"')
    assert registry.ask("GET", "/subjects?subjectPrefix=Größ").tree == ["Größe"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"keytype":"SCHEMA","subject":"\\ud800","version":1,"magic":1}', None),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', {"schema": "\ud800"}),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', {"schema": '"int"', "metadata": {"a": "\ud800"}}),
        (b'{"keytype":"CONFIG","subject":"s","magic":0}', {"compatibilityGroup": "\ud800"}),
    ],
)
def test_a_record_that_cannot_be_written_again_is_unreadable(key: bytes, value: Any) -> None:
    packed = None if value is None else json.dumps({"subject": "s", "version": 1, "id": 1, **value}).encode()
    with pytest.raises(UnreadableRecord):
        read_value(read_key(key), packed, 0)


def test_references_in_a_circle_are_refused_and_what_is_not_in_it_is_read() -> None:
    """Only an import can make a circle: a version may be overwritten there."""
    registry = LocalRegistry()
    registry.ask("PUT", "/mode", {"mode": "IMPORT"})
    first = '{"type":"record","name":"A","fields":[]}'
    to_b = {"name": "B", "subject": "b", "version": 1}
    to_a = {"name": "A", "subject": "a", "version": 1}
    second = '{"type":"record","name":"B","fields":[{"name":"a","type":"A"}]}'
    assert registry.register("a", first, id=1, version=1).tree == {"id": 1}
    assert registry.register("b", second, id=2, version=1, references=[to_a]).tree == {"id": 2}
    round_about = '{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]}'
    registry.register("a", round_about, id=3, version=1, references=[to_b])
    registry.ask("PUT", "/mode", {"mode": "READWRITE"})
    for subject in ("a", "b"):
        assert registry.ask("GET", f"/subjects/{subject}/versions/1").status == 200
        refused = registry.ask("POST", f"/compatibility/subjects/{subject}/versions", body_of(first))
        assert refused.status in (200, 422), refused
    assert registry.register("c", '"int"').status == 200


def test_a_schema_of_almost_a_million_characters_is_kept_and_a_longer_one_refused() -> None:
    registry = LocalRegistry()
    text = RECORD % json.dumps("x" * 999_000)
    assert registry.register("s", text).tree == {"id": 1}
    assert registry.register("s", text).tree == {"id": 1}
    assert registry.register("t", RECORD % json.dumps("x" * 1_000_001)).tree["error_code"] == 42201


def test_parsed_schemas_are_remembered_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "PARSED_CHARACTERS_MAX", 150)
    definitions = kinds.Definitions()
    schemas = [Schema(RECORD % json.dumps("x" * 20 * number)) for number in range(4)]
    for schema in (*schemas, *schemas):
        definitions.parse(schema, {})
        kept = sum(len(one.text) for one, _ in definitions._parsed)
        assert kept == definitions._characters and (kept <= 150 or len(definitions._parsed) == 1)
    assert definitions.parse(schemas[-1], {}) is definitions.parse(schemas[-1], {})


@pytest.mark.check
@pytest.mark.parametrize("kind", ["fields", "symbols", "values", "required"])
def test_wide_schemas_are_compared_in_time_that_grows_with_their_size_alone(kind: str) -> None:
    """Each part with each other part would take minutes."""
    names = [f"n{number}" for number in range(30_000)]
    fields = [{"name": one, "type": "int"} for one in names[:12_000]]
    registry = LocalRegistry()
    texts: list[Any] = {
        "fields": [{"type": "record", "name": "R", "fields": fields}] * 2,
        "symbols": [{"type": "enum", "name": "E", "symbols": some} for some in (names[:-1], names)],
        "values": [{"enum": names[:-1]}, {"enum": names}],
        "required": [{"properties": dict.fromkeys(names[:9_000], True), "required": names}] * 2,
    }[kind]
    more = {"schemaType": "JSON"} if kind in ("values", "required") else {}
    for number, text in enumerate(texts):
        text = {**text, "doc" if not more else "title": str(number)}
        assert registry.register("s", text, **more).tree == {"id": number + 1}
