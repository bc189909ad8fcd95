"""What a schema registry answers, as exceptions."""

from moldau.errors import RegistryError, RegistryUnauthorized, SchemaIncompatible, SchemaInvalid, SchemaNotFound


def refused(where: str, status: int, code: int, said: str) -> RegistryError:
    """The exception for an answer of a registry."""
    kind: type[RegistryError] = RegistryError
    if status in (401, 403):
        kind, said = RegistryUnauthorized, said or "the credentials (basic.auth.user.info) were refused"
    elif status == 409:
        kind = SchemaIncompatible
    elif status == 404 and code // 100 == 404:
        kind = SchemaNotFound
    elif status == 422:
        kind = SchemaInvalid
    number = code or f"HTTP {status}"
    return kind(f"the schema registry {where} answered {number}: {said.strip() or 'nothing more'}", status, code)
