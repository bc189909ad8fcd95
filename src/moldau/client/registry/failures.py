"""The errors of a schema registry and of framed records: one exception for each meaning."""

from moldau.errors import MoldauError


class RegistryError(MoldauError):
    """The schema registry refused a request. `status` is the HTTP status, `code` the registry's own error code (40401,
    for example), or 0 where no registry has answered."""

    def __init__(self, sentence: str, status: int = 0, code: int = 0):
        super().__init__(sentence)
        self.status = status
        self.code = code


class RegistryUnavailable(RegistryError, ConnectionError):
    """None of the registry's addresses answered. Also a `ConnectionError`."""


class RegistryUnauthorized(RegistryError):
    """The registry wants other credentials, or the user may not do this."""


class SchemaNotFound(RegistryError):
    """The registry has no such subject, version, schema or id."""


class SchemaIncompatible(RegistryError):
    """The subject's compatibility level does not allow this schema after its earlier versions."""


class SchemaInvalid(RegistryError, ValueError):
    """The text is not a schema, or not one that the registry accepts. Also a `ValueError`."""


class NotFramed(MoldauError, ValueError):
    """The bytes do not begin with the magic byte 0 and a schema id of 4 bytes. Also a `ValueError`."""


class DoesNotFit(MoldauError, ValueError):
    """A value or its bytes do not fit the schema. Also a `ValueError`."""


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
