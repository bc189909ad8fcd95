"""Which changes of a JSON Schema keep every old value valid, as a table of kinds of changes.

The kinds and the table are those of Confluent's registry, in its strict policy: what a new schema says of a property
that the old one left open may forbid values that are there already.
"""

from typing import Any, NamedTuple, Protocol

from moldau.registry.json_schema.shapes import Shapes


class NumberBound(NamedTuple):
    """A keyword with a number: the start of its kinds, and whether a higher number allows more."""

    prefix: str
    grows: bool


BOUNDS = {
    "maxLength": NumberBound("MAX_LENGTH", True), "minLength": NumberBound("MIN_LENGTH", False),
    "maximum": NumberBound("MAXIMUM", True), "minimum": NumberBound("MINIMUM", False),
    "exclusiveMaximum": NumberBound("EXCLUSIVE_MAXIMUM", True),
    "exclusiveMinimum": NumberBound("EXCLUSIVE_MINIMUM", False),
    "maxProperties": NumberBound("MAX_PROPERTIES", True), "minProperties": NumberBound("MIN_PROPERTIES", False),
    "maxItems": NumberBound("MAX_ITEMS", True), "minItems": NumberBound("MIN_ITEMS", False),
    "maxContains": NumberBound("MAX_CONTAINS", True), "minContains": NumberBound("MIN_CONTAINS", False),
}  # fmt: skip
ALLOWED = frozenset(
    [f"{one.prefix}_REMOVED" for one in BOUNDS.values()]
    + [f"{one.prefix}_{'INCREASED' if one.grows else 'DECREASED'}" for one in BOUNDS.values()]
    + [f"{one}_{how}" for one in ("ADDITIONAL_PROPERTIES", "UNEVALUATED_PROPERTIES", "ADDITIONAL_ITEMS",
                                  "UNEVALUATED_ITEMS") for how in ("ADDED", "EXTENDED")]
    + [
        "SCHEMA_REMOVED", "TYPE_EXTENDED", "PATTERN_REMOVED", "MULTIPLE_OF_REDUCED", "MULTIPLE_OF_REMOVED",
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", "REQUIRED_ATTRIBUTE_REMOVED", "DEPENDENCY_ARRAY_NARROWED",
        "DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_SCHEMA_REMOVED",
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "UNIQUE_ITEMS_REMOVED",
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", "ENUM_ARRAY_EXTENDED", "COMBINED_TYPE_EXTENDED",
        "PRODUCT_TYPE_NARROWED", "SUM_TYPE_EXTENDED", "NOT_TYPE_NARROWED",
    ]
)  # fmt: skip
"""All other kinds break readers of old values."""


class JsonChange(NamedTuple):
    """What changed, and where in the new schema."""

    kind: str
    path: str


JsonChanges = list[JsonChange]


class Compares(Protocol):
    """A comparison that is going on: `old` is what values were written with, `new` what reads them."""

    old: Shapes
    new: Shapes

    def compare(self, old: Any, new: Any, path: str) -> JsonChanges:
        """The changes between two parts that the table does not allow."""
        ...


def changed(kind: str, path: str) -> JsonChanges:
    """The change, unless the table allows it."""
    return [] if not kind or kind in ALLOWED else [JsonChange(kind, path)]


def sentence(change: JsonChange, new: str, old: str) -> str:
    """The change in words; `new` and `old` are `new` and `old`, the other way round in the other direction."""
    kind, path = change
    if kind in _SENTENCES:
        said = _SENTENCES[kind]
    else:
        said = next((text for end, text in _BY_END if kind.endswith(end)), _LESS)
    return f'{{errorType:"{kind}", description:"{said.format(path=path, new=new, old=old)}"}}'


_LESS = "the {new} schema allows less at path '{path}' than the {old} schema"
_OPEN = "the {new} schema restricts the property or item at path '{path}', where the open {old} schema allows any"
_SENTENCES = {
    "TYPE_CHANGED": "the type at path '{path}' differs between the {new} and the {old} schema",
    "REQUIRED_ATTRIBUTE_ADDED": "the {new} schema requires a property at path '{path}' that the {old} schema does not",
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "the {new} schema requires a property at path '{path}' that the "
    "{old} schema does not have",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": "the closed {new} schema lacks the property at path '{path}' of the "
    "{old} schema",
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": "the closed {new} schema lacks the item at path '{path}' of the {old} "
    "schema",
}
_BY_END = (
    ("ADDED_TO_OPEN_CONTENT_MODEL", _OPEN),
    ("_ADDED", "the {new} schema has a keyword at path '{path}' that the {old} schema does not have"),
    ("_INCREASED", "the value at path '{path}' is higher in the {new} schema than in the {old} schema"),
    ("_DECREASED", "the value at path '{path}' is lower in the {new} schema than in the {old} schema"),
)
