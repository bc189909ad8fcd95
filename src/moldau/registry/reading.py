"""The answers to everything that only reads, as JSON trees with Confluent's names; what is empty is left out."""

from collections.abc import Sequence
from typing import Any, TypeVar

from moldau.registry.contexts import DEFAULT, context_of, parse_subject, prefix_of
from moldau.registry.decisions import Decisions
from moldau.registry.kinds import KINDS
from moldau.registry.refusals import (
    Refused,
    no_config,
    no_mode,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from moldau.registry.resolving import SchemaResolver
from moldau.registry.scopes import config_in_scope, mode_in_scope, normalizes
from moldau.registry.state import RegistryState, guid_of
from moldau.registry.topic_records import SchemaContent, StoredVersion, fields_of

T = TypeVar("T")
LATEST = -1


def page(found: Sequence[T], offset: int, limit: int) -> list[T]:
    """A part of a list; a limit below 0 is none."""
    start = max(offset, 0)
    return list(found[start:] if limit < 0 else found[start : start + limit])


class Answers:
    """Reads the state. Every method raises `Refused` for what is not there."""

    def __init__(self, state: RegistryState, resolver: SchemaResolver, decisions: Decisions):
        self._state = state
        self._resolver = resolver
        self._decisions = decisions

    def version(self, subject: str, number: int, deleted: bool = False) -> StoredVersion:
        """One version; -1 is the latest."""
        versions = self._state.versions(subject, deleted)
        if not versions:
            raise subject_not_found(subject)
        if number == LATEST:
            return versions[-1]
        found = self._state.version(subject, number)
        if found is None or (found.deleted and not deleted):
            raise version_not_found(number)
        return found

    def shown_version(self, version: StoredVersion, form: str, wants_all: bool) -> dict[str, Any]:
        """A version as GET answers it; `wants_all` adds fields that older clients do not expect."""
        content = version.content
        tree = {"subject": version.subject, "version": version.version, "id": version.id}
        if wants_all:
            tree["guid"] = guid_of(content)
        tree |= fields_of(content)
        tree["schema"] = self._text(version.subject, content, form)
        if wants_all and version.timestamp_ms:
            tree["ts"] = version.timestamp_ms
        if version.deleted:
            tree["deleted"] = True
        return tree

    def registered(self, version: StoredVersion, wants_all: bool) -> dict[str, Any]:
        """What a registration answers. The schema itself is left out: confluent-kafka would remember its text as what
        `format=serialized` returns."""
        if not wants_all:
            return {"id": version.id}
        return {"id": version.id, "version": version.version, "guid": guid_of(version.content)}

    def _text(self, subject: str, content: SchemaContent, form: str) -> str:
        return self._resolver.definition(subject, content.schema).formatted(form) if form else content.schema.text

    def versions(self, subject: str, deleted: bool, only_deleted: bool, as_negative: bool) -> list[int]:
        found = self._state.versions(subject, deleted or only_deleted or as_negative)
        if not found:
            raise subject_not_found(subject)
        if as_negative:
            return [-one.version if one.deleted else one.version for one in found]
        return [one.version for one in found if one.deleted or not only_deleted]

    def subjects(self, prefix: str, deleted: bool, only_deleted: bool) -> list[str]:
        found = self._state.subjects(prefix, deleted or only_deleted)
        return [one for one in found if not (only_deleted and self._state.versions(one))]

    def all_versions(self, prefix: str, deleted: bool, only_latest: bool) -> list[StoredVersion]:
        """The versions of all subjects with this prefix, or the latest of each."""
        found = [self._state.versions(subject, deleted) for subject in self._state.subjects(prefix, deleted)]
        return [one for versions in found for one in (versions[-1:] if only_latest else versions)]

    def referrers(self, subject: str, number: int, deleted: bool) -> list[int]:
        """The ids of the schemas that refer to this version."""
        version = self.version(subject, number, deleted=True)
        found = self._state.referrers(subject, version.version, deleted)
        return sorted({one.id for one in found})

    def lookup(self, subject: str, content: SchemaContent, normalize: bool, deleted: bool) -> StoredVersion:
        """The version of the subject that has this schema."""
        if not self._state.versions(subject, deleted):
            raise subject_not_found(subject)
        normalize = normalize or normalizes(self._state, subject)
        canonical, _ = self._resolver.canonical(subject, content, normalize, is_new=False)
        found = self._resolver.find(subject, canonical, deleted)
        if found is None:
            raise schema_not_found()
        return found

    def with_metadata(self, subject: str, wanted: dict[str, str], deleted: bool) -> StoredVersion:
        """The latest version whose metadata has these properties."""
        versions = self._state.versions(subject, deleted)
        if not versions:
            raise subject_not_found(subject)
        for one in reversed(versions):
            properties = fields_of(one.content).get("metadata", {}).get("properties")
            if isinstance(properties, dict) and wanted.items() <= properties.items():
                return one
        raise schema_not_found()

    def compatible(
        self, subject: str, content: SchemaContent, number: int | None, normalize: bool, verbose: bool
    ) -> dict[str, Any]:
        """Whether the schema may follow one version, or all that the level says (None)."""
        previous = self._state.versions(subject)
        if number is not None:
            previous = [one for one in previous if number in (LATEST, one.version)][-1:]
            if not previous and number != LATEST:
                raise version_not_found(number)
        try:
            normalize = normalize or normalizes(self._state, subject)
            canonical, parsed = self._resolver.canonical(subject, content, normalize, is_new=True)
            messages = self._decisions.incompatibilities(subject, canonical, parsed, previous)
        except Refused as refusal:
            if not verbose:
                raise
            messages = [str(refusal)]
        return {"is_compatible": not messages, **({"messages": messages} if verbose else {})}

    # By id.

    def _of_id(self, schema_id: int, subject: str) -> tuple[str, SchemaContent] | None:
        """The context and schema of an id: in the context that `subject` names, else wherever the subject has it."""
        context = context_of(subject)
        content = self._state.content(context, schema_id)
        if content is None and subject and context == DEFAULT:
            for other in self._state.all_contexts():
                places = self._state.places(other, schema_id)
                if any(parse_subject(one).name == subject for one, _ in places):
                    found = self._state.content(other, schema_id)
                    assert found is not None
                    return other, found
        return None if content is None else (context, content)

    def schema(self, schema_id: int, subject: str, form: str, fetch_max: bool, wants_all: bool) -> dict[str, Any]:
        """The schema of an id as GET answers it."""
        found = self._of_id(schema_id, subject)
        if found is None:
            raise schema_not_found(schema_id)
        context, content = found
        tree = self._shown_schema(context, content, form, wants_all)
        return {**tree, "maxId": self._state.max_id(context)} if fetch_max else tree

    def _shown_schema(self, context: str, content: SchemaContent, form: str, wants_all: bool) -> dict[str, Any]:
        tree = fields_of(content)
        if wants_all:
            tree["guid"] = guid_of(content)
        return {**tree, "schema": self._text(prefix_of(context), content, form)}

    def places(self, schema_id: int, subject: str, deleted: bool) -> list[dict[str, Any]]:
        """Subjects and versions that have an id."""
        found = self._of_id(schema_id, subject)
        if found is None:
            raise schema_not_found()
        versions = (self._state.version(*place) for place in self._state.places(found[0], schema_id))
        return [
            {"subject": one.subject, "version": one.version}
            for one in versions
            if one is not None and (deleted or not one.deleted)
        ]

    def of_guid(self, guid: str, form: str, wants_all: bool) -> dict[str, Any]:
        """The schema with a guid, in any context."""
        for context, schema_id in self._state.ids_of_guid(guid.lower()):
            content = self._state.content(context, schema_id)
            if content is not None:
                return self._shown_schema(context, content, form, wants_all)
        raise schema_not_found(guid)

    def ids_of_guid(self, guid: str) -> list[dict[str, Any]]:
        found = self._state.ids_of_guid(guid.lower())
        return [{"context": context, "id": schema_id} for context, schema_id in found]

    # Settings.

    def config(self, scope: str | None, default_to_global: bool) -> dict[str, Any]:
        if scope is None or default_to_global:
            return config_in_scope(self._state, scope)
        config = self._state.configs.get(scope)
        if config is None:
            raise no_config(scope)
        return dict(config)

    def mode(self, scope: str | None, default_to_global: bool) -> dict[str, str]:
        if scope is None or default_to_global:
            return {"mode": mode_in_scope(self._state, scope)}
        mode = self._state.modes.get(scope)
        if mode is None:
            raise no_mode(scope)
        return {"mode": mode}

    def contexts(self) -> list[str]:
        return [DEFAULT, *sorted(self._state.contexts - {DEFAULT})]

    def kinds(self) -> list[str]:
        return sorted(KINDS)
