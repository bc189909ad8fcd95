"""What a JSON Schema says, as one of a few kinds that can be compared: keywords of one type, or a combination.

A schema with keywords of several kinds is `allOf` of them; a list of types is `anyOf`.
"""

from dataclasses import dataclass, field
from typing import Any

from moldau.registry.json_schema.documents import JsonDocuments

OBJECT = frozenset(
    ("properties", "required", "additionalProperties", "patternProperties", "maxProperties", "minProperties",
     "dependencies", "dependentRequired", "dependentSchemas", "propertyNames", "unevaluatedProperties")
)  # fmt: skip
ARRAY = frozenset(
    ("items", "prefixItems", "additionalItems", "maxItems", "minItems", "uniqueItems", "contains", "maxContains",
     "minContains", "unevaluatedItems")
)  # fmt: skip
NUMBER = frozenset(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"))
STRING = frozenset(("maxLength", "minLength", "pattern"))
_BY_KEYWORD = (("object", OBJECT), ("array", ARRAY), ("number", NUMBER), ("string", STRING))
COMBINED = ("allOf", "anyOf", "oneOf")


@dataclass(eq=False)
class SchemaShape:
    """`kind` is `string`, `number`, `object`, `array`, `boolean`, `null`, `enum`, `const`, `not`, `allOf`, `anyOf`,
    `oneOf`, `empty` (anything) or `false` (nothing). `tree` has the keywords, `parts` what is combined or negated."""

    kind: str
    tree: dict[str, Any] = field(default_factory=dict)
    parts: "list[Any]" = field(default_factory=list)
    is_integer: bool = False


class Shapes:
    """Shapes of the parts of one schema, each made once: a pair of them is compared once."""

    def __init__(self, documents: JsonDocuments):
        self._documents = documents
        self._made: dict[int, SchemaShape] = {}
        self._empty, self._false = SchemaShape("empty"), SchemaShape("false")

    def of(self, node: Any) -> SchemaShape:
        """The shape of a part. Raises `Refused` for a `$ref` that leads nowhere."""
        if isinstance(node, SchemaShape):
            return node
        node = self._documents.followed(node)
        if node is False:
            return self._false
        if not isinstance(node, dict):
            return self._empty
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = self._shape(node)
        return made

    def _shape(self, node: dict[str, Any]) -> SchemaShape:
        facets = self._facets(node)
        if not facets:
            return SchemaShape("empty", node)
        if len(facets) == 1:
            return facets[0]
        return SchemaShape("allOf", node, facets)

    def _facets(self, node: dict[str, Any]) -> list[SchemaShape]:
        found = []
        kinds = node.get("type")
        if isinstance(kinds, list):
            found.append(SchemaShape("anyOf", node, [_of_type(node, kind) for kind in kinds]))
        elif isinstance(kinds, str):
            found.append(_of_type(node, kinds))
        else:
            found += [SchemaShape(kind, node) for kind, words in _BY_KEYWORD if words & node.keys()]
        if "const" in node:
            found.append(SchemaShape("const", node))
        if isinstance(node.get("enum"), list):
            found.append(SchemaShape("enum", node))
        found += [SchemaShape(word, node, list(node[word])) for word in COMBINED if isinstance(node.get(word), list)]
        if "not" in node:
            inner = self.of(node["not"])
            found.append(self._false if inner.kind == "empty" else SchemaShape("not", node, [node["not"]]))
        return found


def _of_type(node: dict[str, Any], kind: Any) -> SchemaShape:
    return SchemaShape("number", node, is_integer=True) if kind == "integer" else SchemaShape(str(kind), node)
