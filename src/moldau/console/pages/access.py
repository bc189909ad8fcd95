"""Access rights and quotas: lists, and forms that add and remove one."""

from typing import Any, get_args

from moldau.client.administration.acls import (
    Acl,
    AclFilter,
    OperationName,
    PatternType,
    Permission,
    ResourceTypeName,
)
from moldau.client.administration.quotas import QuotaEntity
from moldau.console.context import ConsoleContext, paging
from moldau.console.web.answers import Answer, redirection
from moldau.console.web.refusing import BAD_REQUEST, PageRefusal
from moldau.console.web.requests import PageRequest
from moldau.errors import ErrorCode, KafkaError, MoldauError

ROWS = 100
KINDS = ("user", "client-id", "ip")
EVERYBODY = "<default>"
KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
        "connection_creation_rate")  # fmt: skip
CHOICES = {
    "permission": [one for one in get_args(Permission) if one != "any"][::-1],
    "operation": [one for one in get_args(OperationName) if one != "any"],
    "resource_type": [one for one in get_args(ResourceTypeName) if one != "any"],
    "pattern": [one for one in get_args(PatternType) if one not in ("any", "match")],
}
WITHOUT_AUTHORIZER = (
    "The brokers have no authorizer (authorizer.class.name), so everybody who can connect to them may do everything."
)
FIELDS = ("principal", "permission", "operation", "resource_type", "pattern", "resource", "host")


async def acls(console: ConsoleContext, request: PageRequest) -> Answer:
    return await _acls(console, request)


async def _acls(console: ConsoleContext, request: PageRequest, wrong: str = "", status: int = 200) -> Answer:
    wanted = request.text("q").strip().lower()
    why_not, found = "", list[Acl]()
    try:
        found = [
            one for one in await request.admin.describe_acls() if wanted in f"{one.principal} {one.resource}".lower()
        ]
    except KafkaError as failure:
        why_not = WITHOUT_AUTHORIZER if failure.code is ErrorCode.SECURITY_DISABLED else request.said(failure)
    found.sort(key=lambda one: (one.principal, one.resource_type, one.resource, one.operation))
    part = paging(request, ROWS, len(found))
    form = {name: request.field(name) for name in FIELDS}
    return console.page(
        request, "acls.html", status, rows=part.of(found), paging=part, asked=request.text("q").strip()[:250],
        wrong=wrong, why_not=why_not, form=form, choices=CHOICES,
    )  # fmt: skip


def _acl(request: PageRequest) -> dict[str, Any]:
    """The fields of one ACL. Raises `PageRefusal`."""
    given = {name: request.field(name).strip() for name in FIELDS}
    for name, choices in CHOICES.items():
        if given[name] not in choices:
            raise PageRefusal(BAD_REQUEST, f"{name.replace('_', ' ')} is one of {', '.join(choices)}")
    return given


async def add_acl(console: ConsoleContext, request: PageRequest) -> Answer:
    try:
        given = _acl(request)
        one = Acl(**{**given, "host": given["host"] or "*"})
        (error,) = (await request.admin.create_acls([one])).values()
        if error is not None:
            raise error
    except MoldauError as refused:
        return await _acls(console, request, request.said(refused), BAD_REQUEST)
    return redirection("/acls?done=acl-added")


async def remove_acl(console: ConsoleContext, request: PageRequest) -> Answer:
    (deleted,) = (await request.admin.delete_acls([AclFilter(**_acl(request))])).values()
    if isinstance(deleted, KafkaError):
        raise deleted
    return redirection("/acls?done=acl-removed")


async def quotas(console: ConsoleContext, request: PageRequest) -> Answer:
    return await _quotas(console, request)


async def _quotas(console: ConsoleContext, request: PageRequest, wrong: str = "", status: int = 200) -> Answer:
    found = await request.admin.describe_client_quotas()
    rows = sorted(
        (
            ([_shown(dict(entity), kind) for kind in KINDS], key, value)
            for entity, values in found.items()
            for key, value in values.items()
        )
    )
    part = paging(request, ROWS, len(rows))
    form = {name: request.field(name) for name in (*KINDS, "key", "value")}
    return console.page(
        request, "quotas.html", status, rows=part.of(rows), paging=part, wrong=wrong, form=form, keys=KEYS
    )


def _shown(entity: dict[str, str | None], kind: str) -> str:
    return "" if kind not in entity else entity[kind] or EVERYBODY


async def set_quota(console: ConsoleContext, request: PageRequest) -> Answer:
    """Set one quota, or remove it if the form has no value."""
    try:
        entity: QuotaEntity = tuple(
            (kind, None if request.field(kind).strip() == EVERYBODY else request.field(kind).strip())
            for kind in KINDS
            if request.field(kind).strip()
        )
        if not entity:
            raise PageRefusal(BAD_REQUEST, f"name a user, a client id or an address; {EVERYBODY} is for all others")
        text = request.field("value").strip()
        wanted = {request.field("key").strip(): _rate(text) if text else None}
        (error,) = (await request.admin.alter_client_quotas({entity: wanted})).values()
        if error is not None:
            raise error
    except MoldauError as refused:
        return await _quotas(console, request, request.said(refused), BAD_REQUEST)
    return redirection("/quotas?done=quota")


def _rate(text: str) -> float:
    """Raises `PageRefusal`."""
    try:
        value = float(text)
    except ValueError:
        raise PageRefusal(BAD_REQUEST, f"the value of a quota is a number, not {text[:40]!r}") from None
    if not 0 < value < 1e15:
        raise PageRefusal(BAD_REQUEST, f"the value of a quota is above 0, and not {text[:40]}")
    return value
