"""`moldau schemas`: what is in a schema registry, ours or another with Confluent's interface."""

import difflib
import json
from pathlib import Path
from typing import Annotated

from moldau.cli.command_line import Argument, Group, Option, UsageError
from moldau.cli.options import Json, text_in
from moldau.cli.output import print_json, print_table
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, JSON, PROTOBUF, Reference, RegisteredSchema, Schema

app = Group("schemas")

_KINDS = {".avsc": AVRO, ".json": JSON, ".proto": PROTOBUF}
Url = Annotated[
    str,
    Option(
        "--schema-registry",
        envvar="MOLDAU_SCHEMA_REGISTRY",
        metavar="URL,...",
        help="The address of the registry; user:password@ in it if needed.",
    ),
]
LOCAL = "http://localhost:8081"
Subject = Annotated[str, Argument("SUBJECT", help="The subject, such as orders-value.")]
SchemaFile = Annotated[Path, Argument("FILE", help="The schema: .avsc (Avro), .json (JSON Schema) or .proto.")]
Kind = Annotated[str, Option("--type", help="AVRO, JSON or PROTOBUF, instead of the type by the file's name.")]
References = Annotated[
    list[str] | None,
    Option("--reference", metavar="NAME=SUBJECT:VERSION", help="A schema that this one refers to; repeatable."),
]
Version = Annotated[str, Option(metavar="N", help="The version; `latest` by default.")]


@app.command("list")
def list_subjects(
    prefix: Annotated[str, Argument("[PREFIX]", help="Only subjects that begin with it.")] = "",
    schema_registry: Url = LOCAL,
    as_json: Json = False,
) -> None:
    """
    List subjects: their versions, and the id and type of the latest.

    Examples:

      moldau schemas list

      moldau schemas list orders --schema-registry http://registry:8081 --json
    """
    registry = SchemaRegistry(schema_registry)
    rows = []
    for subject in registry.subjects():
        if subject.startswith(prefix):
            latest = registry.version(subject)
            rows.append((subject, registry.versions(subject), latest.id, latest.schema.kind))
    if as_json:
        names = ("subject", "versions", "latest_id", "type")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_table(("SUBJECT", "VERSIONS", "LATEST ID", "TYPE"), rows)


@app.command()
def get(subject: Subject, version: Version = "latest", schema_registry: Url = LOCAL, as_json: Json = False) -> None:
    """
    Print the schema of a version.

    Examples:

      moldau schemas get orders-value

      moldau schemas get orders-value --version 2 --json
    """
    found = SchemaRegistry(schema_registry).version(subject, _number(version))
    if not as_json:
        print(_readable(found.schema).rstrip("\n"))
        return
    references = [{"name": one.name, "subject": one.subject, "version": one.version} for one in found.schema.references]
    print_json({
        "subject": found.subject, "version": found.version, "id": found.id, "type": found.schema.kind,
        "references": references, "schema": found.schema.text,
    })  # fmt: skip


@app.command()
def register(
    subject: Subject,
    file: SchemaFile,
    kind: Kind = "",
    reference: References = None,
    normalize: Annotated[bool, Option(help="Compare schemas in their normalized form.")] = False,
    schema_registry: Url = LOCAL,
    as_json: Json = False,
) -> None:
    """
    Register a schema as the next version of a subject, and print its id. A schema that the subject already has keeps
    its version.

    Examples:

      moldau schemas register orders-value order.avsc

      moldau schemas register gauges-value gauge.proto --reference river.proto=river:1
    """
    schema = _schema(file, kind, reference)
    schema_id = SchemaRegistry(schema_registry).register(subject, schema, normalize=normalize)
    if as_json:
        print_json({"subject": subject, "id": schema_id})
    else:
        print(schema_id)


@app.command()
def check(
    subject: Subject,
    file: SchemaFile,
    version: Annotated[str, Option(metavar="N", help="Compare with this version only.")] = "",
    kind: Kind = "",
    reference: References = None,
    schema_registry: Url = LOCAL,
    as_json: Json = False,
) -> int:
    """
    Ask whether a schema may follow the versions of a subject, without registering it. The exit code is 1 if not.

    Examples:

      moldau schemas check orders-value order.avsc

      moldau schemas check orders-value order.avsc --version latest
    """
    schema, number = _schema(file, kind, reference), _number(version) if version else None
    found = SchemaRegistry(schema_registry).incompatibilities(subject, schema, number)
    if as_json:
        print_json({"subject": subject, "compatible": not found, "reasons": list(found)})
    else:
        print("\n".join(found) if found else f"{file} may be the next version of {subject}")
    return 1 if found else 0


@app.command()
def diff(
    subject: Subject,
    file: Annotated[str, Argument("[FILE]", help="A schema to compare with, instead of a second version.")] = "",
    old: Annotated[str, Option("--from", metavar="N", help="A version; the one before --to by default.")] = "",
    new: Annotated[str, Option("--to", metavar="N", help="A version; `latest` by default.")] = "latest",
    schema_registry: Url = LOCAL,
    as_json: Json = False,
) -> int:
    """
    Show what changed between two versions, or between a version and a file. The exit code is 1 if they differ.

    Examples:

      moldau schemas diff orders-value

      moldau schemas diff orders-value --from 1 --to 3

      moldau schemas diff orders-value order.avsc
    """
    if file and old and new != "latest":
        raise UsageError("FILE is compared with one version: leave out --from or --to")
    registry = SchemaRegistry(schema_registry)
    after = registry.version(subject, _number(new))
    if file:
        before, name, text = (
            registry.version(subject, _number(old)) if old else after,
            file,
            _readable(_schema(Path(file), after.schema.kind, None)),
        )
    else:
        number = _number(old) if old else _before(registry, after)
        before, name, text = registry.version(subject, number), _title(after), _readable(after.schema)
    lines = list(
        difflib.unified_diff(
            _readable(before.schema).splitlines(), text.splitlines(), _title(before), name, lineterm=""
        )
    )
    if as_json:
        print_json({"subject": subject, "from": _title(before), "to": name, "changed": bool(lines), "diff": lines})
    elif lines:
        print("\n".join(lines))
    return 1 if lines else 0


def _before(registry: SchemaRegistry, after: RegisteredSchema) -> int:
    """The version before this one; itself if it is the first."""
    older = [one for one in registry.versions(after.subject) if one < after.version]
    return older[-1] if older else after.version


def _title(version: RegisteredSchema) -> str:
    return f"{version.subject} version {version.version}"


def _readable(schema: Schema) -> str:
    """The text in lines: JSON is indented."""
    if schema.kind == PROTOBUF:
        return schema.text
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return schema.text


def _schema(file: Path, kind: str, references: list[str] | None) -> Schema:
    """The schema in a file, `-` is standard input. Raises `UsageError`, `ConfigError`, `OSError`."""
    kind = kind.upper() or _KINDS.get(file.suffix.lower(), AVRO)
    if kind not in _KINDS.values():
        raise UsageError(f"--type {kind} is not {', '.join(_KINDS.values())}")
    return Schema(text_in(file), kind, tuple(_reference(one) for one in references or ()))


def _reference(text: str) -> Reference:
    name, equals, rest = text.rpartition("=")
    subject, _, version = rest.rpartition(":")
    if not equals or not name or not subject or not version.isdecimal():
        raise UsageError(f"--reference {text!r} is not of the form NAME=SUBJECT:VERSION")
    return Reference(name, subject, int(version))


def _number(text: str) -> int | str:
    """A version on the command line. Raises `UsageError`."""
    if text == "latest":
        return text
    if not text.isdecimal() or not int(text):
        raise UsageError(f"{text!r} is not a version: a number from 1, or latest")
    return int(text)
