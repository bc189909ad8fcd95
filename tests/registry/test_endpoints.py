"""Endpoint x case: status, error code and fields, as Confluent's registry has them."""

import json
from typing import Any

import pytest

from moldau.registry.http_messages import RestAnswer, refused
from moldau.registry.refusals import no_writer, not_permitted
from tests.registry.asking import LocalRegistry, body_of, record

V1 = record("R", ("a", "int"))
V2 = record("R", ("a", "int"), ("b", ["null", "string"], None))
BROKEN = record("R", ("a", "int"), ("c", "int"))
TEXT_1 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


@pytest.fixture
def registry() -> LocalRegistry:
    """`s` has two versions; `gone` one that is soft-deleted; `half` two, of which the first is soft-deleted."""
    made = LocalRegistry()
    made.register("s", V1)
    made.register("s", V2)
    made.register("gone", record("Gone"))
    made.ask("DELETE", "/subjects/gone")
    made.register("half", record("Half", ("a", "int")))
    made.register("half", record("Half"))
    made.ask("DELETE", "/subjects/half/versions/1")
    return made


CASES: list[tuple[str, str, Any, int, Any]] = [
    ("GET", "/subjects", None, 200, ["half", "s"]),
    ("GET", "/subjects?deleted=true", None, 200, ["gone", "half", "s"]),
    ("GET", "/subjects?deletedOnly=true", None, 200, ["gone"]),
    ("GET", "/subjects?subjectPrefix=ha", None, 200, ["half"]),
    ("GET", "/subjects?offset=1&limit=1", None, 200, ["s"]),
    ("GET", "/subjects?limit=0", None, 200, []),
    ("GET", "/subjects?limit=x", None, 404, 404),
    ("GET", "/schemas?limit=1&offset=1", None, 200, [{"subject": "s", "version": 1, "id": 1, "schema": TEXT_1}]),
    ("GET", "/schemas?subjectPrefix=s&limit=1", None, 200, [{"subject": "s", "version": 1, "id": 1, "schema": TEXT_1}]),
    ("GET", "/schemas?subjectPrefix=nowhere", None, 200, []),
    ("GET", "/subjects/s/versions", None, 200, [1, 2]),
    ("GET", "/subjects/gone/versions", None, 404, 40401),
    ("GET", "/subjects/gone/versions?deleted=true", None, 200, [1]),
    ("GET", "/subjects/half/versions?deletedOnly=true", None, 200, [1]),
    ("GET", "/subjects/half/versions?deletedAsNegative=true", None, 200, [-1, 2]),
    ("GET", "/subjects/nowhere/versions", None, 404, 40401),
    ("GET", "/subjects/s/versions/1", None, 200, {"subject": "s", "version": 1, "id": 1, "schema": TEXT_1}),
    ("GET", "/subjects/s/versions/1/schema", None, 200, json.loads(TEXT_1)),
    ("GET", "/subjects/s/versions/3", None, 404, 40402),
    ("GET", "/subjects/s/versions/0", None, 422, 42202),
    ("GET", "/subjects/s/versions/-2", None, 422, 42202),
    ("GET", "/subjects/s/versions/2147483648", None, 422, 42202),
    ("GET", "/subjects/s/versions/first", None, 422, 42202),
    ("GET", "/subjects/nowhere/versions/1", None, 404, 40401),
    ("GET", "/subjects/half/versions/1", None, 404, 40402),
    ("GET", "/subjects/s/versions/1/referencedby", None, 200, []),
    ("GET", "/subjects/s/versions/9/referencedby", None, 404, 40402),
    ("POST", "/subjects/s", body_of(V1), 200, {"subject": "s", "version": 1, "id": 1, "schema": TEXT_1}),
    ("POST", "/subjects/s", body_of(BROKEN), 404, 40403),
    ("POST", "/subjects/nowhere", body_of(V1), 404, 40401),
    ("POST", "/subjects/s", body_of("{"), 422, 42201),
    ("POST", "/subjects/gone", body_of(record("Gone")), 404, 40401),
    ("POST", "/subjects/s/versions", body_of(V1), 200, {"id": 1}),
    ("POST", "/subjects/s/versions", body_of(BROKEN), 409, 40901),
    ("POST", "/subjects/s/versions", body_of(""), 422, 42201),
    ("POST", "/subjects/s/versions", {}, 422, 42201),
    ("POST", "/subjects/s/versions", body_of(V1, schemaType="XML"), 422, 42201),
    ("POST", "/subjects/s/versions", body_of(V1, references=[{"name": "x"}]), 422, 422),
    ("POST", "/subjects/s/versions", body_of(V1, id=7), 422, 42205),
    ("POST", "/subjects/s/versions", body_of(V1, id="7"), 422, 422),
    ("POST", "/subjects/s/versions", body_of(record("R"), version=9), 422, 42201),
    ("POST", "/subjects/s/versions", b"[1]", 400, 400),
    ("POST", "/subjects/s/versions", b"{", 400, 400),
    ("POST", "/subjects/__GLOBAL/versions", body_of(V1), 422, 42208),
    ("POST", "/subjects/a%0Ab/versions", body_of(V1), 422, 42208),
    ("DELETE", "/subjects/nowhere", None, 404, 40401),
    ("DELETE", "/subjects/gone", None, 404, 40404),
    ("DELETE", "/subjects/s?permanent=true", None, 404, 40405),
    ("DELETE", "/subjects/gone?permanent=true", None, 200, [1]),
    ("DELETE", "/subjects/s", None, 200, [1, 2]),
    ("DELETE", "/subjects/s/versions/latest", None, 200, 2),
    ("DELETE", "/subjects/s/versions/-1", None, 200, 2),
    ("DELETE", "/subjects/half/versions/1", None, 404, 40406),
    ("DELETE", "/subjects/half/versions/2?permanent=true", None, 404, 40407),
    ("DELETE", "/subjects/half/versions/1?permanent=true", None, 200, 1),
    ("DELETE", "/subjects/s/versions/3", None, 404, 40402),
    ("DELETE", "/subjects/nowhere/versions/1", None, 404, 40401),
    ("GET", "/schemas/ids/1", None, 200, {"schema": TEXT_1}),
    ("GET", "/schemas/ids/1?fetchMaxId=true", None, 200, {"schema": TEXT_1, "maxId": 5}),
    ("GET", "/schemas/ids/1/schema", None, 200, json.loads(TEXT_1)),
    ("GET", "/schemas/ids/3", None, 200, {"schema": '{"type":"record","name":"Gone","fields":[]}'}),
    ("GET", "/schemas/ids/99", None, 404, 40403),
    ("GET", "/schemas/ids/one", None, 404, 404),
    ("GET", "/schemas/ids/1/subjects", None, 200, ["s"]),
    ("GET", "/schemas/ids/3/subjects", None, 200, []),
    ("GET", "/schemas/ids/3/subjects?deleted=true", None, 200, ["gone"]),
    ("GET", "/schemas/ids/2/versions", None, 200, [{"subject": "s", "version": 2}]),
    ("GET", "/schemas/ids/99/versions", None, 404, 40403),
    ("GET", "/schemas/guids/00000000-0000-0000-0000-000000000000", None, 404, 40403),
    ("GET", "/config", None, 200, {"compatibilityLevel": "BACKWARD"}),
    ("GET", "/config/s", None, 404, 40408),
    ("GET", "/config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "BACKWARD"}),
    ("PUT", "/config", {"compatibility": "full"}, 200, {"compatibility": "FULL"}),
    ("PUT", "/config/s", {"compatibility": "NONE", "normalize": True}, 200,
     {"compatibility": "NONE", "normalize": True}),
    ("PUT", "/config/s", {"compatibility": "SOME"}, 422, 42203),
    ("PUT", "/config/s", {"normalize": "yes"}, 422, 422),
    ("PUT", "/config/s", {"defaultRuleSet": {"domainRules": []}}, 422, 422),
    ("DELETE", "/config/s", None, 404, 40401),
    ("DELETE", "/config/nowhere", None, 404, 40401),
    ("GET", "/mode", None, 200, {"mode": "READWRITE"}),
    ("GET", "/mode/s", None, 404, 40409),
    ("GET", "/mode/s?defaultToGlobal=true", None, 200, {"mode": "READWRITE"}),
    ("PUT", "/mode/s", {"mode": "READONLY"}, 200, {"mode": "READONLY"}),
    ("PUT", "/mode/s", {"mode": "WRITEONLY"}, 422, 42204),
    ("PUT", "/mode/s", {"mode": "IMPORT"}, 422, 42205),
    ("PUT", "/mode/s", {"mode": "FORWARD"}, 422, 42204),
    ("PUT", "/mode/s?force=true", {"mode": "IMPORT"}, 200, {"mode": "IMPORT"}),
    ("DELETE", "/mode/s", None, 404, 40401),
    ("POST", "/compatibility/subjects/s/versions/latest", body_of(BROKEN), 200, {"is_compatible": False}),
    ("POST", "/compatibility/subjects/s/versions/1", body_of(V1), 200, {"is_compatible": True}),
    ("POST", "/compatibility/subjects/s/versions", body_of(V1), 200, {"is_compatible": True}),
    ("POST", "/compatibility/subjects/s/versions/9", body_of(V1), 404, 40402),
    ("POST", "/compatibility/subjects/nowhere/versions/latest", body_of(V1), 200, {"is_compatible": True}),
    ("POST", "/compatibility/subjects/s/versions/latest", body_of("{"), 422, 42201),
    ("GET", "/contexts", None, 200, ["."]),
    ("GET", "/", None, 200, {}),
    ("GET", "/nothing/of/the/kind", None, 404, 404),
    ("PATCH", "/subjects", None, 405, 405),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "expected"), CASES, ids=lambda one: str(one)[:60])
def test_each_endpoint_answers_as_confluents(
    registry: LocalRegistry, method: str, path: str, body: Any, status: int, expected: Any
) -> None:
    answer = registry.ask(method, path, body)
    assert answer.status == status, answer
    assert answer.media_type == "application/vnd.schemaregistry.v1+json"
    if status == 200:
        assert answer.tree == expected
    else:
        assert answer.tree["error_code"] == expected and answer.tree["message"]
        assert set(answer.tree) == {"error_code", "message"}


def test_clients_that_take_unknown_fields_get_all(registry: LocalRegistry) -> None:
    header = {"Confluent_Accept_Unknown_Properties": "true"}
    registered = registry.ask("POST", "/subjects/s/versions", body_of(V1), **header).tree
    assert registered == {"id": 1, "version": 1, "guid": registered["guid"]}
    assert registry.ask("GET", f"/schemas/guids/{registered['guid']}").tree == {"schema": TEXT_1}
    assert registry.ask("GET", f"/schemas/guids/{registered['guid']}/ids").tree == [{"context": ".", "id": 1}]
    assert registry.ask("GET", "/subjects/gone/versions/1?deleted=true", **header).tree["deleted"] is True


def test_an_unacceptable_media_type_is_refused(registry: LocalRegistry) -> None:
    assert registry.ask("GET", "/subjects", Accept="text/html").status == 406
    for kind in ("application/json", "*/*", "application/vnd.schemaregistry+json; qs=0.9, application/json; qs=0.5"):
        assert registry.ask("GET", "/subjects", Accept=kind).status == 200


def test_a_body_has_a_bound(registry: LocalRegistry) -> None:
    assert registry.ask("POST", "/subjects/s/versions", b" " * (5 << 20)).status == 413


def test_verbose_says_why_a_schema_is_incompatible(registry: LocalRegistry) -> None:
    answer = registry.ask("POST", "/compatibility/subjects/s/versions?verbose=true", body_of(BROKEN)).tree
    assert answer["is_compatible"] is False
    assert answer["messages"][0].startswith("{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE'")
    assert "'c'" in answer["messages"][0] and answer["messages"][1] == "{oldSchemaVersion: 2}"
    broken = registry.ask("POST", "/compatibility/subjects/s/versions?verbose=true", body_of("{")).tree
    assert broken["is_compatible"] is False and "JSON" in broken["messages"][0]


def test_one_schema_has_one_id_whatever_its_white_space_and_subject(registry: LocalRegistry) -> None:
    spaced = json.dumps(V1, indent=4)
    assert registry.register("s", spaced).tree == {"id": 1}
    assert registry.register("other", spaced).tree == {"id": 1}
    assert registry.ask("GET", "/schemas/ids/1/subjects").tree == ["other", "s"]


def test_a_deleted_schema_that_comes_back_keeps_its_id_under_a_new_version(registry: LocalRegistry) -> None:
    assert registry.register("gone", record("Gone")).tree == {"id": 3}
    assert registry.ask("GET", "/subjects/gone/versions?deleted=true").tree == [2]


def test_an_id_is_never_given_to_a_second_schema(registry: LocalRegistry) -> None:
    assert registry.register("last", "string").tree == {"id": 6}
    registry.ask("DELETE", "/subjects/last")
    registry.ask("DELETE", "/subjects/last?permanent=true")
    assert registry.ask("GET", "/schemas/ids/6").status == 404
    kept = dict(registry.topic.records)  # what compaction leaves
    again = LocalRegistry([(packed, value) for packed, value in kept.items() if value is not None])
    assert again.register("next", "long").tree == {"id": 7}


def test_references_are_followed_and_protected() -> None:
    registry = LocalRegistry()
    registry.register("river", record("cz.River", ("name", "string")))
    gauge = record("cz.Gauge", ("river", "cz.River"))
    refers = [{"name": "cz.River", "subject": "river", "version": -1}]
    assert registry.register("gauge", gauge, references=refers).tree == {"id": 2}
    stored = registry.ask("GET", "/schemas/ids/2").tree
    assert stored["references"] == [{"name": "cz.River", "subject": "river", "version": 1}]
    assert '"type":"River"' not in stored["schema"] or '"namespace":"cz"' in stored["schema"]
    resolved = json.loads(registry.ask("GET", "/schemas/ids/2?format=resolved").tree["schema"])
    assert resolved["fields"][0]["type"]["name"] == "River"
    assert registry.ask("GET", "/subjects/river/versions/1/referencedby").tree == [2]
    assert registry.ask("DELETE", "/subjects/river").tree["error_code"] == 42206
    assert registry.ask("DELETE", "/subjects/river/versions/1").tree["error_code"] == 42206
    registry.ask("DELETE", "/subjects/gauge")
    assert registry.ask("DELETE", "/subjects/river").tree == [1]
    assert registry.ask("DELETE", "/subjects/river?permanent=true").tree["error_code"] == 42206
    missing = [{"name": "cz.River", "subject": "nowhere", "version": 1}]
    assert registry.register("more", gauge, references=missing).tree["error_code"] == 42201


def test_a_context_has_ids_of_its_own() -> None:
    registry = LocalRegistry()
    registry.register("s", V1)
    registry.register("s", V2)
    assert registry.register(":.test:s", V2).tree == {"id": 1}
    assert registry.ask("GET", "/contexts").tree == [".", ".test"]
    assert registry.ask("GET", "/subjects").tree == [":.test:s", "s"]
    assert registry.ask("GET", "/subjects?subjectPrefix=:.test:").tree == [":.test:s"]
    assert registry.ask("GET", "/subjects?subjectPrefix=s").tree == ["s"]
    assert '"b"' not in registry.ask("GET", "/schemas/ids/1").tree["schema"]
    assert '"b"' in registry.ask("GET", "/schemas/ids/1?subject=:.test:").tree["schema"]
    assert registry.ask("PUT", "/config/:.test:", {"compatibility": "NONE"}).status == 200
    assert registry.register(":.test:s", BROKEN).status == 200 and registry.register("s", BROKEN).status == 409
    assert registry.ask("GET", "/config/:.:").tree == {"compatibilityLevel": "BACKWARD"}


def test_modes_say_what_may_be_written() -> None:
    registry = LocalRegistry()
    registry.register("s", V1)
    registry.ask("PUT", "/mode/s", {"mode": "READONLY"})
    for method, path, body in (
        ("POST", "/subjects/s/versions", body_of(V2)),
        ("DELETE", "/subjects/s", None),
        ("PUT", "/config/s", {"compatibility": "NONE"}),
    ):
        assert registry.ask(method, path, body).tree["error_code"] == 42205
    # Producers with auto.register.schemas go on beside a registry that stands by (redpanda docs 1686).
    assert registry.register("s", V1).tree == {"id": 1}
    assert registry.ask("DELETE", "/mode/s").tree == {"mode": "READONLY"}
    assert registry.ask("PUT", "/mode/new", {"mode": "IMPORT"}).status == 200
    assert registry.register("new", V2).tree["error_code"] == 42205
    assert registry.register("new", V2, id=70, version=5).tree == {"id": 70}
    assert registry.register("new", V1, id=70, version=6).tree["error_code"] == 42205
    assert registry.register("new", V2).tree == {"id": 70}
    assert registry.ask("GET", "/subjects/new/versions").tree == [5]
    registry.ask("DELETE", "/mode/new")
    assert registry.register("new", "string").status == 409
    assert registry.register("fresh", "string").tree == {"id": 71}


def test_schemas_are_compared_within_their_compatibility_group() -> None:
    registry = LocalRegistry()
    registry.ask("PUT", "/config/s", {"compatibilityGroup": "major"})
    assert registry.register("s", V1, metadata={"properties": {"major": "1"}}).status == 200
    assert registry.register("s", BROKEN, metadata={"properties": {"major": "1"}}).status == 409
    assert registry.register("s", BROKEN, metadata={"properties": {"major": "2"}}).tree == {"id": 2}
    assert registry.ask("GET", "/subjects/s/metadata?key=major&value=1").tree["version"] == 1
    assert registry.ask("GET", "/subjects/s/metadata?key=major&value=3").tree["error_code"] == 40403


def test_normalize_makes_one_schema_of_two_forms() -> None:
    registry = LocalRegistry()
    one = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "int", "y": 1, "x": 2}}]}
    two = {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "int", "x": 2, "y": 1}}]}
    first = registry.ask("POST", "/subjects/s/versions?normalize=true", body_of(one))
    assert registry.ask("POST", "/subjects/s/versions?normalize=true", body_of(two)).tree == first.tree
    assert registry.register("s", two).tree == first.tree
    registry.ask("PUT", "/config/t", {"normalize": True})
    assert registry.register("t", one).tree == registry.register("t", two).tree == first.tree


def test_a_subject_may_have_any_printable_sign() -> None:
    registry = LocalRegistry()
    assert registry.register("a%2Fb%20%C3%9Apa%3A%25", V1).tree == {"id": 1}
    assert registry.ask("GET", "/subjects").tree == ["a/b Úpa:%"]
    assert registry.ask("GET", "/subjects/a%2Fb%20%C3%9Apa%3A%25/versions").tree == [1]


def test_a_registry_that_reads_its_topic_again_knows_all(registry: LocalRegistry) -> None:
    registry.ask("PUT", "/config/s", {"compatibility": "NONE"})
    registry.ask("PUT", "/mode/half", {"mode": "READONLY"})
    again = registry.restarted()
    for path in ("/subjects?deleted=true", "/subjects/s/versions", "/schemas/ids/3", "/config/s", "/mode/half"):
        assert again.ask("GET", path).tree == registry.ask("GET", path).tree
    assert again.register("s", BROKEN).tree == {"id": 6}


@pytest.mark.parametrize("answers", [True, False])
def test_a_schema_that_is_there_already_is_registered_again_without_a_writer(
    registry: LocalRegistry, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """Whether this instance cannot reach the writer, or the writer cannot write."""

    async def unreachable(*_: object) -> RestAnswer:
        if answers:
            return refused(no_writer())
        raise no_writer()

    monkeypatch.setattr(registry.topic, "change", unreachable)
    assert registry.register("s", V1).tree == {"id": 1}
    for answer in (registry.register("s", BROKEN), registry.register("new", V1), registry.ask("DELETE", "/subjects/s")):
        assert (answer.status, answer.tree["error_code"]) == (500, no_writer().code)


def test_a_schema_that_is_there_already_is_registered_again_where_the_topic_is_a_mirror(
    registry: LocalRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mirrored(*_: object) -> RestAnswer:
        raise not_permitted("The registry is in read-only mode")

    monkeypatch.setattr(registry.topic, "change", mirrored)
    assert registry.register("s", V1).tree == {"id": 1}
    assert registry.register("s", BROKEN).tree["error_code"] == not_permitted("").code
