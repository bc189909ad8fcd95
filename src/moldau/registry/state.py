"""What the registry knows: made of the records of its topic, one after the other, and of nothing else.

`apply` is the only way to change it. Instances that have read the same records are in the same state.
"""

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from moldau.client.registry.schemas import Reference
from moldau.registry.contexts import DEFAULT, context_of, has_prefix, in_scope, qualified
from moldau.registry.topic_records import (
    ID_MAX,
    RecordKey,
    RecordValue,
    SchemaContent,
    StoredVersion,
    UnreadableRecord,
    packed_key,
)

Place = tuple[str, int]
"""A subject and one of its versions."""
MAX_ID = "maxId"
"""A field of ours in the value of CONTEXT: the highest id that was given, written before it is deleted for good. Other
registries ignore it."""


class _ContextState:
    """The ids of one context."""

    def __init__(self) -> None:
        self.contents: dict[int, SchemaContent] = {}
        self.ids: dict[SchemaContent, int] = {}
        self.places: dict[int, set[Place]] = {}
        self.max_id = 0


class RegistryState:
    """Subjects, versions, ids and settings. Names of subjects are as they are stored (`contexts.canonical`)."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: the topic is read from its beginning."""
        self._versions: dict[str, dict[int, StoredVersion]] = {}
        self._contexts: defaultdict[str, _ContextState] = defaultdict(_ContextState)
        self._referrers: defaultdict[Place, set[Place]] = defaultdict(set)
        self._forms: defaultdict[RecordKey, list[bytes]] = defaultdict(list)
        self.configs: dict[str | None, Mapping[str, Any]] = {}
        self.modes: dict[str | None, str] = {}
        self.contexts: set[str] = {DEFAULT}
        self._guids: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)

    def apply(self, key: RecordKey, value: RecordValue | None, key_bytes: bytes | None = None) -> None:
        """Take one record in. Raises `UnreadableRecord`, and changes nothing then."""
        if key_bytes is not None and key_bytes != packed_key(key) and key_bytes not in self._forms[key]:
            self._forms[key].append(key_bytes)
        match key.kind:
            case "SCHEMA":
                self._apply_schema(key, value)
            case "CONFIG":
                self._apply_config(key, value)
            case "MODE":
                self._apply_mode(key, value)
            case "DELETE_SUBJECT":
                self._delete_subject(key, value)
            case "CLEAR_SUBJECT":
                self._clear(key.subject)
            case "CONTEXT" if isinstance(value, Mapping):
                self.contexts.add(key.context)
                self._note_id(key.context, value.get(MAX_ID, 0))
            case "CONTEXT":
                self.contexts.discard(key.context)

    def forms_of(self, key: RecordKey) -> list[bytes]:
        """The bytes that the topic has for this key, if another registry wrote it in another way. Compaction takes them
        for another key, so a change must use them."""
        return self._forms.get(key, [])

    # What is there.

    def versions(self, subject: str, deleted: bool = False) -> list[StoredVersion]:
        """The versions of a subject, ascending; those that are soft-deleted only if asked for."""
        return [one for _, one in sorted(self._versions.get(subject, {}).items()) if deleted or not one.deleted]

    def version(self, subject: str, version: int) -> StoredVersion | None:
        """One version, soft-deleted or not."""
        return self._versions.get(subject, {}).get(version)

    def subjects(self, prefix: str, deleted: bool = False) -> list[str]:
        """The subjects with this prefix, sorted; those whose versions are all soft-deleted only if asked for."""
        return sorted(
            subject
            for subject, versions in self._versions.items()
            if has_prefix(subject, prefix) and (deleted or any(not one.deleted for one in versions.values()))
        )

    def content(self, context: str, schema_id: int) -> SchemaContent | None:
        """What an id of a context stands for."""
        found = self._contexts.get(context)
        return None if found is None else found.contents.get(schema_id)

    def id_of(self, context: str, content: SchemaContent) -> int | None:
        """The id that this schema has in a context."""
        found = self._contexts.get(context)
        return None if found is None else found.ids.get(content)

    def places(self, context: str, schema_id: int) -> list[Place]:
        """The versions that have this id, soft-deleted ones too, sorted."""
        found = self._contexts.get(context)
        return [] if found is None else sorted(found.places.get(schema_id, ()))

    def all_contexts(self) -> list[str]:
        """The contexts that have ids, the default one first."""
        return sorted(self._contexts, key=lambda context: (context != DEFAULT, context))

    def ids_of_guid(self, guid: str) -> list[tuple[str, int]]:
        """The contexts, and the ids in them, that stand for the schema with this guid."""
        return sorted(self._guids.get(guid, ()))

    def max_id(self, context: str) -> int:
        """The highest id that was ever given in a context; 0 before the first."""
        found = self._contexts.get(context)
        return 0 if found is None else found.max_id

    def referrers(self, subject: str, version: int, deleted: bool = False) -> list[StoredVersion]:
        """The versions that refer to this one."""
        places = sorted(self._referrers.get((subject, version), ()))
        found = (self.version(*place) for place in places)
        return [one for one in found if one is not None and (deleted or not one.deleted)]

    # What changes it.

    def _apply_schema(self, key: RecordKey, value: RecordValue | None) -> None:
        assert key.subject is not None
        if value is None:
            self._remove(key.subject, key.version)
            return
        assert isinstance(value, StoredVersion)
        old = self.version(key.subject, key.version)
        if old is not None and (old.id != value.id or old.content != value.content):
            self._remove(key.subject, key.version)
        self._versions.setdefault(key.subject, {})[key.version] = value
        context = self._contexts[context_of(key.subject)]
        context.ids.setdefault(value.content, value.id)
        context.places.setdefault(value.id, set()).add((key.subject, key.version))
        if value.id not in context.contents:
            context.contents[value.id] = value.content
            self._guids[guid_of(value.content)].add((context_of(key.subject), value.id))
        self._note_id(context_of(key.subject), value.id)
        for reference in value.content.schema.references:
            self._referrers[_place(reference, key.subject)].add((key.subject, key.version))

    def _remove(self, subject: str, version: int) -> None:
        """Forget a version for good; its id goes with the last version that has it."""
        versions = self._versions.get(subject, {})
        old = versions.pop(version, None)
        if old is None:
            return
        if not versions:
            del self._versions[subject]
        context = self._contexts[context_of(subject)]
        places = context.places[old.id]
        places.discard((subject, version))
        # Another registry may have given one id to two texts that differ in white space: each text has its id.
        if context.ids.get(old.content) == old.id and all(self._content(place) != old.content for place in places):
            del context.ids[old.content]
        if not places:
            del context.places[old.id]
            self._forget_id(context_of(subject), old.id)
        for reference in old.content.schema.references:
            place = _place(reference, subject)
            self._referrers[place].discard((subject, version))
            if not self._referrers[place]:
                del self._referrers[place]

    def _content(self, place: Place) -> SchemaContent | None:
        version = self.version(*place)
        return None if version is None else version.content

    def _forget_id(self, context: str, schema_id: int) -> None:
        guid = guid_of(self._contexts[context].contents.pop(schema_id))
        self._guids[guid].discard((context, schema_id))
        if not self._guids[guid]:
            del self._guids[guid]

    def _apply_config(self, key: RecordKey, value: RecordValue | None) -> None:
        if value is None:
            self.configs.pop(key.subject, None)
        else:
            assert isinstance(value, Mapping)
            self.configs[key.subject] = {name: one for name, one in value.items() if name != "subject"}

    def _apply_mode(self, key: RecordKey, value: RecordValue | None) -> None:
        if value is None:
            self.modes.pop(key.subject, None)
            return
        assert isinstance(value, Mapping)
        mode = value.get("mode")
        if not isinstance(mode, str):
            raise UnreadableRecord("mode is not text")
        self.modes[key.subject] = mode

    def _delete_subject(self, key: RecordKey, value: RecordValue | None) -> None:
        if value is None:
            return
        assert isinstance(value, Mapping) and key.subject is not None
        up_to = value.get("version")
        if not isinstance(up_to, int):
            raise UnreadableRecord("version is not a number")
        versions = self._versions.get(key.subject, {})
        for number, one in versions.items():
            if number <= up_to and not one.deleted:
                versions[number] = StoredVersion(one.subject, number, one.id, one.content, True, one.timestamp_ms)

    def _clear(self, scope: str | None) -> None:
        """A context or subject was emptied, to be imported into."""
        for name in [one for one in self._versions if in_scope(one, scope)]:
            for version in [one.version for one in self.versions(name, deleted=True) if one.deleted]:
                self._remove(name, version)

    def _note_id(self, context: str, schema_id: Any) -> None:
        if isinstance(schema_id, int) and 0 <= schema_id <= ID_MAX:
            self._contexts[context].max_id = max(self._contexts[context].max_id, schema_id)


def _place(reference: Reference, parent: str) -> Place:
    return qualified(reference.subject, parent), reference.version


def guid_of(content: SchemaContent) -> str:
    """The id of a schema in all registries and contexts, of text and references, as Confluent's registry makes it."""
    digest = hashlib.md5(content.schema.text.encode(), usedforsecurity=False)
    for one in content.schema.references:
        digest.update(one.name.encode() + one.subject.encode() + one.version.to_bytes(4, "big", signed=True))
    for more in (content.metadata, content.rules):
        if more is not None:
            digest.update(b"\1" + more.encode())
    return str(uuid.UUID(bytes=digest.digest()))
