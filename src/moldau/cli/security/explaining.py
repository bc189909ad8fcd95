"""Which rule decides about a right: the broker's ACLs and settings, judged here by the rules that the broker has."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from moldau.cli.security.acl_words import as_json_object, operation_word, resource_words, sentence
from moldau.client.administration.acls import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, Acl, AclFilter
from moldau.client.administration.admin import Admin
from moldau.client.administration.configs import Resource
from moldau.cluster.state.acls import AclEntry, AclPattern, AclPatternType, AclPermission
from moldau.cluster.state.image import Image
from moldau.errors import ConfigError
from moldau.requests.access import Operation, ResourceType, Right
from moldau.security.authorizer import AclAuthorizer
from moldau.security.rules import NO_ACL_FITS, NO_ACL_FOUND, SUPER_USER, RightDecision

_WORDS = {
    SUPER_USER: "{} is one of super.users",
    NO_ACL_FITS: "no ACL allows it",
    NO_ACL_FOUND: "no ACL is about it, and allow.everyone.if.no.acl.found is true",
}


class Explained(NamedTuple):
    """Whether a right is granted, and the ACL that decided, if one did."""

    principal: str
    host: str
    operation: str
    resource: tuple[str, str]
    decision: RightDecision
    acl: Acl | None

    def sentence(self) -> str:
        verdict = "allowed" if self.decision.allowed else "denied"
        asked = f"{self.principal} from {self.host}: {self.operation} on {resource_words(*self.resource)}"
        why = _WORDS[self.decision.rule].format(self.principal) if self.acl is None else sentence(self.acl)
        return f"{verdict}: {asked}, since {why}"

    def as_json_object(self) -> dict[str, Any]:
        kind, name = self.resource
        return {
            "allowed": self.decision.allowed,
            "principal": self.principal,
            "host": self.host,
            "operation": self.operation,
            "resource_type": kind,
            "name": name,
            "rule": self.decision.rule,
            "acl": None if self.acl is None else as_json_object(self.acl),
        }


def explained(
    admin: Admin, principal: str, host: str, operations: Sequence[str], resources: Iterable[tuple[str, str]]
) -> list[Explained]:
    """What the brokers decide about each operation on each resource. Raises `KafkaError`: also of somebody who may not
    describe ACLs, or settings of brokers."""
    known = {}
    for kind, name in resources:
        which = AclFilter(kind, name, pattern="match")  # type: ignore[arg-type]
        known.update({_entry(one): one for one in admin.describe_acls(which)})
    by = _authorizer(admin, known)
    answers = []
    for kind, name in resources:
        for text in operations:
            operation = operation_word(text)
            if operation not in _ASKED:
                raise ConfigError("explain takes single operations, such as Read: All is a right on each of them")
            right = Right(ResourceType(RESOURCE_TYPES[kind]), _ASKED[operation])
            decision = by.decision(principal, host, right, name)
            acl = None if decision.acl is None else known[decision.acl]
            answers.append(Explained(principal, host, text, (kind, name), decision, acl))
    return answers


_ASKED = {name: Operation(number) for name, number in OPERATIONS.items() if number in list(Operation)}


def _authorizer(admin: Admin, known: dict[tuple[AclPattern, AclEntry], Acl]) -> AclAuthorizer:
    """One that decides as the brokers do."""
    broker_id = next(iter(admin.describe_cluster().brokers))
    settings = {one.name: one.value or "" for one in admin.configs.describe(Resource.BROKER, str(broker_id))}
    acls: dict[AclPattern, tuple[AclEntry, ...]] = {}
    for pattern, entry in known:
        acls[pattern] = (*acls.get(pattern, ()), entry)
    super_users = [name for one in settings.get("super.users", "").split(";") if (name := one.strip())]
    allows_all = settings.get("allow.everyone.if.no.acl.found") == "true"
    return AclAuthorizer(Image("", acls=acls), super_users, allows_all)


def _entry(one: Acl) -> tuple[AclPattern, AclEntry]:
    pattern = AclPattern(RESOURCE_TYPES[one.resource_type], one.resource, AclPatternType(PATTERN_TYPES[one.pattern]))
    permission = AclPermission(PERMISSIONS[one.permission])
    return pattern, AclEntry(one.principal, one.host, OPERATIONS[one.operation], permission)
