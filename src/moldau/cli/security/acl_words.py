"""The words of `moldau acls`: resources and operations as they are given, and ACLs as they are printed."""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from moldau.cli.command_line import Option, UsageError
from moldau.client.administration.acls import OPERATIONS, Acl

PRODUCER = {"topic": ("write", "describe", "create"), "transactional_id": ("write", "describe")}
CONSUMER = {"topic": ("read", "describe"), "group": ("read",)}
"""What they need, by the type of the resource, as `kafka-acls` has it."""
ON = {
    "topic": (
        "read", "write", "create", "describe", "delete", "alter", "describe_configs", "alter_configs",
    ),
    "group": ("read", "describe", "delete", "describe_configs", "alter_configs"),
    "cluster": (
        "create", "cluster_action", "describe_configs", "alter_configs", "idempotent_write", "alter", "describe",
    ),
    "transactional_id": ("describe", "write", "two_phase_commit"),
    "delegation_token": ("describe",),
    "user": ("create_tokens", "describe_tokens"),
}  # fmt: skip
"""The operations on resources of each type; an ACL of another one would allow nothing."""
_CLUSTER = ("cluster", "kafka-cluster")
_WORDS: dict[str, str] = {name.replace("_", ""): name for name in OPERATIONS if name != "any"}


class NamedResources(NamedTuple):
    """The options that name resources."""

    topic: Annotated[list[str] | None, Option(metavar="NAME", help="A topic, or * for all; repeatable.")] = None
    group: Annotated[list[str] | None, Option(metavar="NAME", help="A group, or *; repeatable.")] = None
    transactional_id: Annotated[
        list[str] | None, Option(metavar="ID", help="A transactional id, or *; repeatable.")
    ] = None
    delegation_token: Annotated[list[str] | None, Option(metavar="ID", help="A token, or *; repeatable.")] = None
    user_principal: Annotated[
        list[str] | None, Option(metavar="User:NAME", help="A user as a resource; repeatable.")
    ] = None
    cluster: Annotated[bool, Option(help="The cluster.")] = False


OF_NONE = NamedResources()


class Resources(list[tuple[str, str]]):
    """The type and name of each resource that is named."""

    @classmethod
    def of(cls, named: NamedResources) -> "Resources":
        every = {
            "topic": named.topic,
            "group": named.group,
            "transactional_id": named.transactional_id,
            "delegation_token": named.delegation_token,
            "user": named.user_principal,
        }
        found = [(kind, name) for kind, names in every.items() for name in names or ()]
        return cls([*found, *([_CLUSTER] if named.cluster else [])])

    def names(self, kind: str) -> list[str]:
        return [name for one, name in self if one == kind]


def operation_word(text: str) -> str:
    """An operation's name as the client has it: `DescribeConfigs`, `describe_configs` and `DESCRIBE_CONFIGS` are one.
    Raises `UsageError`."""
    found: str | None = _WORDS.get(text.lower().replace("_", ""))
    if found is None:
        shown = ", ".join(_pascal(name) for name in _WORDS.values())
        raise UsageError(f"--operation {text!r} is not one of {shown}")
    return found


def operation_on(kind: str, text: str) -> str:
    """As `operation_word`, for resources of that type. Raises `UsageError`."""
    operation = operation_word(text)
    if operation != "all" and operation not in ON[kind]:
        known = ", ".join(map(_pascal, ON[kind]))
        raise UsageError(
            f"{_pascal(operation)} is not an operation on a {kind.replace('_', ' ')}: it is one of {known}"
        )
    return operation


def operation_name(one: Any) -> Any:
    """Of an ACL: its operation for people. Of a text: its operation as a filter has it."""
    if isinstance(one, Acl):
        return _pascal(one.operation)
    return one if one == "any" else operation_word(one)


def wanted_acls(
    needed: Sequence[tuple[str, str, str]],
    pattern: str,
    principals: Iterable[str],
    hosts: Sequence[str],
    permission: str,
) -> list[Acl]:
    """The ACLs that give, or deny, these rights. Raises `UsageError`."""
    if pattern not in ("literal", "prefixed"):
        raise UsageError(f"--resource-pattern-type is literal or prefixed, not {pattern!r}")
    for host in hosts:
        _check_host(host)
    made: list[Any] = [
        (kind, name, principal, operation_word(operation), permission, host, _pattern_of(kind, pattern))
        for principal in principals
        for host in hosts
        for kind, name, operation in needed
    ]
    return [Acl(*one) for one in made]


def _check_host(host: str) -> None:
    """Brokers compare addresses: a name, or a network, would fit no client."""
    try:
        if host != "*":
            ipaddress.ip_address(host)
    except ValueError:
        raise UsageError(
            f"a host is an IP address, or * for all, not {host!r}: names and networks are not looked up"
        ) from None


def _pattern_of(kind: str, pattern: str) -> str:
    return "literal" if kind == "cluster" else pattern


def _pascal(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))


def resource_words(kind: str, name: str, pattern: str = "literal") -> str:
    if kind == "cluster":
        return "the cluster"
    of = {"topic": "topic", "group": "group", "transactional_id": "transactional id", "user": "user"}.get(kind, kind)
    if pattern == "prefixed":
        return f"each {of} that begins with {name}"
    return f"every {of}" if name == "*" else f"{of} {name}"


def sentence(one: Acl) -> str:
    """An ACL in words."""
    may = "may" if one.permission == "allow" else "may not"
    who = "everybody" if one.principal == "User:*" else one.principal
    where = "" if one.host == "*" else f" from {one.host}"
    what = "do everything" if one.operation == "all" else _pascal(one.operation)
    return f"{who} {may} {what} on {resource_words(one.resource_type, one.resource, one.pattern)}{where}"


def as_json_object(one: Acl) -> dict[str, str]:
    return {
        "resource_type": one.resource_type,
        "name": one.resource,
        "pattern": one.pattern,
        "permission": one.permission,
        "principal": one.principal,
        "host": one.host,
        "operation": one.operation,
    }
