"""`RegistryApi`: what each endpoint of Confluent's REST interface does. The table of paths is at the end.

A function that reads returns the answer's JSON tree. One that changes something returns a decision, whose records are
written to the topic before the answer.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from moldau.registry.contexts import ANY
from moldau.registry.decisions import Decisions, NewSchema, Writes
from moldau.registry.http_messages import RestRequest, id_of, subject_of, version_of
from moldau.registry.reading import Answers, page
from moldau.registry.refusals import schema_not_found, unprocessable
from moldau.registry.resolving import SchemaResolver
from moldau.registry.scopes import normalizes, scope_of
from moldau.registry.state import RegistryState
from moldau.registry.topic_records import StoredVersion

Decide = Callable[[], Writes]


@dataclass(frozen=True)
class RawText:
    """An answer that is the text of a schema itself."""

    text: str


class RegistryApi:
    """Answers requests from the state. Every method raises `Refused`."""

    def __init__(self, state: RegistryState):
        resolver = SchemaResolver(state)
        self._state = state
        self._decisions = Decisions(state, resolver)
        self._answers = Answers(state, resolver, self._decisions)

    # Subjects and versions.

    def list_subjects(self, request: RestRequest) -> list[str]:
        prefix = request.text("subjectPrefix") or ANY
        found = self._answers.subjects(prefix, request.flag("deleted"), request.flag("deletedOnly"))
        return self._page(filter(request.may_read, found), request)

    def look_up(self, request: RestRequest, subject: str) -> dict[str, Any]:
        name = subject_of(subject)
        found = self._answers.lookup(name, request.content(), request.flag("normalize"), request.flag("deleted"))
        return self._shown(found, request)

    def delete_subject(self, request: RestRequest, subject: str) -> Decide:
        name, permanent = subject_of(subject), request.flag("permanent")
        return lambda: self._decisions.delete_subject(name, permanent)

    def list_versions(self, request: RestRequest, subject: str) -> list[int]:
        flags = (request.flag(name) for name in ("deleted", "deletedOnly", "deletedAsNegative"))
        return self._page(self._answers.versions(subject_of(subject), *flags), request)

    def register(self, request: RestRequest, subject: str) -> Decide:
        given = self._new_schema(request, subject)

        def decide() -> Writes:
            writes = self._decisions.register(given())
            registered = writes.answer
            assert isinstance(registered, StoredVersion)
            return Writes(self._answers.registered(registered, request.wants_all), writes.records)

        return decide

    def find_registered(self, request: RestRequest, subject: str) -> dict[str, Any]:
        """The answer to a registration that writes nothing, because the subject has the schema already."""
        found = self._decisions.registered(self._new_schema(request, subject)())
        if found is None:
            raise schema_not_found()
        return self._answers.registered(found, request.wants_all)

    def _new_schema(self, request: RestRequest, subject: str) -> Callable[[], NewSchema]:
        """Makes the schema of the request, as the settings are when it is called."""
        name, tree = subject_of(subject), request.tree()
        schema_id, version = _given_number(tree, "id", -1), max(_given_number(tree, "version", 0), 0)
        content, normalize = request.content(), request.flag("normalize")
        return lambda: NewSchema(name, content, schema_id, version, normalize or normalizes(self._state, name))

    def get_version(self, request: RestRequest, subject: str, version: str) -> dict[str, Any]:
        return self._shown(self._version(request, subject, version), request)

    def get_version_text(self, request: RestRequest, subject: str, version: str) -> RawText:
        return RawText(self._shown(self._version(request, subject, version), request)["schema"])

    def delete_version(self, request: RestRequest, subject: str, version: str) -> Decide:
        name, number, permanent = subject_of(subject), version_of(version), request.flag("permanent")
        return lambda: self._decisions.delete_version(name, number, permanent)

    def list_referrers(self, request: RestRequest, subject: str, version: str) -> list[int]:
        found = self._answers.referrers(subject_of(subject), version_of(version), request.flag("deleted"))
        return self._page(found, request)

    def get_by_metadata(self, request: RestRequest, subject: str) -> dict[str, Any]:
        keys, values = request.query.get("key", []), request.query.get("value", [])
        wanted = dict(zip(keys, values, strict=False))
        return self._shown(self._answers.with_metadata(subject_of(subject), wanted, request.flag("deleted")), request)

    def _version(self, request: RestRequest, subject: str, version: str) -> StoredVersion:
        return self._answers.version(subject_of(subject), version_of(version), request.flag("deleted"))

    def _shown(self, version: StoredVersion, request: RestRequest) -> dict[str, Any]:
        return self._answers.shown_version(version, request.text("format"), request.wants_all)

    def _page(self, found: Iterable[Any], request: RestRequest) -> list[Any]:
        return page([*found], request.number("offset", 0), request.number("limit", -1))

    # Schemas by id.

    def list_schemas(self, request: RestRequest) -> list[dict[str, Any]]:
        prefix, flags = request.text("subjectPrefix") or ANY, (request.flag("deleted"), request.flag("latestOnly"))
        found = (one for one in self._answers.all_versions(prefix, *flags) if request.may_read(one.subject))
        return [self._shown(one, request) for one in self._page(found, request)]

    def list_kinds(self, request: RestRequest) -> list[str]:
        return self._answers.kinds()

    def get_schema(self, request: RestRequest, schema_id: str) -> dict[str, Any]:
        subject, form = request.text("subject"), request.text("format")
        return self._answers.schema(id_of(schema_id), subject, form, request.flag("fetchMaxId"), request.wants_all)

    def get_schema_text(self, request: RestRequest, schema_id: str) -> RawText:
        return RawText(self.get_schema(request, schema_id)["schema"])

    def list_subjects_of(self, request: RestRequest, schema_id: str) -> list[str]:
        return self._page(dict.fromkeys(one["subject"] for one in self._places(request, schema_id)), request)

    def list_versions_of(self, request: RestRequest, schema_id: str) -> list[dict[str, Any]]:
        return self._page(self._places(request, schema_id), request)

    def _places(self, request: RestRequest, schema_id: str) -> list[dict[str, Any]]:
        found = self._answers.places(id_of(schema_id), request.text("subject"), request.flag("deleted"))
        return [one for one in found if request.may_read(one["subject"])]

    def get_guid(self, request: RestRequest, guid: str) -> dict[str, Any]:
        return self._answers.of_guid(guid[:80], request.text("format"), request.wants_all)

    def list_ids_of(self, request: RestRequest, guid: str) -> list[dict[str, Any]]:
        return self._answers.ids_of_guid(guid)

    # Compatibility.

    def check(self, request: RestRequest, subject: str, version: str | None = None) -> dict[str, Any]:
        number = None if version is None else version_of(version)
        flags = request.flag("normalize"), request.flag("verbose")
        return self._answers.compatible(subject_of(subject), request.content(), number, *flags)

    # Settings and modes, of the registry or of a subject or context.

    def get_config(self, request: RestRequest, subject: str | None = None) -> dict[str, Any]:
        return self._answers.config(_scope(subject), request.flag("defaultToGlobal"))

    def put_config(self, request: RestRequest, subject: str | None = None) -> Decide:
        scope, given = _scope(subject), request.tree()
        return lambda: self._decisions.set_config(scope, given)

    def delete_config(self, request: RestRequest, subject: str | None = None) -> Decide:
        scope = _scope(subject)
        return lambda: self._decisions.delete_config(scope)

    def get_mode(self, request: RestRequest, subject: str | None = None) -> dict[str, str]:
        return self._answers.mode(_scope(subject), request.flag("defaultToGlobal"))

    def put_mode(self, request: RestRequest, subject: str | None = None) -> Decide:
        scope, given, force = _scope(subject), request.tree().get("mode"), request.flag("force")
        return lambda: self._decisions.set_mode(scope, given, force)

    def delete_mode(self, request: RestRequest, subject: str | None = None) -> Decide:
        scope, recursive = _scope(subject), request.flag("recursive")
        return lambda: self._decisions.delete_mode(scope, recursive)

    def list_contexts(self, request: RestRequest) -> list[str]:
        return self._answers.contexts()

    def show_nothing(self, request: RestRequest) -> dict[str, Any]:
        return {}


def _scope(subject: str | None) -> str | None:
    return scope_of(None if subject is None else subject_of(subject, may_be_context=True))


def _given_number(tree: dict[str, Any], name: str, default: int) -> int:
    value = tree.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= (1 << 31) - 1:
        raise unprocessable(f"{name} is not a number of 0 to {(1 << 31) - 1}")
    return value


ROUTES: dict[str, dict[str, Callable[..., Any]]] = {
    "": {"GET": RegistryApi.show_nothing, "POST": RegistryApi.show_nothing},
    "subjects": {"GET": RegistryApi.list_subjects},
    "subjects/*": {"POST": RegistryApi.look_up, "DELETE": RegistryApi.delete_subject},
    "subjects/*/metadata": {"GET": RegistryApi.get_by_metadata},
    "subjects/*/versions": {"GET": RegistryApi.list_versions, "POST": RegistryApi.register},
    "subjects/*/versions/*": {"GET": RegistryApi.get_version, "DELETE": RegistryApi.delete_version},
    "subjects/*/versions/*/schema": {"GET": RegistryApi.get_version_text},
    "subjects/*/versions/*/referencedby": {"GET": RegistryApi.list_referrers},
    "schemas": {"GET": RegistryApi.list_schemas},
    "schemas/types": {"GET": RegistryApi.list_kinds},
    "schemas/ids/*": {"GET": RegistryApi.get_schema},
    "schemas/ids/*/schema": {"GET": RegistryApi.get_schema_text},
    "schemas/ids/*/subjects": {"GET": RegistryApi.list_subjects_of},
    "schemas/ids/*/versions": {"GET": RegistryApi.list_versions_of},
    "schemas/guids/*": {"GET": RegistryApi.get_guid},
    "schemas/guids/*/ids": {"GET": RegistryApi.list_ids_of},
    "compatibility/subjects/*/versions": {"POST": RegistryApi.check},
    "compatibility/subjects/*/versions/*": {"POST": RegistryApi.check},
    "config": {"GET": RegistryApi.get_config, "PUT": RegistryApi.put_config, "DELETE": RegistryApi.delete_config},
    "config/*": {"GET": RegistryApi.get_config, "PUT": RegistryApi.put_config, "DELETE": RegistryApi.delete_config},
    "mode": {"GET": RegistryApi.get_mode, "PUT": RegistryApi.put_mode, "DELETE": RegistryApi.delete_mode},
    "mode/*": {"GET": RegistryApi.get_mode, "PUT": RegistryApi.put_mode, "DELETE": RegistryApi.delete_mode},
    "contexts": {"GET": RegistryApi.list_contexts},
}
"""Path -> method -> function; `*` is one piece of the path, and an argument of the function."""

RestRoute = tuple[Callable[..., Any], tuple[str, ...]]


def _split(pattern: str) -> tuple[str, ...]:
    return tuple(part for part in pattern.split("/") if part)


_BY_LENGTH: dict[int, list[tuple[tuple[str, ...], dict[str, Callable[..., Any]]]]] = {}
for _pattern, _methods in ROUTES.items():
    _BY_LENGTH.setdefault(len(_split(_pattern)), []).append((_split(_pattern), _methods))


def route_of(method: str, parts: tuple[str, ...]) -> RestRoute | list[str] | None:
    """The function and its arguments; None for an unknown path, the methods of the path for a wrong method."""
    for pattern, methods in _BY_LENGTH.get(len(parts), ()):
        if all(one in ("*", part) for one, part in zip(pattern, parts, strict=True)):
            function = methods.get(method)
            if function is None:
                return sorted(methods)
            return function, tuple(part for one, part in zip(pattern, parts, strict=True) if one == "*")
    return None
