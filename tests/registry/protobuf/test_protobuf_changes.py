"""Which changes of a Protobuf schema keep old messages readable: the table, change by change."""

import pytest

from moldau.registry.protobuf.schema import ProtobufDefinition
from tests.registry.asking import LocalRegistry


def kinds(old: str, new: str) -> list[str]:
    def made(body: str) -> ProtobufDefinition:
        head = "" if body.startswith("syntax") else 'syntax = "proto3"; package p; '
        return ProtobufDefinition(head + body, {}, is_new=True)

    return [one.split('"')[1] for one in made(new).unreadable(made(old), "new", "old")]


def m(body: str) -> str:
    return f"message M {{ {body} }} message O {{ int32 x = 1; }} enum E {{ A = 0; }}"


def two(body: str) -> str:
    return f'syntax = "proto2"; package p; message M {{ {body} }}'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (m("int32 a = 1;"), m("int32 a = 1;"), []),
        ("message M {}", "message M {} message N {}", []),
        ("message M {} message N {}", "message M {}", ["MESSAGE_REMOVED"]),
        ("message M {} message N {}", "message N {} message M {}", []),
        ("message M { message I {} }", "message M {}", ["MESSAGE_REMOVED"]),
        ("message M {} enum E { A = 0; }", "message M {}", []),
        ("enum E { A = 0; B = 1; }", "enum E { A = 0; }", []), ("enum E { A = 0; }", "enum E { C = 0; B = 1; }", []),
        ('syntax = "proto3"; package a; message M {}', 'syntax = "proto3"; package b; message M {}',
         ["PACKAGE_CHANGED"]),
        (m(""), m("int32 a = 1;"), []), (m("int32 a = 1;"), m(""), []), (m("int32 a = 1;"), m("int32 b = 1;"), []),
        (m("int32 a = 1;"), m("int64 a = 1;"), []), (m("int32 a = 1;"), m("bool a = 1;"), []),
        (m("int32 a = 1;"), m("E a = 1;"), []), (m("int32 a = 1;"), m("sint32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (m("string a = 1;"), m("bytes a = 1;"), []), (m("fixed32 a = 1;"), m("sfixed32 a = 1;"), []),
        (m("float a = 1;"), m("double a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (m("int32 a = 1;"), m("O a = 1;"), ["FIELD_KIND_CHANGED"]),
        (m("O a = 1;"), m("map<int32, O> a = 1;"), ["FIELD_KIND_CHANGED"]),
        (m("O a = 1;"), m("M a = 1;"), ["FIELD_NAMED_TYPE_CHANGED"]), (m("M a = 1;"), m("M a = 1;"), []),
        (m("map<int32, string> a = 1;"), m("map<int64, bytes> a = 1;"), []),
        (m("map<int32, string> a = 1;"), m("map<int32, int32> a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
        (m("string a = 1;"), m("repeated string a = 1;"), []),
        (m("int32 a = 1;"), m("repeated int32 a = 1;"), ["FIELD_NUMERIC_LABEL_CHANGED"]),
        (m("int32 a = 1;"), m("optional int32 a = 1;"), []),
        (two("optional int32 a = 1;"), two("required int32 a = 1;"), ["FIELD_NUMERIC_LABEL_CHANGED"]),
        (two(""), two("required int32 a = 1;"), ["REQUIRED_FIELD_ADDED"]),
        (two("required int32 a = 1;"), two(""), ["REQUIRED_FIELD_REMOVED"]),
        (m("int32 a = 1;"), m("oneof o { int32 a = 1; }"), []), (m(""), m("oneof o { int32 a = 1; }"), []),
        (m("oneof o { int32 a = 1; }"), m("oneof o { int32 a = 1; int32 b = 2; }"), []),
        (m("oneof o { int32 a = 1; int32 b = 2; }"), m("oneof o { int32 a = 1; }"), ["ONEOF_FIELD_REMOVED"]),
        (m("oneof o { int32 a = 1; }"), m(""), []), (m("oneof o { int32 a = 1; }"), m("int32 a = 1;"), []),
        (m("oneof o { int32 a = 1; int32 b = 2; }"), m("oneof q { int32 a = 1; int32 b = 2; }"), []),
        (m("int32 a = 1; int32 b = 2;"), m("oneof o { int32 a = 1; int32 b = 2; }"),
         ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"]),
        (m("int32 a = 1; oneof o { int32 b = 2; }"), m("oneof o { int32 a = 1; int32 b = 2; }"),
         ["FIELD_MOVED_TO_EXISTING_ONEOF"]),
    ],
)  # fmt: skip
def test_each_change(old: str, new: str, expected: list[str]) -> None:
    assert kinds(old, new) == expected


def test_messages_of_imports_are_compared_too() -> None:
    registry = LocalRegistry()

    def file(body: str) -> str:
        return f'syntax = "proto3"; package p; {body}'

    for kind in ("int32 x = 1;", "int64 x = 1;", "string x = 1;"):
        registry.ask("PUT", "/config/imported", {"compatibility": "NONE"})
        registry.register("imported", file(f"message I {{ {kind} }}"), schemaType="PROTOBUF")
    answers = []
    for version in (1, 2, 3):
        refers = [{"name": "i.proto", "subject": "imported", "version": version}]
        text = file('import "i.proto"; message M { I i = 1; }')
        answers.append(registry.register("s", text, schemaType="PROTOBUF", references=refers))
    assert [answer.status for answer in answers] == [200, 200, 409]
    assert "FIELD_SCALAR_KIND_CHANGED" in answers[2].tree["message"]


def test_kinds_do_not_follow_each_other() -> None:
    registry = LocalRegistry()
    registry.register("s", '"int"')
    answer = registry.register("s", 'syntax = "proto3"; message M {}', schemaType="PROTOBUF")
    assert answer.status == 409 and "different schema type" in answer.tree["message"]
    assert registry.ask("GET", "/schemas/types").tree == ["AVRO", "JSON", "PROTOBUF"]
