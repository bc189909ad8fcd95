"""`JsonDefinition`: a parsed JSON Schema, as the registry handles schemas of any kind."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.client.registry.json_drafts import drafted
from moldau.client.registry.schemas import JSON
from moldau.names import how_to_install
from moldau.registry.json_schema.comparing import JsonComparison
from moldau.registry.json_schema.documents import JsonDocuments, read_json
from moldau.registry.json_schema.shapes import Shapes
from moldau.registry.json_schema.table import sentence
from moldau.registry.refusals import invalid_schema
from moldau.registry.topic_records import compact

if TYPE_CHECKING:
    from moldau.registry.levels import ReadableSchema


class JsonDefinition:
    """`references` are texts by the names that `$ref` has for them. Raises `Refused`."""

    kind = JSON

    def __init__(self, text: str, references: Mapping[str, str], is_new: bool):
        tree = read_json(text)
        self._documents = JsonDocuments(tree, references)
        if is_new:
            _check(tree)
            for node in self._documents.references:
                self._documents.followed(node)
        self._tree = tree
        self._shapes = Shapes(self._documents)
        self.text = compact(tree)

    def normalized(self) -> str:
        return compact(self._tree, sort_keys=True)

    def formatted(self, how: str) -> str:
        return self.text

    def unreadable(self, writer: "ReadableSchema", own: str, other: str) -> list[str]:
        assert isinstance(writer, JsonDefinition)
        changes = JsonComparison(writer._shapes, self._shapes).all_changes(writer._tree, self._tree)
        return [sentence(change, own, other) for change in changes]


def _check(tree: Any) -> None:
    """Raise `Refused` if the schema breaks the rules of its draft."""
    try:
        import jsonschema_rs
    except ImportError:
        raise invalid_schema(f"JSON Schemas need jsonschema-rs: {how_to_install('registry')}") from None
    try:
        jsonschema_rs.meta.validate(drafted(tree))
    except Exception as wrong:
        raise invalid_schema(" ".join(str(wrong).split())[:300]) from None
