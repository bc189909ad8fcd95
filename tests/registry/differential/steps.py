"""The script: requests in their order, each with a name that says what is asked, on what those before have left."""

import json
from typing import Any, NamedTuple
from urllib.parse import quote


class Step(NamedTuple):
    name: str
    method: str
    path: str
    body: Any = None


def record(name: str, *fields: Any) -> str:
    """An Avro record; a field is (name, type) or (name, type, default)."""
    made = [{"name": one[0], "type": one[1], **({"default": one[2]} if len(one) > 2 else {})} for one in fields]
    return json.dumps({"type": "record", "name": name, "fields": made}, separators=(",", ":"))


RIVER = record("River", ("name", "string"))
LONGER = record("River", ("name", "string"), ("km", "double", 0.0))
BROKEN = record("River", ("name", "string"), ("cm", "int"))
OTHER = record("Lake", ("name", "string"))
USES = record("Gauge", ("river", "River"))
LEVEL = '{"type":"object","properties":{"cm":{"type":"integer"}},"additionalProperties":false}'
LEVEL_BROKEN = '{"type":"object","properties":{"cm":{"type":"string"}},"additionalProperties":false}'
PROTO = 'syntax = "proto3";\npackage cz;\n\nmessage River {\n  string name = 1;\n}\n'
PROTO_MORE = 'syntax = "proto3";\npackage cz;\n\nmessage River {\n  string name = 1;\n  int32 cm = 2;\n}\n'
PROTO_BROKEN = 'syntax = "proto3";\npackage cz;\n\nmessage River {\n  int32 name = 1;\n}\n'


def of(schema: str, **more: Any) -> dict[str, Any]:
    return {"schema": schema, **more}


def json_of(schema: str) -> dict[str, Any]:
    return of(schema, schemaType="JSON")


def proto(schema: str) -> dict[str, Any]:
    return of(schema, schemaType="PROTOBUF")


REFERS = [{"name": "River", "subject": "river", "version": 1}]
EMPTY = [
    Step("subjects of an empty registry", "GET", "/subjects"),
    Step("kinds of schemas", "GET", "/schemas/types"),
    Step("level of a new registry", "GET", "/config"),
    Step("mode of a new registry", "GET", "/mode"),
    Step("the usual level, for both", "PUT", "/config", {"compatibility": "BACKWARD"}),
    Step("versions of an unknown subject", "GET", "/subjects/nowhere/versions"),
    Step("latest version of an unknown subject", "GET", "/subjects/nowhere/versions/latest"),
    Step("unknown id", "GET", "/schemas/ids/999999"),
    Step("subjects of an unknown id", "GET", "/schemas/ids/999999/subjects"),
    Step("versions of an unknown id", "GET", "/schemas/ids/999999/versions"),
    Step("level of an unknown subject", "GET", "/config/nowhere"),
    Step("level of an unknown subject, or the registry's", "GET", "/config/nowhere?defaultToGlobal=true"),
    Step("mode of an unknown subject", "GET", "/mode/nowhere"),
    Step("deletion of an unknown subject", "DELETE", "/subjects/nowhere"),
    Step("deletion of a version of an unknown subject", "DELETE", "/subjects/nowhere/versions/1"),
    Step("look-up in an unknown subject", "POST", "/subjects/nowhere", of(RIVER)),
    Step("compatibility with the latest of an unknown subject", "POST",
         "/compatibility/subjects/nowhere/versions/latest", of(RIVER)),
    Step("compatibility with all versions of an unknown subject", "POST",
         "/compatibility/subjects/nowhere/versions", of(RIVER)),
    Step("references to a version of an unknown subject", "GET", "/subjects/nowhere/versions/1/referencedby"),
    Step("a guid that nothing has", "GET", "/schemas/guids/00000000-0000-0000-0000-000000000000"),
]  # fmt: skip
AVRO = [
    Step("registration", "POST", "/subjects/river/versions", of(RIVER)),
    Step("registration once more", "POST", "/subjects/river/versions", of(RIVER)),
    Step("registration with a type", "POST", "/subjects/river/versions", of(RIVER, schemaType="AVRO")),
    Step("the same schema in another subject", "POST", "/subjects/other/versions", of(RIVER)),
    Step("the same schema with white space", "POST", "/subjects/spaced/versions",
         of(json.dumps(json.loads(RIVER), indent=2))),
    Step("a second version", "POST", "/subjects/river/versions", of(LONGER)),
    Step("a version that breaks readers", "POST", "/subjects/river/versions", of(BROKEN)),
    Step("a schema that is not Avro", "POST", "/subjects/wrong/versions", of('{"type": "recrod"}')),
    Step("a schema that is not JSON", "POST", "/subjects/wrong/versions", of("{")),
    Step("an empty schema", "POST", "/subjects/wrong/versions", of("")),
    Step("no schema", "POST", "/subjects/wrong/versions", {}),
    Step("an unknown kind", "POST", "/subjects/wrong/versions", of(RIVER, schemaType="XML")),
    Step("a body that is not JSON", "POST", "/subjects/wrong/versions", b"{"),
    Step("a primitive type", "POST", "/subjects/primitive/versions", of('"string"')),
    Step("subjects", "GET", "/subjects"),
    Step("subjects by prefix", "GET", "/subjects?subjectPrefix=ri"),
    Step("versions", "GET", "/subjects/river/versions"),
    Step("version by number", "GET", "/subjects/river/versions/1"),
    Step("latest version", "GET", "/subjects/river/versions/latest"),
    Step("version -1", "GET", "/subjects/river/versions/-1"),
    Step("a version that is not there", "GET", "/subjects/river/versions/77"),
    Step("version 0", "GET", "/subjects/river/versions/0"),
    Step("a version that is a word", "GET", "/subjects/river/versions/first"),
    Step("text of a version", "GET", "/subjects/river/versions/1/schema"),
    Step("text of a version that is not there", "GET", "/subjects/river/versions/77/schema"),
    Step("schema by id", "GET", "/schemas/ids/{river}"),
    Step("text by id", "GET", "/schemas/ids/{river}/schema"),
    Step("subjects of an id", "GET", "/schemas/ids/{river}/subjects"),
    Step("versions of an id", "GET", "/schemas/ids/{river}/versions"),
    Step("look-up", "POST", "/subjects/river", of(RIVER)),
    Step("look-up of another schema", "POST", "/subjects/river", of(OTHER)),
    Step("look-up of a wrong schema", "POST", "/subjects/river", of("{")),
    Step("a subject with a slash", "POST", f"/subjects/{quote('a/b', safe='')}/versions", of(OTHER)),
    Step("versions of a subject with a slash", "GET", f"/subjects/{quote('a/b', safe='')}/versions"),
    Step("compatible with the latest", "POST", "/compatibility/subjects/river/versions/latest", of(LONGER)),
    Step("incompatible with the latest", "POST", "/compatibility/subjects/river/versions/latest", of(BROKEN)),
    Step("compatible with a number", "POST", "/compatibility/subjects/river/versions/1", of(LONGER)),
    Step("incompatible with all", "POST", "/compatibility/subjects/river/versions", of(BROKEN)),
    Step("compatibility with a version that is not there", "POST",
         "/compatibility/subjects/river/versions/77", of(RIVER)),
    Step("compatibility of a wrong schema", "POST", "/compatibility/subjects/river/versions/latest", of("{")),
]  # fmt: skip
OTHERS = [
    Step("a reference", "POST", "/subjects/gauge/versions", of(USES, references=REFERS)),
    Step("a version with a reference", "GET", "/subjects/gauge/versions/1"),
    Step("referenced by", "GET", "/subjects/river/versions/1/referencedby"),
    Step("referenced by nothing", "GET", "/subjects/gauge/versions/1/referencedby"),
    Step("deletion of what is referred to", "DELETE", "/subjects/river/versions/1"),
    Step("a reference to nothing", "POST", "/subjects/lost/versions",
         of(USES, references=[{"name": "River", "subject": "nowhere", "version": 1}])),
    Step("JSON Schema", "POST", "/subjects/level/versions", json_of(LEVEL)),
    Step("a version of JSON Schema", "GET", "/subjects/level/versions/1"),
    Step("JSON Schema that breaks readers", "POST", "/subjects/level/versions", json_of(LEVEL_BROKEN)),
    Step("JSON Schema that is wrong", "POST", "/subjects/wrong/versions", json_of('{"type": 5}')),
    Step("Protobuf", "POST", "/subjects/proto/versions", proto(PROTO)),
    Step("a version of Protobuf", "GET", "/subjects/proto/versions/1"),
    Step("Protobuf with another field", "POST", "/subjects/proto/versions", proto(PROTO_MORE)),
    Step("Protobuf that breaks readers", "POST", "/subjects/proto/versions", proto(PROTO_BROKEN)),
    Step("Protobuf that is wrong", "POST", "/subjects/wrong/versions", proto("message {")),
    Step("another kind in a subject of Avro", "POST", "/subjects/other/versions", json_of(LEVEL)),
]  # fmt: skip
SETTINGS = [
    Step("a level", "PUT", "/config/river", {"compatibility": "FULL"}),
    Step("the level", "GET", "/config/river"),
    Step("a level that does not exist", "PUT", "/config/river", {"compatibility": "SOME"}),
    Step("no level", "PUT", "/config/river", {}),
    Step("a level before its subject", "PUT", "/config/early", {"compatibility": "NONE"}),
    Step("the level before its subject", "GET", "/config/early"),
    Step("the registry's level", "PUT", "/config", {"compatibility": "FORWARD"}),
    Step("the registry's level asked for", "GET", "/config"),
    Step("a wrong level of the registry", "PUT", "/config", {"compatibility": ""}),
    Step("a level is taken back", "DELETE", "/config/river"),
    Step("the level that was taken back", "GET", "/config/river"),
    Step("a level that was never set is taken back", "DELETE", "/config/nowhere"),
    Step("no level checks nothing", "POST", "/subjects/early/versions", of(BROKEN)),
    Step("an incompatible version without checks", "POST", "/subjects/early/versions", of(OTHER)),
    Step("a mode", "PUT", "/mode/other", {"mode": "READONLY"}),
    Step("the mode", "GET", "/mode/other"),
    Step("a registration where only reading is allowed", "POST", "/subjects/other/versions", of(LONGER)),
    Step("a mode that does not exist", "PUT", "/mode/other", {"mode": "SOME"}),
    Step("a mode is taken back", "DELETE", "/mode/other"),
    Step("the mode of the registry", "GET", "/mode"),
]
DELETIONS = [
    Step("permanent deletion of a version before the soft one", "DELETE", "/subjects/early/versions/1?permanent=true"),
    Step("deletion of a version", "DELETE", "/subjects/early/versions/1"),
    Step("deletion of a version once more", "DELETE", "/subjects/early/versions/1"),
    Step("a deleted version", "GET", "/subjects/early/versions/1"),
    Step("a deleted version among the deleted", "GET", "/subjects/early/versions/1?deleted=true"),
    Step("versions without the deleted", "GET", "/subjects/early/versions"),
    Step("versions with the deleted", "GET", "/subjects/early/versions?deleted=true"),
    Step("permanent deletion of a version", "DELETE", "/subjects/early/versions/1?permanent=true"),
    Step("permanent deletion of a version once more", "DELETE", "/subjects/early/versions/1?permanent=true"),
    Step("deletion of a version that is not there", "DELETE", "/subjects/early/versions/77"),
    Step("deletion of a version that is a word", "DELETE", "/subjects/early/versions/first"),
    Step("permanent deletion of a subject before the soft one", "DELETE", "/subjects/spaced?permanent=true"),
    Step("deletion of a subject", "DELETE", "/subjects/spaced"),
    Step("deletion of a subject once more", "DELETE", "/subjects/spaced"),
    Step("versions of a deleted subject", "GET", "/subjects/spaced/versions"),
    Step("look-up in a deleted subject", "POST", "/subjects/spaced", of(RIVER)),
    Step("look-up among the deleted", "POST", "/subjects/spaced?deleted=true", of(RIVER)),
    Step("subjects without the deleted", "GET", "/subjects"),
    Step("subjects with the deleted", "GET", "/subjects?deleted=true"),
    Step("schema by id after a deletion", "GET", "/schemas/ids/{river}"),
    Step("permanent deletion of a subject", "DELETE", "/subjects/spaced?permanent=true"),
    Step("permanent deletion of a subject once more", "DELETE", "/subjects/spaced?permanent=true"),
    Step("a subject registered again", "POST", "/subjects/spaced/versions", of(RIVER)),
    Step("its versions", "GET", "/subjects/spaced/versions"),
]
STEPS = [*EMPTY, *AVRO, *OTHERS, *SETTINGS, *DELETIONS]
