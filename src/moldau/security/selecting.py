"""Filters of ACLs, and ACLs that cannot be made, as the ACL APIs have them. Pure."""

from typing import NamedTuple

from moldau.cluster.state import acls
from moldau.cluster.state.acls import WILDCARD, AclEntry, AclPattern, AclPatternType, AclPermission
from moldau.errors import ErrorCode
from moldau.requests.access import CLUSTER_NAME, ResourceType

ANY, MATCH = 1, 2
"""In a filter: everything, and (of pattern types) all patterns that are about a name."""
_CUT = 200


class AclSelection(NamedTuple):
    """Selects ACLs that agree with all that is given: None and `ANY` agree with everything."""

    resource_type: int = ANY
    name: str | None = None
    pattern_type: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def selects(self, pattern: AclPattern, entry: AclEntry) -> bool:
        return self.selects_pattern(pattern) and self.selects_entry(entry)

    def selects_pattern(self, pattern: AclPattern) -> bool:
        if self.resource_type not in (ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (ANY, MATCH, pattern.pattern_type):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern_type != MATCH:
            return False
        if pattern.pattern_type is AclPatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name == WILDCARD

    def selects_entry(self, entry: AclEntry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (ANY, entry.operation)
            and self.permission in (ANY, entry.permission)
        )


class Invalid(NamedTuple):
    """Why an ACL cannot be made."""

    message: str
    code: ErrorCode = ErrorCode.INVALID_REQUEST


def made(
    resource_type: int, name: str, pattern_type: int, principal: str, host: str, operation: int, permission: int
) -> tuple[AclPattern, AclEntry] | Invalid:
    """The ACL of these values of a request, by Kafka's numbers."""
    if resource_type not in acls.RESOURCE_TYPES:
        return Invalid(f"an ACL is not about resources of type {resource_type}")
    if pattern_type not in list(AclPatternType):
        return Invalid("the pattern of an ACL is literal or prefixed")
    if operation not in acls.OPERATIONS:
        return Invalid(f"an ACL is not about the operation {operation}")
    if permission not in list(AclPermission):
        return Invalid("an ACL allows or denies")
    if not name:
        return Invalid("Invalid empty resource name")
    if resource_type == ResourceType.CLUSTER and name != CLUSTER_NAME:
        return Invalid(f"the only resource of the type CLUSTER is {CLUSTER_NAME}, not {name[:_CUT]}")
    if ":" not in principal:
        return Invalid(f"a principal is TYPE:NAME, such as User:ann, not {principal[:_CUT]}")
    if not host:
        return Invalid("a host is an address, or * for all")
    pattern = AclPattern(resource_type, name, AclPatternType(pattern_type))
    return pattern, AclEntry(principal, host, operation, AclPermission(permission))
