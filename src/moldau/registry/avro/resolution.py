"""Whether one Avro schema can read what another has written: the section "Schema Resolution" of the specification.

The pairs of different primitive types that resolve are a table. Names of records, enums and fixed are compared without
their namespace, or by an alias of the reader.
"""

from typing import NamedTuple

from moldau.registry.avro.nodes import ABSENT, AvroNode
from moldau.registry.refusals import invalid_schema

PAIRS_MAX = 100_000

PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""A reader's type -> the other types of a writer that it can read."""


class AvroProblem(NamedTuple):
    """Why a schema cannot read another: Avro's name of the reason, where in the reader, and a detail."""

    kind: str
    path: str
    detail: str


_SENTENCES = {
    "FIXED_SIZE_MISMATCH": "fixed types at path '{path}' have another size in the {reader} and the {writer} schema",
    "TYPE_MISMATCH": "the type at path '{path}' in the {reader} schema does not fit that of the {writer} schema",
    "NAME_MISMATCH": "the types at path '{path}' in the {reader} and the {writer} schema have different names",
    "MISSING_ENUM_SYMBOLS": "the enum at path '{path}' in the {reader} schema lacks symbols of the {writer} schema",
    "MISSING_UNION_BRANCH": "the union at path '{path}' in the {reader} schema has no type for one that the {writer} "
    "schema writes",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "the field '{detail}' at path '{path}' in the {reader} schema has no "
    "default, and the {writer} schema does not have it",
}


def reading_problems(reader: AvroNode, writer: AvroNode, reader_word: str, writer_word: str) -> list[str]:
    """Why the reader cannot read what the writer wrote, one text for each reason; empty if it can. The words are
    `new` and `old`."""
    found = _Resolution().all_problems(reader, writer)
    return [
        f"{{errorType:'{one.kind}', description:'"
        + _SENTENCES[one.kind].format(path=one.path or "/", reader=reader_word, writer=writer_word, detail=one.detail)
        + f"', additionalInfo:'{one.detail}'}}"
        for one in found
    ]


class _Resolution:
    """Pairs of types that are being compared count as resolved, which ends recursive types. A pair that counted so and
    failed later makes all be compared again, until no more fail."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, int], list[AvroProblem]] = {}
        self._failed: dict[tuple[int, int], list[AvroProblem]] = {}
        self._left = PAIRS_MAX

    def all_problems(self, reader: AvroNode, writer: AvroNode) -> list[AvroProblem]:
        while True:
            before, self._done = len(self._failed), {}
            found = self.problems(reader, writer, "")
            if len(self._failed) == before:
                return list(dict.fromkeys(found))

    def problems(self, reader: AvroNode, writer: AvroNode, path: str) -> list[AvroProblem]:
        pair = id(reader), id(writer)
        if pair in self._done:
            return self._done[pair]
        self._left -= 1
        if self._left < 0:
            raise invalid_schema(f"more than {PAIRS_MAX} pairs of its types are to be compared")
        self._done[pair] = self._failed.get(pair, [])
        found = self._done[pair] = self._compare(reader, writer, path)
        if found:
            self._failed[pair] = found
        return found

    def _compare(self, reader: AvroNode, writer: AvroNode, path: str) -> list[AvroProblem]:
        if writer.kind == "union":
            return self._of_writer_union(reader, writer, path)
        if reader.kind == "union":
            if any(not self.problems(part, writer, path) for part in reader.parts):
                return []
            return [AvroProblem("MISSING_UNION_BRANCH", path, f"no type for {_shown(writer)}")]
        if _kind(reader) != _kind(writer):
            if writer.kind in PROMOTIONS.get(reader.kind, ()):
                return []
            detail = f"{_shown(writer)} cannot be read as {_shown(reader)}"
            return [AvroProblem("TYPE_MISMATCH", f"{path}/type" if reader.name else path, detail)]
        if reader.kind in ("array", "map"):
            part = "items" if reader.kind == "array" else "values"
            return self.problems(reader.parts[0], writer.parts[0], f"{path}/{part}")
        if not reader.name:
            return []
        found = []
        if reader.short_name != writer.short_name and writer.name not in reader.aliases:
            found.append(AvroProblem("NAME_MISMATCH", f"{path}/name", f"expected: {writer.name}"))
        if reader.kind == "fixed" and reader.size != writer.size:
            found.append(AvroProblem("FIXED_SIZE_MISMATCH", f"{path}/size", f"{reader.size} and {writer.size}"))
        if reader.kind == "enum" and reader.default is ABSENT:
            known = frozenset(reader.symbols)
            missing = [one for one in writer.symbols if one not in known]
            if missing:
                found.append(AvroProblem("MISSING_ENUM_SYMBOLS", f"{path}/symbols", f"[{', '.join(missing)}]"))
        return found + self._of_fields(reader, writer, path)

    def _of_writer_union(self, reader: AvroNode, writer: AvroNode, path: str) -> list[AvroProblem]:
        found = []
        for number, part in enumerate(writer.parts):
            if reader.kind != "union":
                found += self.problems(reader, part, path)
            elif all(self.problems(one, part, f"{path}/{number}") for one in reader.parts):
                found.append(AvroProblem("MISSING_UNION_BRANCH", f"{path}/{number}", f"no type for {_shown(part)}"))
        return found

    def _of_fields(self, reader: AvroNode, writer: AvroNode, path: str) -> list[AvroProblem]:
        found = []
        by_name = {one.name: one for one in writer.fields}
        for number, field in enumerate(reader.fields):
            other = next((by_name[name] for name in (field.name, *field.aliases) if name in by_name), None)
            at = f"{path}/fields/{number}"
            if other is not None:
                found += self.problems(field.type, other.type, f"{at}/type")
            elif field.default is ABSENT:
                found.append(AvroProblem("READER_FIELD_MISSING_DEFAULT_VALUE", at, field.name))
        return found


def _kind(node: AvroNode) -> str:
    return "record" if node.kind == "error" else node.kind


def _shown(node: AvroNode) -> str:
    return node.name or node.kind
