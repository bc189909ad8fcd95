"""Access control lists: their types, and their nodes in the store, as Kafka 2.8 keeps them there. Pure.

    /kafka-acl/Topic/NAME                        of the resource of that name, or of all by the name *
    /kafka-acl-extended/prefixed/Topic/PREFIX    of the resources whose names begin so
    /kafka-acl-changes, /kafka-acl-extended-changes    a child for each change of a tool: acl_changes_0000000000

A node has {"version": 1, "acls": [{"principal": "User:ann", "permissionType": "Allow", "operation": "Read",
"host": "*"}]}. Characters that ZooKeeper does not allow in names are quoted as %2F, and so is %.

A node that cannot be read counts as one entry that denies everything: a DENY may be in it. Source: `ZkData.scala` of
Kafka 2.8.
"""

import logging
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from moldau.cluster.state.documents import MalformedMetadata, as_text, document, expecting
from moldau.metadata_store.store import Node, Reading, children_of, nodes_at

LITERAL_ROOT = "/kafka-acl"
EXTENDED_ROOT = "/kafka-acl-extended"
PREFIXED_ROOT = f"{EXTENDED_ROOT}/prefixed"
CHANGES = ("/kafka-acl-changes", "/kafka-acl-extended-changes")
WILDCARD = "*"
EVERYONE = "User:*"
VERSION = 1

logger = logging.getLogger(__name__)


class AclPatternType(IntEnum):
    """How the name in an ACL selects resources, with Kafka's numbers."""

    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    """With Kafka's numbers."""

    DENY = 2
    ALLOW = 3


RESOURCE_TYPES = {2: "Topic", 3: "Group", 4: "Cluster", 5: "TransactionalId", 6: "DelegationToken", 7: "User"}
"""Their names in the store, by Kafka's numbers; so for the operations."""
OPERATIONS = {
    2: "All", 3: "Read", 4: "Write", 5: "Create", 6: "Delete", 7: "Alter", 8: "Describe", 9: "ClusterAction",
    10: "DescribeConfigs", 11: "AlterConfigs", 12: "IdempotentWrite", 13: "CreateTokens", 14: "DescribeTokens",
    15: "TwoPhaseCommit",
}  # fmt: skip
ALL = 2
"""Every operation on the resource."""
_PERMISSIONS = {AclPermission.DENY: "Deny", AclPermission.ALLOW: "Allow"}
_NUMBER_OF_TYPE = {name: number for number, name in RESOURCE_TYPES.items()}
_NUMBER_OF_OPERATION, _NUMBER_OF_PERMISSION = (
    {name.lower(): number for number, name in names.items()} for names in (OPERATIONS, _PERMISSIONS)
)
PARENTS = tuple(f"{root}/{name}" for root in (LITERAL_ROOT, PREFIXED_ROOT) for name in RESOURCE_TYPES.values())
"""The nodes whose children are named by resources."""
_QUOTED = re.compile("[%/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")


class AclPattern(NamedTuple):
    """The resources of a type (Kafka's number) that ACLs are about: of one name, of a beginning of names, or all."""

    resource_type: int
    name: str
    pattern_type: AclPatternType = AclPatternType.LITERAL


class AclEntry(NamedTuple):
    """What a principal may, or may not, do from a host; `operation` is Kafka's number."""

    principal: str
    host: str
    operation: int
    permission: AclPermission


Entries = tuple[AclEntry, ...]
Acls = Mapping[AclPattern, Entries]
DENY_ALL: Entries = (AclEntry(EVERYONE, WILDCARD, ALL, AclPermission.DENY),)


def path_of(pattern: AclPattern) -> str:
    return f"{parents_of(pattern)[-1]}/{_quoted(pattern.name)}"


def parents_of(pattern: AclPattern) -> list[str]:
    """The nodes above that of the pattern, from the highest on."""
    above = [LITERAL_ROOT] if pattern.pattern_type is AclPatternType.LITERAL else [EXTENDED_ROOT, PREFIXED_ROOT]
    return [*above, f"{above[-1]}/{RESOURCE_TYPES[pattern.resource_type]}"]


def pattern_of(path: str) -> AclPattern | None:
    """The reverse of `path_of`; None for any other path. A name that is not quoted as ours are is taken as it is: a
    tool has written it."""
    match path.split("/")[1:]:
        case ["kafka-acl", kind, name]:
            pattern_type = AclPatternType.LITERAL
        case ["kafka-acl-extended", "prefixed", kind, name]:
            pattern_type = AclPatternType.PREFIXED
        case _:
            return None
    number, unquoted = _NUMBER_OF_TYPE.get(kind), urllib.parse.unquote(name)
    if number is None:
        return None
    return AclPattern(number, unquoted if _quoted(unquoted) == name else name, pattern_type)


def _quoted(name: str) -> str:
    quoted = _QUOTED.sub(lambda found: urllib.parse.quote(found[0], safe=""), name)
    return quoted if name.strip(".") else quoted.replace(".", "%2E")


def written(entries: Iterable[AclEntry]) -> dict[str, object]:
    """The document of these entries."""
    return {
        "version": VERSION,
        "acls": [
            {
                "principal": one.principal,
                "permissionType": _PERMISSIONS[one.permission],
                "operation": OPERATIONS[one.operation],
                "host": one.host,
            }
            for one in entries
        ],
    }


def entries_of(node: Node, path: str) -> Entries:
    """The entries of a node, each once, in order; `DENY_ALL` for one that cannot be read."""
    try:
        if not node.data:
            return ()
        with expecting("access rights", path):
            return tuple(sorted({_entry(one) for one in document(node, path)["acls"]}))
    except MalformedMetadata as malformed:
        logger.error("the resource is denied to everyone but super users: %s", malformed)
        return DENY_ALL


def _entry(one: Mapping[str, object]) -> AclEntry:
    operation = _NUMBER_OF_OPERATION[as_text(one["operation"]).lower()]
    permission = _NUMBER_OF_PERMISSION[as_text(one["permissionType"]).lower()]
    return AclEntry(as_text(one["principal"]), as_text(one["host"]), operation, AclPermission(permission))


def read_acls() -> Reading[dict[AclPattern, Entries]]:
    """All ACLs in the store."""
    paths = []
    for root in (LITERAL_ROOT, PREFIXED_ROOT):
        for kind in (yield from children_of(root)):
            paths += [f"{root}/{kind}/{name}" for name in (yield from children_of(f"{root}/{kind}"))]
    acls: dict[AclPattern, Entries] = {}
    for path, node in zip(paths, (yield from nodes_at(paths)), strict=True):
        pattern = pattern_of(path)
        if node is not None and pattern is not None and (entries := entries_of(node, path)):
            acls[pattern] = tuple(sorted({*acls.get(pattern, ()), *entries}))
    return dict(sorted(acls.items()))


def read_changes() -> Reading[list[str]]:
    """The nodes by which tools say that they have changed ACLs."""
    paths = []
    for root in CHANGES:
        paths += [f"{root}/{name}" for name in (yield from children_of(root))]
    return paths
