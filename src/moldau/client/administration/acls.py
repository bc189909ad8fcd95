"""Access rights: describe, create and delete ACLs. A broker without an authorizer answers `SecurityDisabled`."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar, get_args

from moldau.client.administration.asking import AdminPart, failure
from moldau.client.failures import unasked
from moldau.client.values import value
from moldau.errors import ConfigError, KafkaError
from moldau.protocol.apis import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS

ResourceTypeName = Literal["any", "topic", "group", "cluster", "transactional_id", "delegation_token", "user"]
PatternType = Literal["any", "match", "literal", "prefixed"]
OperationName = Literal[
    "any", "all", "read", "write", "create", "delete", "alter", "describe", "cluster_action", "describe_configs",
    "alter_configs", "idempotent_write", "create_tokens", "describe_tokens", "two_phase_commit",
]  # fmt: skip
Permission = Literal["any", "deny", "allow"]

RESOURCE_TYPES, PATTERN_TYPES, OPERATIONS, PERMISSIONS = (
    {name: number for number, name in enumerate(get_args(names), 1)}
    for names in (ResourceTypeName, PatternType, OperationName, Permission)
)
"""Kafka's numbers of the names."""
T = TypeVar("T")


@value
class Acl:
    """A rule that allows or denies a principal an operation on a resource. `resource` is a name, "*" for all, with the
    pattern "prefixed" the beginning of names, for the cluster "kafka-cluster". `principal` is "User:name", `host` an
    address or "*"."""

    resource_type: ResourceTypeName
    resource: str
    principal: str
    operation: OperationName
    permission: Permission = "allow"
    host: str = "*"
    pattern: PatternType = "literal"

    def __post_init__(self) -> None:
        if "any" in (self.resource_type, self.operation, self.permission, self.pattern) or self.pattern == "match":
            raise ConfigError('an Acl needs exact values; "any" and "match" are for an AclFilter')


@value
class AclFilter:
    """Selects the ACLs that match all given fields. The pattern "match" selects all that concern `resource`: by its
    name, by a prefix, or by "*"."""

    resource_type: ResourceTypeName = "any"
    resource: str | None = None
    principal: str | None = None
    operation: OperationName = "any"
    permission: Permission = "any"
    host: str | None = None
    pattern: PatternType = "any"

    def as_fields(self) -> dict[str, Any]:
        """The fields of a request."""
        return {
            "resource_type_filter": _number(RESOURCE_TYPES, self.resource_type),
            "resource_name_filter": self.resource,
            "pattern_type_filter": _number(PATTERN_TYPES, self.pattern),
            "principal_filter": self.principal,
            "host_filter": self.host,
            "operation": _number(OPERATIONS, self.operation),
            "permission_type": _number(PERMISSIONS, self.permission),
        }


ALL = AclFilter()


class AclsPart(AdminPart):
    """The part of an admin client for access rights."""

    async def describe_acls(self, which: AclFilter = ALL) -> list[Acl]:
        """The ACLs that a filter selects, all by default. Raises `SecurityDisabled` and others."""
        request = DESCRIBE_ACLS.messages.DescribeAclsRequest(**which.as_fields())
        reply = await self._ask(DESCRIBE_ACLS, request, "describing ACLs")
        return [_acl(resource, entry) for resource in reply.resources for entry in resource.acls]

    async def create_acls(self, acls: Iterable[Acl]) -> dict[Acl, KafkaError | None]:
        """Create these ACLs. Returns None or the error of each."""
        wanted, messages = list(acls), CREATE_ACLS.messages
        creations = [
            messages.AclCreation(
                resource_type=_number(RESOURCE_TYPES, one.resource_type),
                resource_name=one.resource,
                resource_pattern_type=_number(PATTERN_TYPES, one.pattern),
                principal=one.principal,
                host=one.host,
                operation=_number(OPERATIONS, one.operation),
                permission_type=_number(PERMISSIONS, one.permission),
            )
            for one in wanted
        ]
        reply = await self._ask(CREATE_ACLS, messages.CreateAclsRequest(creations=creations), "creating ACLs")
        results = _one_for_each(wanted, reply.results)
        return {one: failure(result, "creating an ACL") for one, result in results}

    async def delete_acls(self, which: Iterable[AclFilter]) -> dict[AclFilter, list[Acl] | KafkaError]:
        """Delete the ACLs that these filters select. Returns the deleted ACLs, or the error, for each filter."""
        wanted, messages = list(which), DELETE_ACLS.messages
        filters = [messages.DeleteAclsFilter(**one.as_fields()) for one in wanted]
        reply = await self._ask(DELETE_ACLS, messages.DeleteAclsRequest(filters=filters), "deleting ACLs")
        deleted: dict[AclFilter, list[Acl] | KafkaError] = {}
        for one, result in _one_for_each(wanted, reply.filter_results):
            outcomes = [failure(part, "deleting ACLs") for part in (result, *result.matching_acls)]
            failed = next((error for error in outcomes if error is not None), None)
            deleted[one] = failed or [_acl(part, part) for part in result.matching_acls]
        return deleted


def _one_for_each(asked: Sequence[T], results: Sequence[Any]) -> list[tuple[T, Any]]:
    """Each part of a request with its result, which has the same place in the reply. Raises `KafkaError` if the reply
    has more or less of them."""
    if len(asked) != len(results):
        raise unasked(f"has {len(results)} results for {len(asked)} ACLs or filters")
    return list(zip(asked, results, strict=True))


def _acl(resource: Any, entry: Any) -> Acl:
    return Acl(
        _name(RESOURCE_TYPES, resource.resource_type),
        resource.resource_name,
        entry.principal,
        _name(OPERATIONS, entry.operation),
        _name(PERMISSIONS, entry.permission_type),
        entry.host,
        _name(PATTERN_TYPES, resource.pattern_type),
    )


def _name(numbers: dict[str, int], number: int) -> Any:
    """The name of a number; a newer broker may have one that has no name here."""
    return next((name for name, one in numbers.items() if one == number), f"unknown ({number})")


def _number(numbers: dict[str, int], name: str) -> int:
    if name not in numbers:
        raise ConfigError(f"{name!r} is not one of {', '.join(numbers)}")
    return numbers[name]
