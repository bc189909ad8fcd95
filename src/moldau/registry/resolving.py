"""Parses schemas with what they refer to, which other versions in the registry hold."""

from moldau.client.registry.schemas import Reference, Schema
from moldau.registry.contexts import qualified
from moldau.registry.kinds import Definition, Definitions
from moldau.registry.refusals import Refused, invalid_schema
from moldau.registry.state import RegistryState
from moldau.registry.topic_records import SchemaContent, StoredVersion

REFERENCES_MAX = 1_000
REFERENCES_DEPTH_MAX = 50


class SchemaResolver:
    """Parses schemas, with their references looked up in the state."""

    def __init__(self, state: RegistryState):
        self._state = state
        self._definitions = Definitions()

    def definition(self, subject: str, schema: Schema, is_new: bool = False) -> Definition:
        """The schema of a subject, parsed. Raises `Refused`."""
        return self._definitions.parse(schema, self.referenced(subject, schema), is_new)

    def of_version(self, version: StoredVersion) -> Definition:
        """The schema of a version, parsed. Raises `Refused`."""
        return self.definition(version.subject, version.content.schema)

    def referenced(self, subject: str, schema: Schema) -> dict[str, str]:
        """The texts that the schema refers to, by name, each after those that it refers to itself. Raises
        `Refused`."""
        found: dict[str, str] = {}
        self._collect(subject, schema, found, 0)
        return found

    def _collect(self, subject: str, schema: Schema, found: dict[str, str], depth: int) -> None:
        if depth > REFERENCES_DEPTH_MAX:
            raise invalid_schema("its references lead back to it, or are too deep")
        for reference in schema.references:
            if reference.name in found:
                continue
            other = self._state.version(qualified(reference.subject, subject), reference.version)
            if other is None:
                raise invalid_schema(
                    f"no schema for its reference {reference.name!r}: subject {reference.subject!r} has no version "
                    f"{reference.version}"
                )
            self._collect(other.subject, other.content.schema, found, depth + 1)
            found[reference.name] = other.content.schema.text
            if len(found) > REFERENCES_MAX:
                raise invalid_schema(f"it has more than {REFERENCES_MAX} references")

    def settled(self, subject: str, schema: Schema) -> Schema:
        """The schema with the version -1 of a reference, which is the latest, as a number. Raises `Refused`."""
        if all(one.version > 0 for one in schema.references):
            return schema
        references = tuple(self._settled(subject, one) for one in schema.references)
        return Schema(schema.text, schema.kind, references)

    def _settled(self, subject: str, reference: Reference) -> Reference:
        if reference.version > 0:
            return reference
        versions = self._state.versions(qualified(reference.subject, subject))
        if not versions:
            raise invalid_schema(f"no schema for its reference {reference.name!r}: no subject {reference.subject!r}")
        return Reference(reference.name, reference.subject, versions[-1].version)

    def canonical(
        self, subject: str, content: SchemaContent, normalize: bool, is_new: bool
    ) -> tuple[SchemaContent, Definition]:
        """The content with the text that is stored, and the schema parsed. Raises `Refused`."""
        if not content.schema.text.strip():
            raise invalid_schema("the schema is empty")
        schema = self.settled(subject, content.schema)
        parsed = self.definition(subject, schema, is_new)
        text = parsed.normalized() if normalize else parsed.text
        stored = Schema(text, schema.kind, schema.references)
        return SchemaContent(stored, content.metadata, content.rules), parsed

    def find(self, subject: str, content: SchemaContent, deleted: bool) -> StoredVersion | None:
        """The latest version of the subject that has this canonical content, whatever the white space it is stored
        with."""
        versions = self._state.versions(subject, deleted)
        for version in reversed(versions):
            if version.content == content:
                return version
        for version in reversed(versions):  # each of them has to be parsed
            stored = version.content
            if (stored.metadata, stored.rules) != (content.metadata, content.rules):
                continue
            if stored.schema.kind != content.schema.kind or stored.schema.references != content.schema.references:
                continue
            try:
                parsed = self.of_version(version)
            except Refused:
                continue
            if content.schema.text in (parsed.text, parsed.normalized()):
                return version
        return None
