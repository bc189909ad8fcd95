"""Declares each message once, and reads and writes it in all its versions.

A message is a dataclass whose fields are declared by the kinds below. A field says in which versions it is on the
wire (`since`, `until`), in which it may be null, and its tag if it is a tagged field; a version that lacks the field
leaves its default when reading and drops it when writing. One class therefore is the *one shape* of all versions:

    @message
    class HeartbeatRequest:
        group_id: str = STRING()
        generation_id: int = INT32()
        member_id: str = STRING()
        group_instance_id: str | None = STRING(since=3, nullable=3, default=None)

`reader` and `writer` build one function for each (class, version, flexible) on first use and keep it. Sources: Kafka's
protocol guide, KIP-482 (flexible versions), KIP-893 (nullable structs). Hostile counts: an array's count is compared
with the number of elements that the remaining bytes could hold and with `ARRAY_MAX`; and since three bytes may stand
for an object of 130, a reader may be given an `ElementBudget` of objects, far above any real client's message.
"""

import dataclasses
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from moldau.errors import ProtocolViolation
from moldau.protocol.first_init import first_init
from moldau.protocol.primitives import (
    SIZES,
    ZERO_UUID,
    Buffer,
    Read,
    Write,
    check_tagged_fields,
    length_reader,
    length_writer,
    primitive,
    read_uvarint,
    skip_tagged_fields,
    write_uvarint,
)

LATEST = 32767
NEVER = LATEST + 1
ELEMENTS_MAX = 100_000
"""The most objects of one request: about 13 MB of small objects, and some tenths of a second to read them. That is why
a large request is read in the executor (`codec.WIDE_BYTES`)."""
ARRAY_MAX = 1_000_000
"""The most elements of one array in any message, as in Kafka 4.4 (CVE-2026-111108)."""
WIDE_ELEMENTS = 2000
"""Responses with more elements are packed in the executor."""
T = TypeVar("T")
_readers: dict[tuple[type, int, bool], Read] = {}
_nested_names: dict[type, tuple[str, ...]] = {}
_writers: dict[tuple[type, int, bool], Write] = {}


def _equal(one: Any, other: Any) -> bool:
    names: tuple[str, ...] = one.__slots__
    return type(one) is type(other) and all(getattr(one, name) == getattr(other, name) for name in names)


SECRETS = frozenset({"auth_bytes", "hmac", "proof", "salt", "salted_password"})
"""Fields whose values are in no `repr`, and so in no log."""


def _shown(one: Any) -> str:
    names: tuple[str, ...] = one.__slots__
    shown = ((name, "..." if name in SECRETS else repr(getattr(one, name))) for name in names)
    return f"{type(one).__name__}({', '.join(f'{name}={text}' for name, text in shown)})"


@dataclass_transform(kw_only_default=True)
def message(declared: type[T]) -> type[T]:
    """Turn a class of declared fields into a message: a dataclass with slots and keyword-only fields.

    All messages share their `__eq__` and `__repr__`, and their `__init__` is compiled when the first one is made:
    compiling them at the import would be most of the cost of a start-up.
    """
    # Without one `dataclass` writes the signature into it, which takes longer than all the rest.
    declared.__doc__ = declared.__doc__ or declared.__name__
    made = dataclasses.dataclass(slots=True, kw_only=True, init=False, eq=False, repr=False, match_args=False)(declared)
    made.__init__ = first_init  # type: ignore[method-assign]
    made.__eq__, made.__repr__, made.__hash__ = _equal, _shown, None  # type: ignore[method-assign, assignment]
    return made


class ElementBudget:
    """How many more objects one message may still become; spending more raises `ProtocolViolation`."""

    __slots__ = ("left",)

    def __init__(self, objects: int):
        self.left = objects

    def spend(self, objects: int) -> None:
        self.left -= objects
        if self.left < 0:
            raise ProtocolViolation("a message of more elements than any client sends")


class Spec(NamedTuple):
    """How one field appears on the wire. `kind` is a primitive's name or a message class."""

    kind: Any
    array: bool
    since: int
    until: int
    nullable: int
    nullable_until: int
    tag: int | None
    tagged_since: int


def _field(
    kind: Any,
    *,
    array: bool,
    default: Any,
    since: int = 0,
    until: int = LATEST,
    nullable: int = NEVER,
    nullable_until: int = LATEST,
    tag: int | None = None,
    tagged: int = 0,
) -> Any:
    spec = Spec(kind, array, since, until, nullable, nullable_until, tag, max(since, tagged))
    if callable(default):
        return dataclasses.field(default_factory=default, metadata={"wire": spec})
    return dataclasses.field(default=default, metadata={"wire": spec})


def _kind(name: str, zero: Any) -> Callable[..., Any]:
    def declare(*, default: Any = zero, **where: Any) -> Any:
        return _field(name, array=False, default=default, **where)

    declare.__name__ = name
    return declare


BOOL = _kind("bool", False)
INT8 = _kind("int8", 0)
INT16 = _kind("int16", 0)
INT32 = _kind("int32", 0)
INT64 = _kind("int64", 0)
FLOAT64 = _kind("float64", 0.0)
STRING = _kind("string", "")
BYTES = _kind("bytes", b"")
RECORDS = _kind("records", None)
UUID = _kind("uuid", ZERO_UUID)


def STRUCT(message: type, *, default: Any = None, **where: Any) -> Any:  # noqa: N802
    """A nested message; null is only allowed from version `nullable` on."""
    return _field(
        message, array=False, default=message if default is None and "nullable" not in where else default, **where
    )


def ARRAY(kind: Any, *, default: Any = list, **where: Any) -> Any:  # noqa: N802
    """An array of a message class or of a primitive kind (`INT32`, `STRING`, ...)."""
    return _field(kind if isinstance(kind, type) else kind.__name__, array=True, default=default, **where)


def specs(message: type) -> list[tuple[str, Spec, Any]]:
    """`(name, spec, default)` of every field that is on the wire in some version, in wire order."""
    fields = []
    for f in dataclasses.fields(message):
        if "wire" in f.metadata:
            default = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            fields.append((f.name, f.metadata["wire"], default))
    return fields


def least_size(message: type, version: int, flexible: bool) -> int:
    """The fewest bytes that one such message takes on the wire, at least 1."""
    size = 1 if flexible else 0
    for _, spec, _ in specs(message):
        if not spec.since <= version <= spec.until or (spec.tag is not None and version >= spec.tagged_since):
            continue
        if spec.array:
            size += 1 if flexible else 4
        elif isinstance(spec.kind, type):
            size += 1 if spec.nullable <= version else least_size(spec.kind, version, flexible)
        else:
            size += SIZES.get(spec.kind) or (1 if flexible else 2 if spec.kind == "string" else 4)
    return max(size, 1)


def _item(spec: Spec, version: int, flexible: bool) -> tuple[int, Any, Any]:
    """The least size of an array's element and, unless it is a message, its primitive reader and writer."""
    if isinstance(spec.kind, type):
        return least_size(spec.kind, version, flexible), None, None
    return SIZES.get(spec.kind, 1 if flexible else 2), *primitive(spec.kind, flexible, False)


def _array_reader(spec: Spec, version: int, flexible: bool, nullable: bool, budget: ElementBudget | None) -> Read:
    read_count = length_reader(flexible, False)
    item_size, read_item, _ = _item(spec, version, flexible)
    spend = budget.spend if budget else None
    read_item = read_item or _reader(spec.kind, version, flexible, budget)

    def read(buffer: Buffer, at: int) -> tuple[Any, int]:
        count, at = read_count(buffer, at)
        if count < 0:
            if nullable:
                return None, at
            raise ProtocolViolation(f"an array of {count} elements")
        if count * item_size > len(buffer) - at:
            raise ProtocolViolation(f"an array of {count} elements where {len(buffer) - at} bytes remain")
        if count > ARRAY_MAX:
            raise ProtocolViolation(f"an array of {count} elements; at most {ARRAY_MAX} are allowed")
        if spend:
            spend(count)
        items = []
        for _ in range(count):
            item, at = read_item(buffer, at)
            items.append(item)
        return items, at

    return read


def _array_writer(spec: Spec, version: int, flexible: bool, nullable: bool) -> Write:
    write_count = length_writer(flexible, False)
    _, _, write_item = _item(spec, version, flexible)
    write_item = write_item or writer(spec.kind, version, flexible)

    def write(out: bytearray, items: Any) -> None:
        if items is None:
            if not nullable:
                raise ValueError("null in an array that cannot be null")
            write_count(out, -1)
            return
        write_count(out, len(items))
        for item in items:
            write_item(out, item)

    return write


def _null_of(spec: Spec) -> int:
    """The byte that stands for a null struct: KIP-893 says -1, and Kafka writes 0 where the field is tagged."""
    return 0xFF if spec.tag is None else 0


def _nullable_struct_reader(read_it: Read, null: int) -> Read:
    """KIP-893: a byte before the struct says whether it is null."""

    def read(buffer: Buffer, at: int) -> tuple[Any, int]:
        if at >= len(buffer):
            raise ProtocolViolation("a struct ends after the message")
        if buffer[at] == null:
            return None, at + 1
        return read_it(buffer, at + 1)

    return read


def _nullable_struct_writer(write_it: Write, null: int) -> Write:
    def write(out: bytearray, value: Any) -> None:
        out.append(null if value is None else 1)
        if value is not None:
            write_it(out, value)

    return write


def _field_reader(spec: Spec, version: int, flexible: bool, budget: ElementBudget | None) -> Read:
    nullable = spec.nullable <= version <= spec.nullable_until
    if spec.array:
        return _array_reader(spec, version, flexible, nullable, budget)
    if isinstance(spec.kind, type):
        read_it = _reader(spec.kind, version, flexible, budget)
        return _nullable_struct_reader(read_it, _null_of(spec)) if nullable else read_it
    return primitive(spec.kind, flexible, nullable)[0]


def _field_writer(spec: Spec, version: int, flexible: bool) -> Write:
    nullable = spec.nullable <= version <= spec.nullable_until
    if spec.array:
        return _array_writer(spec, version, flexible, nullable)
    if isinstance(spec.kind, type):
        write_it = writer(spec.kind, version, flexible)
        return _nullable_struct_writer(write_it, _null_of(spec)) if nullable else write_it
    return primitive(spec.kind, flexible, nullable)[1]


def _present(
    message: type, version: int, flexible: bool
) -> tuple[list[tuple[str, Spec]], dict[int, tuple[str, Spec, Any]]]:
    """The plain fields, and the tagged ones by tag in ascending order, that this version has."""
    plain: list[tuple[str, Spec]] = []
    tagged: dict[int, tuple[str, Spec, Any]] = {}
    for name, spec, default in specs(message):
        if not spec.since <= version <= spec.until:
            continue
        if spec.tag is not None and flexible and version >= spec.tagged_since:
            tagged[spec.tag] = (name, spec, default)
        else:
            plain.append((name, spec))
    return plain, dict(sorted(tagged.items()))


def reader(message: type, version: int, flexible: bool) -> Read:
    """A function `(buffer, position) -> (message, position after it)` for that version."""
    read = _readers.get((message, version, flexible))
    if read is None:
        read = _readers[message, version, flexible] = _build_reader(message, version, flexible, None)
    return read


def _reader(message: type, version: int, flexible: bool, budget: ElementBudget | None) -> Read:
    return _build_reader(message, version, flexible, budget) if budget else reader(message, version, flexible)


def _build_reader(message: type, version: int, flexible: bool, budget: ElementBudget | None) -> Read:
    plain, tagged = _present(message, version, flexible)
    steps = [(name, _field_reader(spec, version, flexible, budget)) for name, spec in plain]
    tags = {tag: (name, _field_reader(spec, version, flexible, budget)) for tag, (name, spec, _) in tagged.items()}

    def read(buffer: Buffer, at: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for name, read_field in steps:
            values[name], at = read_field(buffer, at)
        if flexible:
            if not tags:
                return message(**values), skip_tagged_fields(buffer, at)
            count, at = read_uvarint(buffer, at)
            check_tagged_fields(count)
            for _ in range(count):
                tag, at = read_uvarint(buffer, at)
                size, at = read_uvarint(buffer, at)
                end = at + size
                if end > len(buffer):
                    raise ProtocolViolation("a tagged field ends after the message")
                if tag in tags:
                    name, read_field = tags[tag]
                    values[name], at = read_field(buffer, at)
                    if at != end:
                        raise ProtocolViolation(f"tagged field {tag} is not as long as it says")
                at = end
        return message(**values), at

    return read


def writer(message: type, version: int, flexible: bool) -> Write:
    """A function `(out, message)` that appends the message in that version; tagged fields with their default value are
    left out."""
    write = _writers.get((message, version, flexible))
    if write is None:
        write = _writers[message, version, flexible] = _build_writer(message, version, flexible)
    return write


def _build_writer(message: type, version: int, flexible: bool) -> Write:
    plain, tagged = _present(message, version, flexible)
    steps = [(name, _field_writer(spec, version, flexible)) for name, spec in plain]
    tags = [
        (tag, name, _field_writer(spec, version, flexible), default) for tag, (name, spec, default) in tagged.items()
    ]

    def write(out: bytearray, value: Any) -> None:
        for name, write_field in steps:
            write_field(out, getattr(value, name))
        if not flexible:
            return
        present = [(tag, w, getattr(value, name)) for tag, name, w, default in tags if getattr(value, name) != default]
        write_uvarint(out, len(present))
        for tag, write_field, field_value in present:
            body = bytearray()
            write_field(body, field_value)
            write_uvarint(out, tag)
            write_uvarint(out, len(body))
            out += body

    return write


def read(
    message: type[T], version: int, flexible: bool, buffer: Buffer, at: int = 0, budget: ElementBudget | None = None
) -> tuple[T, int]:
    """Read one message of that version at `at`; returns it and the position after it. Raises `ProtocolViolation`."""
    try:
        return _reader(message, version, flexible, budget)(buffer, at)
    except (struct.error, IndexError) as short:
        raise ProtocolViolation(f"{message.__name__} v{version} ends early") from short


def is_wide(message: Any) -> bool:
    """Whether the message's arrays have enough elements to take more than a few milliseconds to pack."""
    left, messages = WIDE_ELEMENTS, [message]
    while messages:
        one = messages.pop()
        for name in one.__slots__:
            value = getattr(one, name)
            if isinstance(value, list):
                left -= len(value)
                if left < 0:
                    return True
                if value and hasattr(value[0], "__slots__"):
                    messages += value
            elif hasattr(value, "__slots__"):
                messages.append(value)
    return False


def release(messages: list[Any]) -> None:
    """Empty the list, and free in pieces the parts of its messages that have no other reference. Freeing 300,000
    elements at once would hold the interpreter's lock for tens of milliseconds, in any thread."""
    pieces: list[list[Any]] = []
    while messages:
        one = messages.pop()
        for name in _nested(type(one)):
            value = getattr(one, name)
            if isinstance(value, list):
                pieces += [value[at : at + WIDE_ELEMENTS] for at in range(0, len(value), WIDE_ELEMENTS)]
                if value and _nested(type(value[0])):
                    messages += value
            elif _nested(type(value)):
                messages.append(value)
    while pieces:
        pieces.pop()  # the innermost first


def _nested(message: type) -> tuple[str, ...]:
    """The names of the fields that are arrays or messages; empty if `message` is a primitive."""
    names = _nested_names.get(message)
    if names is None:
        fields = specs(message) if dataclasses.is_dataclass(message) else []
        names = tuple(name for name, spec, _ in fields if spec.array or isinstance(spec.kind, type))
        _nested_names[message] = names
    return names


def write(message: Any, version: int, flexible: bool) -> bytearray:
    """The bytes of one message in that version."""
    out = bytearray()
    writer(type(message), version, flexible)(out, message)
    return out
