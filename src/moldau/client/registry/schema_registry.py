"""`SchemaRegistry`, the client of a schema registry with Confluent's REST interface: Confluent's, Karapace, Apicurio.

Ids never change their meaning, so schemas by id and ids of registered schemas are kept for good. Everything else is
asked each time. Any thread may use it; it blocks, for `request_timeout_ms` an address at most.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from moldau.client.registry.access import PREFIX, SETTINGS, addresses
from moldau.client.registry.names_of_settings import keywords
from moldau.client.registry.schemas import AVRO, Reference, RegisteredSchema, Schema
from moldau.errors import RegistryError, SchemaInvalid, SchemaNotFound

REFERENCES_MAX = 1_000


class SchemaRegistry:
    """A client of a schema registry.

        registry = SchemaRegistry("http://localhost:8081")
        registry.register("orders-value", Schema('{"type": "string"}'))

    The first argument is an address, several with commas between them or as a list (one is asked after the other
    until one answers), or a mapping with Confluent's names: `url`, `basic.auth.user.info` (`user:password`, also
    possible in the address), `bearer.auth.token`, `ssl.ca.location`, `ssl.certificate.location`, `ssl.key.location`,
    `ssl.key.password`, `ssl.verify`, `request.timeout.ms`, and those of Java's clients (`schema.registry.url`,
    `schema.registry.ssl.truststore.location`, ...).
    """

    def __init__(
        self,
        url: str | Iterable[str] | Mapping[str, Any],
        *,
        basic_auth_user_info: str | None = None,
        bearer_auth_token: str | None = None,
        ssl_ca_location: str | None = None,
        ssl_certificate_location: str | None = None,
        ssl_key_location: str | None = None,
        ssl_key_password: str | None = None,
        ssl_verify: bool = True,
        request_timeout_ms: int = 30_000,
    ):
        given = {
            "url": url, "basic_auth_user_info": basic_auth_user_info, "bearer_auth_token": bearer_auth_token,
            "ssl_ca_location": ssl_ca_location, "ssl_certificate_location": ssl_certificate_location,
            "ssl_key_location": ssl_key_location, "ssl_key_password": ssl_key_password, "ssl_verify": ssl_verify,
            "request_timeout_ms": request_timeout_ms,
        }  # fmt: skip
        if isinstance(url, Mapping):
            named = {str(name).removeprefix(PREFIX): value for name, value in url.items()}
            given |= {"url": None, **keywords(named, "SchemaRegistry", SETTINGS)}
        self._given = given
        self._addresses = addresses(given)
        self._by_id: dict[int, Schema] = {}
        self._registered: dict[tuple[str, Schema, bool], int] = {}

    def __repr__(self) -> str:
        return f"<SchemaRegistry at {', '.join(self._addresses.urls)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return SchemaRegistry, (self._given,)

    def schema(self, schema_id: int) -> Schema:
        """The schema with this id. Raises `SchemaNotFound` and `RegistryError`."""
        schema = self._by_id.get(schema_id)
        if schema is None:
            try:
                schema = _schema(self._addresses.ask("GET", f"/schemas/ids/{schema_id}"))
            except SchemaNotFound as error:
                raise SchemaNotFound(
                    f"schema id {schema_id} is not in the schema registry {self._where}", error.status, error.code
                ) from None
            self._by_id[schema_id] = schema
        return schema

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """Register the schema as a version of the subject, unless it is one, and return its id. Raises
        `SchemaIncompatible`, `SchemaInvalid` and `RegistryError`."""
        known = self._registered.get((subject, schema, normalize))
        if known is None:
            path = f"/subjects/{quote(subject, safe='')}/versions{'?normalize=true' if normalize else ''}"
            known = _number(self._addresses.ask("POST", path, _body(schema)), "id")
            self._registered[subject, schema, normalize] = known
        return known

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The version of the subject that has this schema. Raises `SchemaNotFound` and `RegistryError`."""
        path = f"/subjects/{quote(subject, safe='')}{'?normalize=true' if normalize else ''}"
        return _registered(self._addresses.ask("POST", path, _body(schema)))

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """A version of the subject, a number or `latest`. Raises `SchemaNotFound` and `RegistryError`."""
        return _registered(self._addresses.ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}"))

    def subjects(self) -> list[str]:
        """All subjects. Raises `RegistryError`."""
        return [str(one) for one in _list(self._addresses.ask("GET", "/subjects"))]

    def versions(self, subject: str) -> list[int]:
        """The numbers of the subject's versions. Raises `SchemaNotFound` and `RegistryError`."""
        return [int(one) for one in _list(self._addresses.ask("GET", f"/subjects/{quote(subject, safe='')}/versions"))]

    def incompatibilities(self, subject: str, schema: Schema, version: int | str | None = "latest") -> list[str]:
        """Why the schema may not follow this version of the subject, or (None) those that its level compares with; an
        empty list if it may. Raises `RegistryError`."""
        which = "" if version is None else f"/{version}"
        path = f"/compatibility/subjects/{quote(subject, safe='')}/versions{which}?verbose=true"
        answer = self._addresses.ask("POST", path, _body(schema))
        if not isinstance(answer, dict) or "is_compatible" not in answer:
            raise _strange(answer)
        said = [str(one) for one in answer.get("messages") or ()]
        return [] if answer["is_compatible"] else said or ["the registry does not say why"]

    def compatibility(self, subject: str | None = None) -> str:
        """The compatibility level of a subject, or of the registry: `BACKWARD`, for example. Raises
        `RegistryError`."""
        path = "/config" if subject is None else f"/config/{quote(subject, safe='')}?defaultToGlobal=true"
        answer = self._addresses.ask("GET", path)
        if not isinstance(answer, dict) or "compatibilityLevel" not in answer:
            raise _strange(answer)
        return str(answer["compatibilityLevel"])

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Set the compatibility level of a subject, or of the registry. Raises `RegistryError`."""
        path = "/config" if subject is None else f"/config/{quote(subject, safe='')}"
        self._addresses.ask("PUT", path, {"compatibility": level})

    def delete_subject(self, subject: str) -> list[int]:
        """Delete all versions of a subject; their ids can still be read. Returns the versions. Raises
        `RegistryError`."""
        self._registered = {key: one for key, one in self._registered.items() if key[0] != subject}
        return [int(one) for one in _list(self._addresses.ask("DELETE", f"/subjects/{quote(subject, safe='')}"))]

    def referenced(self, schema: Schema) -> dict[str, Schema]:
        """The schemas that this one refers to, directly and through others, by name. A schema comes behind those that
        it refers to. Deleted subjects count, too: records that were written with the schema may still be read. Raises
        `RegistryError`."""
        schemas: dict[str, Schema] = {}
        self._refer(schema, schemas, ())
        return schemas

    def _refer(self, schema: Schema, schemas: dict[str, Schema], above: tuple[Reference, ...]) -> None:
        for reference in schema.references:
            if reference in above or len(schemas) >= REFERENCES_MAX:
                raise SchemaInvalid(f"the references of the schema lead back to {reference.name}")
            if reference.name not in schemas:
                path = f"/subjects/{quote(reference.subject, safe='')}/versions/{reference.version}?deleted=true"
                other = _schema(self._addresses.ask("GET", path))
                self._refer(other, schemas, (*above, reference))
                schemas[reference.name] = other

    @property
    def _where(self) -> str:
        return ", ".join(self._addresses.urls)


def _body(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.kind != AVRO:
        body["schemaType"] = schema.kind
    if schema.references:
        body["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version} for one in schema.references
        ]
    return body


def _schema(answer: Any) -> Schema:
    try:
        references = tuple(
            Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
            for one in answer.get("references") or ()
        )
        return Schema(str(answer["schema"]), str(answer.get("schemaType") or AVRO), references)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _strange(answer) from None


def _registered(answer: Any) -> RegisteredSchema:
    schema = _schema(answer)
    return RegisteredSchema(str(answer.get("subject")), _number(answer, "version"), _number(answer, "id"), schema)


def _number(answer: Any, name: str) -> int:
    try:
        return int(answer[name])
    except (KeyError, TypeError, ValueError):
        raise _strange(answer) from None


def _list(answer: Any) -> list[Any]:
    if not isinstance(answer, list):
        raise _strange(answer)
    return answer


def _strange(answer: Any) -> RegistryError:
    return RegistryError(f"the schema registry's answer is not one of Confluent's interface: {str(answer)[:80]}")
