"""What a change writes: pure decisions on the state, each a list of records and the answer once they have been read.

Nothing changes here: the records go to the topic, come back from it, and only then count (`state.RegistryState.apply`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.registry.contexts import DEFAULT, context_of, in_scope, prefix_of
from moldau.registry.levels import ReadableSchema, incompatibilities, level_named
from moldau.registry.refusals import (
    Refused,
    incompatible,
    invalid_mode,
    invalid_schema,
    not_permitted,
    referenced,
    store_failed,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    unprocessable,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from moldau.registry.resolving import SchemaResolver
from moldau.registry.scopes import IMPORTING, MODES, READ_ONLY, config_in_scope, level_in_scope, mode_in_scope
from moldau.registry.state import MAX_ID, RegistryState
from moldau.registry.topic_records import (
    CLEAR_SUBJECT,
    CONFIG,
    CONTEXT,
    DELETE_SUBJECT,
    ID_MAX,
    MODE,
    SCHEMA,
    TENANT,
    RecordKey,
    RecordValue,
    SchemaContent,
    StoredVersion,
)

OTHER_SETTINGS = {"normalize": bool, "compatibilityGroup": str}
"""Settings that may be set besides the level, and their types."""


@dataclass
class Writes:
    """The records of one change, in their order, and its answer."""

    answer: Any
    records: list[tuple[RecordKey, RecordValue | None]] = field(default_factory=list)


@dataclass(frozen=True)
class NewSchema:
    """A schema to register; `id` and `version` are given only by imports."""

    subject: str
    content: SchemaContent
    id: int = -1
    version: int = 0
    normalize: bool = False


class Decisions:
    """Decides what each change writes."""

    def __init__(self, state: RegistryState, resolver: SchemaResolver):
        self._state = state
        self._resolver = resolver

    def register(self, given: NewSchema) -> Writes:
        """The answer is the `StoredVersion`. Raises `Refused`."""
        state, subject, context = self._state, given.subject, context_of(given.subject)
        content, parsed = self._resolver.canonical(subject, given.content, given.normalize, is_new=given.id < 0)
        # Producers that register what is there already go on in every mode, since nothing is written.
        found = self._known(given, content)
        if found is not None:
            return Writes(found)
        mode = self._check_mode(given)
        schema_id = state.id_of(context, content)
        if schema_id is not None and given.id >= 0 and given.id != schema_id:
            schema_id = None
        if mode not in IMPORTING:
            self._check_compatible(subject, content, parsed)
        newest = max((one.version for one in state.versions(subject, deleted=True)), default=0)
        if given.version > 0 and given.version != newest + 1 and mode not in IMPORTING:
            raise invalid_schema(f"version {given.version} is not one more than the previous one, {newest}")
        if given.id >= 0:
            known = state.content(context, given.id)
            if known is not None and known != content:
                raise not_permitted(f"Overwrite new schema with id {given.id} in context {context} is not permitted.")
            schema_id = given.id
        if schema_id is None:
            schema_id = state.max_id(context) + 1
        if schema_id > ID_MAX:
            raise store_failed("All ids of the registry are given")
        made = StoredVersion(subject, given.version or newest + 1, schema_id, content)
        writes = Writes(made)
        if context not in state.contexts:
            writes.records.append((RecordKey(CONTEXT, context=context), {"tenant": TENANT, "context": context}))
        # A soft-deleted version with the same id goes for good, unless a schema refers to it by subject and version.
        for old in state.versions(subject, deleted=True):
            is_same = old.deleted and old.id == schema_id and old.version < made.version
            if is_same and not state.referrers(subject, old.version, deleted=True):
                writes.records.append((RecordKey(SCHEMA, subject, old.version), None))
        writes.records.append((RecordKey(SCHEMA, subject, made.version), made))
        return writes

    def registered(self, given: NewSchema) -> StoredVersion | None:
        """The version for which `register` would write nothing, because the subject has the schema already; None if
        there is none. Raises `Refused`."""
        content, _ = self._resolver.canonical(given.subject, given.content, given.normalize, is_new=given.id < 0)
        return self._known(given, content)

    def _known(self, given: NewSchema, content: SchemaContent) -> StoredVersion | None:
        found = None if given.version else self._resolver.find(given.subject, content, deleted=False)
        return found if found is not None and given.id in (-1, found.id) else None

    def _check_mode(self, given: NewSchema) -> str:
        mode = mode_in_scope(self._state, given.subject)
        self._check_writable(given.subject)
        if given.id >= 0 and mode not in IMPORTING:
            raise not_permitted(
                f"Subject {given.subject} in context {_shown_context(given.subject)} is not in import mode"
            )
        if given.id < 0 and mode != "READWRITE":
            raise not_permitted(
                f"Subject {given.subject} in context {_shown_context(given.subject)} is not in read-write mode"
            )
        return mode

    def _check_writable(self, subject: str | None) -> None:
        if mode_in_scope(self._state, subject) in READ_ONLY:
            raise not_permitted(
                f"Subject {subject or ''} in context {_shown_context(subject or '')} is in read-only mode"
            )

    def _check_compatible(self, subject: str, content: SchemaContent, parsed: ReadableSchema) -> None:
        messages = self.incompatibilities(subject, content, parsed, self._state.versions(subject))
        if messages:
            raise incompatible(subject, messages)

    def incompatibilities(
        self, subject: str, content: SchemaContent, parsed: ReadableSchema, previous: list[StoredVersion]
    ) -> list[str]:
        """Why the subject's level does not allow the schema after these versions; empty if it does."""
        level = level_in_scope(self._state, subject)
        group = config_in_scope(self._state, subject).get("compatibilityGroup")
        if isinstance(group, str):
            value = _group_value(content, group)
            previous = [one for one in previous if _group_value(one.content, group) == value]
        if level == "NONE":
            return []
        others: list[tuple[int, ReadableSchema]] = []
        for one in previous if level.endswith("_TRANSITIVE") else previous[-1:]:
            try:
                others.append((one.version, self._resolver.of_version(one)))
            except Refused as refusal:
                return [f"version {one.version} cannot be read, so nothing can be compared with it: {refusal}"]
        return incompatibilities(level, parsed, others)

    # Deletion.

    def delete_version(self, subject: str, number: int, permanent: bool) -> Writes:
        """The answer is the version's number; -1 is the latest. Raises `Refused`."""
        state = self._state
        every = state.versions(subject, deleted=True)
        if not every:
            raise subject_not_found(subject)
        if number == -1:
            live = state.versions(subject) or every
            number = live[-1].version
        version = state.version(subject, number)
        if version is None:
            raise version_not_found(number)
        if version.deleted and not permanent:
            raise version_soft_deleted(subject, number)
        self._check_writable(subject)
        if state.referrers(subject, number, deleted=permanent):
            raise referenced(subject, number)
        if permanent and not version.deleted:
            raise version_not_soft_deleted(subject, number)
        key = RecordKey(SCHEMA, subject, number)
        if not permanent:
            gone = StoredVersion(subject, number, version.id, version.content, deleted=True)
            return Writes(number, [(key, gone)])
        writes = Writes(number, [*self._remembering(subject, [version]), (key, None)])
        if len(every) == 1:
            writes.records += self._settings_gone(subject)
        return writes

    def delete_subject(self, subject: str, permanent: bool) -> Writes:
        """The answer is the list of deleted versions. Raises `Refused`."""
        state = self._state
        every = state.versions(subject, deleted=True)
        if not every:
            raise subject_not_found(subject)
        live = state.versions(subject)
        if permanent and live:
            raise subject_not_soft_deleted(subject)
        if not permanent and not live:
            raise subject_soft_deleted(subject)
        self._check_writable(subject)
        going = every if permanent else live
        for one in going:
            if any(other.subject != subject for other in state.referrers(subject, one.version, deleted=permanent)):
                raise referenced(subject, one.version)
        numbers = [one.version for one in going]
        if not permanent:
            return Writes(numbers, [(RecordKey(DELETE_SUBJECT, subject), {"subject": subject, "version": numbers[-1]})])
        records: list[tuple[RecordKey, RecordValue | None]] = [*self._remembering(subject, going)]
        records += [(RecordKey(SCHEMA, subject, number), None) for number in reversed(numbers)]
        return Writes(numbers, records + self._settings_gone(subject))

    def _remembering(self, subject: str, going: list[StoredVersion]) -> list[tuple[RecordKey, RecordValue | None]]:
        """A record that keeps the highest id from being given again, for another schema, once its last version is
        gone from the topic."""
        context = context_of(subject)
        highest = self._state.max_id(context)
        if all(one.id != highest for one in going):
            return []
        return [(RecordKey(CONTEXT, context=context), {"tenant": TENANT, "context": context, MAX_ID: highest})]

    def _settings_gone(self, subject: str) -> list[tuple[RecordKey, RecordValue | None]]:
        found: list[tuple[RecordKey, RecordValue | None]] = []
        if subject in self._state.modes:
            found.append((RecordKey(MODE, subject), None))
        if subject in self._state.configs:
            found.append((RecordKey(CONFIG, subject), None))
        return found

    # Settings.

    def set_config(self, scope: str | None, given: Mapping[str, Any]) -> Writes:
        """The answer is the settings as PUT echoes them. Raises `Refused`."""
        changes: dict[str, Any] = {}
        for name, value in given.items():
            if name in ("compatibility", "compatibilityLevel"):
                changes["compatibilityLevel"] = None if value is None else level_named(value)
            elif name in OTHER_SETTINGS:
                if value is not None and not isinstance(value, OTHER_SETTINGS[name]):
                    raise unprocessable(f"{name} is not {'true or false' if name == 'normalize' else 'text'}")
                changes[name] = value
            elif value not in (None, False, "", "STRICT"):
                raise unprocessable(f"This registry has no setting {name[:80]!r}")
        self._check_writable(scope)
        config = {**self._state.configs.get(scope, {}), **changes}
        config = {name: value for name, value in config.items() if value is not None}
        value = config if scope is None else {"subject": scope, **config}
        return Writes(_echo(config), [(RecordKey(CONFIG, scope), value)])

    def delete_config(self, scope: str | None) -> Writes:
        """The answer is the settings that were deleted. Raises `Refused`."""
        old = self._state.configs.get(scope)
        if old is None:
            if scope is None:
                return Writes(config_in_scope(self._state, None))
            raise subject_not_found(scope)
        self._check_writable(scope)
        return Writes(dict(old), [(RecordKey(CONFIG, scope), None)])

    def set_mode(self, scope: str | None, mode: object, force: bool) -> Writes:
        """The answer is the mode as PUT echoes it. Raises `Refused`."""
        if mode is not None and (not isinstance(mode, str) or mode.upper() not in MODES):
            raise invalid_mode()
        name = None if mode is None else str(mode).upper()
        if name == "FORWARD" and scope is not None:
            raise invalid_mode("Forward mode only supported on global level")
        records: list[tuple[RecordKey, RecordValue | None]] = []
        if name == "IMPORT" and mode_in_scope(self._state, scope) != "IMPORT" and not force:
            records = self._emptied(scope)
        value = None if name is None else {"mode": name} if scope is None else {"subject": scope, "mode": name}
        return Writes({"mode": mode}, [*records, (RecordKey(MODE, scope), value)])

    def _emptied(self, scope: str | None) -> list[tuple[RecordKey, RecordValue | None]]:
        """A subject or context must be empty before schemas are imported: soft-deleted versions go for good."""
        everything = [one for one in self._state.subjects(":*:", deleted=True) if in_scope(one, scope)]
        records: list[tuple[RecordKey, RecordValue | None]] = []
        for subject in everything:
            if self._state.versions(subject):
                raise not_permitted("Cannot import since found existing subjects")
            for one in self._state.versions(subject, deleted=True):
                if self._state.referrers(subject, one.version, deleted=True):
                    raise referenced(subject, one.version)
                records.append((RecordKey(SCHEMA, subject, one.version), None))
        if scope is None:
            return records
        return [*records, (RecordKey(CLEAR_SUBJECT, scope), {"subject": scope})]

    def delete_mode(self, scope: str | None, recursive: bool = False) -> Writes:
        """The answer is the mode that was deleted. Raises `Refused`."""
        modes = self._state.modes
        old = modes.get(scope)
        if old is None and not recursive:
            raise subject_not_found(scope or "")
        going = [scope] if old is not None else []
        if recursive:
            inside = prefix_of(DEFAULT) if scope is None else scope
            going += [one for one in modes if one is not None and one != scope and in_scope(one, inside)]
        answer = {} if old is None else {"mode": old}
        return Writes(answer, [(RecordKey(MODE, one), None) for one in going])


def _shown_context(subject: str) -> str:
    return prefix_of(context_of(subject))


def _echo(config: Mapping[str, Any]) -> dict[str, Any]:
    return {("compatibility" if name == "compatibilityLevel" else name): value for name, value in config.items()}


def _group_value(content: SchemaContent, group: str) -> Any:
    """The value of the property that compatibility groups are named after, in a schema's metadata."""
    properties = None if content.metadata is None else json.loads(content.metadata).get("properties")
    return properties.get(group) if isinstance(properties, dict) else None
