"""What access control lists allow: the rules of Kafka's standard authorizer. Pure.

1. A super user may do everything, whatever the ACLs say.
2. An ACL is about a resource if its pattern is: the same name, a beginning of the name, or *.
3. It fits a request by its principal (or User:*), its host (or *), and its operation (or All). ALLOW of Read, Write,
   Delete or Alter also allows Describe, and that of AlterConfigs allows DescribeConfigs; DENY denies what it names.
4. The first DENY that fits decides, else any ALLOW that fits.
5. Else the answer is no if any ACL at all is about the resource, of anybody; and `allow.everyone.if.no.acl.found` only
   if there is none.

Source: `StandardAuthorizerData` and `Authorizer.authorizeByResourceType` of Apache Kafka 4.3.
"""

import ipaddress
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

from moldau.cluster.state.acls import (
    ALL,
    EVERYONE,
    WILDCARD,
    AclEntry,
    AclPattern,
    AclPatternType,
    AclPermission,
    Entries,
)
from moldau.requests.access import Operation

Matching = Iterable[tuple[AclPattern, Entries]]
"""The patterns that are about a resource, the most specific first, and their entries: all, or those that are about who
asks. Each has some of somebody."""
ADDRESSES_MAX = 20_000

_DESCRIBING = frozenset(
    {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
)  # fmt: skip
_IMPLIED_BY = {
    Operation.DESCRIBE: _DESCRIBING,
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""Which operations, allowed, allow that one."""
SUPER_USER, NO_ACL_FITS, NO_ACL_FOUND = "SuperUser", "DefaultDeny", "NoAclFound"
"""Deciding rules that are no ACL."""


class RightDecision(NamedTuple):
    """Whether a right is granted, and the rule that decided: the ACL, or the name of another rule."""

    allowed: bool
    rule: str
    acl: tuple[AclPattern, AclEntry] | None = None


class Asking(NamedTuple):
    """Who asks for a right: its principal, and its address as `address` returns it."""

    principal: str
    host: str


def decided(matching: Matching, who: Asking, operation: int, allow_if_none: bool) -> RightDecision:
    """The decision about an operation on a resource, for anyone but a super user."""
    allowing: tuple[AclPattern, AclEntry] | None = None
    is_found = False
    for pattern, entries in matching:
        is_found = True
        for entry in entries:
            if entry.permission is AclPermission.DENY:
                if fits(entry, who, operation):
                    return RightDecision(False, "Acl", (pattern, entry))
            elif allowing is None and fits(entry, who, operation):
                allowing = pattern, entry
    if allowing is not None:
        return RightDecision(True, "Acl", allowing)
    if is_found or not allow_if_none:
        return RightDecision(False, NO_ACL_FITS)
    return RightDecision(True, NO_ACL_FOUND)


def fits(entry: AclEntry, who: Asking, operation: int) -> bool:
    """Whether an entry is about this operation of that client."""
    if not _is_about(entry, who):
        return False
    if entry.operation in (ALL, operation):
        return True
    implying = _IMPLIED_BY.get(operation)  # type: ignore[call-overload]
    return entry.permission is AclPermission.ALLOW and implying is not None and entry.operation in implying


def _is_about(entry: AclEntry, who: Asking) -> bool:
    return entry.principal in (who.principal, EVERYONE) and (entry.host == WILDCARD or address(entry.host) == who.host)


def allowed_somewhere(acls: Matching, who: Asking, operation: int) -> bool:
    """Whether an operation is allowed on any resource, existing or not, by all ACLs of its type. That it would be
    allowed on an arbitrary name is asked before."""
    denied: dict[AclPatternType, set[str]] = {kind: set() for kind in AclPatternType}
    allowed: dict[AclPatternType, set[str]] = {kind: set() for kind in AclPatternType}
    for pattern, entries in acls:
        for entry in entries:
            if entry.operation in (ALL, operation) and _is_about(entry, who):
                to = denied if entry.permission is AclPermission.DENY else allowed
                to[pattern.pattern_type].add(pattern.name)
    if WILDCARD in denied[AclPatternType.LITERAL]:
        return False
    if WILDCARD in allowed[AclPatternType.LITERAL]:
        return True
    prefixes = denied[AclPatternType.PREFIXED]
    literal = allowed[AclPatternType.LITERAL] - denied[AclPatternType.LITERAL]
    return any(not _has_beginning(name, prefixes) for name in (*literal, *allowed[AclPatternType.PREFIXED]))


def _has_beginning(name: str, prefixes: Collection[str]) -> bool:
    return any(name[:end] in prefixes for end in range(1, len(name) + 1))


@lru_cache(ADDRESSES_MAX)
def address(host: str) -> str:
    """An address in one form, so that texts of the same address are equal: `::1` and `0:0:0:0:0:0:0:1`, or an IPv4
    address and the same one in IPv6. Any other text stays as it is."""
    if host == WILDCARD or not host or host[-1] == ".":
        return host
    try:
        one = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = one.ipv4_mapped if isinstance(one, ipaddress.IPv6Address) else None
    return str(mapped or one)
