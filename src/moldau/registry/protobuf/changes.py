"""Which changes of a Protobuf schema keep old messages readable: a table of kinds of changes, and what finds them.

The kinds and the table are those of Confluent's registry. Fields are compared by number, messages by name.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from moldau.client.registry.proto.linking import LinkedFile, NamedType
from moldau.client.registry.proto.parsing import Field

ALLOWED = frozenset(
    ("MESSAGE_ADDED", "MESSAGE_MOVED", "ENUM_ADDED", "ENUM_REMOVED", "ENUM_CONST_ADDED", "ENUM_CONST_CHANGED",
     "ENUM_CONST_REMOVED", "FIELD_ADDED", "FIELD_REMOVED", "FIELD_NAME_CHANGED", "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
     "ONEOF_ADDED", "ONEOF_REMOVED", "ONEOF_FIELD_ADDED", "ONEOF_FIELD_MOVED_TO_TOP_LEVEL")
)  # fmt: skip
"""All other kinds break readers of old messages."""
BREAKING = {
    "PACKAGE_CHANGED": "the package at path '{path}' in the {new} schema is not that of the {old} schema",
    "MESSAGE_REMOVED": "the {new} schema lacks the message at path '{path}' of the {old} schema",
    "FIELD_KIND_CHANGED": "the field at path '{path}' is of another kind (scalar, message or map) in the {new} schema "
    "than in the {old} schema",
    "FIELD_SCALAR_KIND_CHANGED": "the scalar field at path '{path}' in the {new} schema is not encoded as in the {old} "
    "schema",
    "FIELD_NAMED_TYPE_CHANGED": "the field at path '{path}' in the {new} schema has another message type than in the "
    "{old} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "the numeric field at path '{path}' in the {new} schema has another label than in "
    "the {old} schema",
    "REQUIRED_FIELD_ADDED": "the {new} schema requires the field at path '{path}', which the {old} schema lacks",
    "REQUIRED_FIELD_REMOVED": "the {new} schema lacks the field at path '{path}' that the {old} schema requires",
    "ONEOF_FIELD_REMOVED": "the {new} schema lacks the field at path '{path}' of a oneof of the {old} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "the oneof at path '{path}' in the {new} schema has several fields that are "
    "outside of a oneof in the {old} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "the oneof at path '{path}' in the {new} schema has a field that excluded "
    "none of the others in the {old} schema",
}
_ENCODINGS = (
    ("number", ("INT32", "INT64", "UINT32", "UINT64", "BOOL", "ENUM")),
    ("signed", ("SINT32", "SINT64")),
    ("text", ("STRING", "BYTES")),
    ("fixed32", ("FIXED32", "SFIXED32")),
    ("fixed64", ("FIXED64", "SFIXED64")),
    ("float", ("FLOAT",)),
    ("double", ("DOUBLE",)),
)
ENCODING = {getattr(Field, f"TYPE_{name}"): encoding for encoding, names in _ENCODINGS for name in names}
"""Types with one encoding can read each other."""


class ProtobufChange(NamedTuple):
    """What changed, and where: `#/Message/3`."""

    kind: str
    path: str


ProtobufChanges = list[ProtobufChange]


def sentence(change: ProtobufChange, new: str, old: str) -> str:
    """The change in words; `new` and `old` are `new` and `old`, the other way round in the other direction."""
    said = BREAKING[change.kind].format(path=change.path, new=new, old=old)
    return f'{{errorType:"{change.kind}", description:"{said}"}}'


def breaking_changes(old: LinkedFile, new: LinkedFile) -> ProtobufChanges:
    """The changes that the table does not allow."""
    found = [ProtobufChange("PACKAGE_CHANGED", "#/")] if old.file.package != new.file.package else []
    found += _Comparison(old, new).messages(old.file.message_type, new.file.message_type, "#")
    return list(dict.fromkeys(one for one in found if one.kind not in ALLOWED))


class _Comparison:
    def __init__(self, old: LinkedFile, new: LinkedFile):
        self._old, self._new = old, new
        self._seen: set[tuple[str, str]] = set()

    def messages(self, old: Any, new: Any, path: str) -> ProtobufChanges:
        by_name = {one.name: one for one in new}
        found: ProtobufChanges = []
        for one in old:
            at = f"{path}/{one.name}"
            if one.options.map_entry:
                continue  # compared as the type of its field
            if one.name in by_name:
                found += self._message(one, by_name[one.name], at)
            else:
                found.append(ProtobufChange("MESSAGE_REMOVED", at))
        return found

    def _message(self, old: Any, new: Any, path: str) -> ProtobufChanges:
        before, after = {one.number: one for one in old.field}, {one.number: one for one in new.field}
        found = list(_merged_oneofs(old, new, before, path))
        gone = _gone_oneofs(old, new, after)
        for number in sorted(before.keys() | after.keys()):
            one, two = before.get(number), after.get(number)
            owner, field = (old, one) if two is None else (new, two)
            oneof = _oneof(owner, field)
            at = f"{path}/{oneof}/{number}" if oneof else f"{path}/{number}"
            if two is None:
                found.append(ProtobufChange(_removal(one, oneof, gone), at))
            elif one is None:
                is_required = two.label == Field.LABEL_REQUIRED
                found.append(ProtobufChange("REQUIRED_FIELD_ADDED" if is_required else "FIELD_ADDED", at))
            else:
                found += self._field(one, two, at, has_label=True)
        return found + self.messages(old.nested_type, new.nested_type, path)

    def _field(self, old: Any, new: Any, path: str, has_label: bool) -> ProtobufChanges:
        one, two = self._entry(self._old, old), self._entry(self._new, new)
        kinds = [_kind(field, entry) for field, entry in ((old, one), (new, two))]
        if kinds[0] != kinds[1]:
            return [ProtobufChange("FIELD_KIND_CHANGED", path)]
        if kinds[0] == "map":
            return [
                change
                for before, after in zip(one.field, two.field, strict=True)
                for change in self._field(before, after, path, has_label=False)
            ]
        if kinds[0] == "message":
            return self._of_message_type(old, new, path)
        encodings = ENCODING.get(old.type), ENCODING.get(new.type)
        if encodings[0] != encodings[1]:
            return [ProtobufChange("FIELD_SCALAR_KIND_CHANGED", path)]
        if has_label and old.label != new.label:
            kind = "FIELD_STRING_OR_BYTES_LABEL_CHANGED" if encodings[0] == "text" else "FIELD_NUMERIC_LABEL_CHANGED"
            return [ProtobufChange(kind, path)]
        return []

    def _of_message_type(self, old: Any, new: Any, path: str) -> ProtobufChanges:
        one, two = self._named(self._old, old), self._named(self._new, new)
        if one.local_name != two.local_name:
            return [ProtobufChange("FIELD_NAMED_TYPE_CHANGED", path)]
        # Messages of the files themselves are compared where they are defined; those of imports only here.
        pair = old.type_name, new.type_name
        if (one.file is self._old.file and two.file is self._new.file) or pair in self._seen:
            return []
        self._seen.add(pair)
        inner = self._message(one.descriptor, two.descriptor, f"{path}/{one.local_name}")
        if all(change.kind in ALLOWED for change in inner):
            return []
        return [*inner, ProtobufChange("FIELD_NAMED_TYPE_CHANGED", path)]

    @staticmethod
    def _named(linked: LinkedFile, field: Any) -> NamedType:
        return linked.types[field.type_name[1:]]

    def _entry(self, linked: LinkedFile, field: Any) -> Any:
        """The message of a map's entries, if the field is a map."""
        if field.type != Field.TYPE_MESSAGE:
            return None
        message = self._named(linked, field).descriptor
        return message if message.options.map_entry else None


def _kind(field: Any, entry: Any) -> str:
    if entry is not None:
        return "map"
    return "message" if field.type in (Field.TYPE_MESSAGE, Field.TYPE_GROUP) else "scalar"


def _removal(field: Any, oneof: str, gone: set[str]) -> str:
    if oneof:
        return "ONEOF_REMOVED" if oneof in gone else "ONEOF_FIELD_REMOVED"
    return "REQUIRED_FIELD_REMOVED" if field.label == Field.LABEL_REQUIRED else "FIELD_REMOVED"


def _oneof(message: Any, field: Any) -> str:
    """The name of the oneof that a field is in; empty for one of its own, which is what proto3 calls optional."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return ""
    return str(message.oneof_decl[field.oneof_index].name)


def _gone_oneofs(old: Any, new: Any, after: dict[int, Any]) -> set[str]:
    """The oneofs that are gone with all of their fields, which is allowed."""
    kept = {_oneof(new, field) for field in new.field}
    kept |= {_oneof(old, field) for field in old.field if field.number in after}
    return {_oneof(old, field) for field in old.field} - kept


def _merged_oneofs(old: Any, new: Any, before: dict[int, Any], path: str) -> Iterator[ProtobufChange]:
    """The oneofs in which fields exclude each other that did not before."""
    groups: dict[str, set[str]] = {}
    for field in new.field:
        oneof, known = _oneof(new, field), before.get(field.number)
        if oneof and known is not None:
            groups.setdefault(oneof, set()).add(
                f"oneof {_oneof(old, known)}" if _oneof(old, known) else str(field.number)
            )
    for oneof, members in groups.items():
        if len(members) > 1:
            alone = sum(not one.startswith("oneof ") for one in members)
            yield ProtobufChange(
                "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if alone > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}/{oneof}"
            )
