"""`moldau acls`: add, remove, list and explain access rights (ACLs)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from moldau.cli.command_line import Group, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import print_json, print_table
from moldau.cli.security.acl_words import (
    CONSUMER,
    OF_NONE,
    PRODUCER,
    NamedResources,
    Resources,
    as_json_object,
    operation_name,
    operation_on,
    sentence,
    wanted_acls,
)
from moldau.client.administration.acls import Acl, AclFilter, PatternType
from moldau.client.administration.admin import Admin
from moldau.errors import KafkaError
from moldau.names import counted

app = Group("acls")

Pattern = Annotated[
    str,
    Option(
        "--resource-pattern-type",
        metavar="literal|prefixed",
        help="prefixed: the names are prefixes.",
    ),
]
FilteredPattern = Annotated[
    str,
    Option(
        "--resource-pattern-type",
        metavar="literal|prefixed|match|any",
        help="match: all ACLs that concern the resource, by its name, a prefix, or *.",
    ),
]
RemovedPattern = Annotated[
    str | None,
    Option(
        "--resource-pattern-type",
        metavar="literal|prefixed|match|any",
        help="As in `list`. By default literal if a resource is named, otherwise any.",
    ),
]
Operations = Annotated[
    list[str] | None,
    Option("--operation", metavar="NAME", help="Such as Read, Write, Describe, All; repeatable."),
]
Allowed = Annotated[
    list[str] | None,
    Option(
        "--principal",
        "--allow-principal",
        metavar="User:NAME",
        help="A principal that is allowed; User:* is everybody. Repeatable.",
    ),
]
Denied = Annotated[
    list[str] | None, Option("--deny-principal", metavar="User:NAME", help="A principal that is denied; repeatable.")
]
AllowHosts = Annotated[
    list[str] | None,
    Option("--host", "--allow-host", metavar="ADDRESS", help="The address that it may come from; any by default."),
]
DenyHosts = Annotated[
    list[str] | None, Option("--deny-host", metavar="ADDRESS", help="The address that is denied; any by default.")
]
Principal = Annotated[str | None, Option("--principal", metavar="User:NAME", help="Only the ACLs of this principal.")]


@app.command()
def add(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    allow: Allowed = None,
    deny: Denied = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Operations = None,
    named: NamedResources = OF_NONE,
    pattern: Pattern = "literal",
    producer: Annotated[bool, Option("--producer", help="The rights of a producer on the topics and ids.")] = False,
    consumer: Annotated[bool, Option("--consumer", help="The rights of a consumer on the topics and groups.")] = False,
    idempotent: Annotated[bool, Option("--idempotent", help="With --producer: what brokers before 2.8 ask.")] = False,
    as_json: Json = False,
) -> None:
    """
    Add access rights (ACLs): allow or deny a principal operations on resources. A DENY wins over every ALLOW. Without
    --operation the right is All.

    Examples:

      moldau acls add --principal User:ann --operation Read --topic orders --group billing

      moldau acls add --principal User:ann --producer --topic orders- --resource-pattern-type prefixed

      moldau acls add --deny-principal User:bob --deny-host 10.0.0.7 --operation All --topic '*'
    """
    resources = Resources.of(named)
    roles = {"producer": producer, "consumer": consumer, "idempotent": idempotent}
    needed = _needed(resources, operation, roles)
    if not allow and not deny:
        raise UsageError("give --principal User:NAME, or --deny-principal User:NAME")
    if allow_host and not allow:
        raise UsageError("--host goes with --principal; the addresses that are denied are given with --deny-host")
    if deny_host and not deny:
        raise UsageError("--deny-host goes with --deny-principal")
    wanted = [
        *wanted_acls(needed, pattern, allow or (), allow_host or ("*",), "allow"),
        *wanted_acls(needed, pattern, deny or (), deny_host or ("*",), "deny"),
    ]
    with Admin(reachable(bootstrap_server)) as admin:
        _all_done(admin.create_acls(wanted))
    if as_json:
        print_json([as_json_object(one) for one in wanted])
    else:
        for one in wanted:
            print(f"added: {sentence(one)}")


@app.command()
def remove(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    principal: Principal = None,
    permission: Annotated[str, Option("--permission", metavar="allow|deny", help="Only these.")] = "any",
    host: Annotated[str | None, Option("--host", metavar="ADDRESS", help="Only the ACLs of this host.")] = None,
    operation: Operations = None,
    named: NamedResources = OF_NONE,
    pattern: RemovedPattern = None,
    as_json: Json = False,
) -> None:
    """
    Remove the access rights that match the options. Without a resource, those of a principal on all resources.

    Examples:

      moldau acls remove --principal User:ann --operation Read --topic orders

      moldau acls remove --principal User:ann

      moldau acls remove --topic orders --resource-pattern-type match
    """
    resources = Resources.of(named)
    if principal is None and not resources:
        raise UsageError("give a resource, such as --topic NAME, or --principal User:NAME: all others stay")
    pattern = pattern or ("literal" if resources else "any")
    filters = _filters(resources, principal, pattern, operation, permission, host)
    with Admin(reachable(bootstrap_server)) as admin:
        results = admin.delete_acls(filters).values()
    gone: dict[Acl, None] = {}
    for result in results:
        if isinstance(result, KafkaError):
            raise result
        gone |= dict.fromkeys(result)
    removed = list(gone)
    if as_json:
        print_json([as_json_object(one) for one in removed])
    else:
        for one in removed:
            print(f"removed: {sentence(one)}")
        print(f"removed {counted(len(removed), 'ACL')}")


@app.command("list")
def list_acls(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    principal: Principal = None,
    operation: Operations = None,
    named: NamedResources = OF_NONE,
    pattern: FilteredPattern = "any",
    as_json: Json = False,
) -> None:
    """
    List access rights: all, or those that match the options.

    Examples:

      moldau acls list --json

      moldau acls list --topic orders --resource-pattern-type match
    """
    resources = Resources.of(named)
    with Admin(reachable(bootstrap_server)) as admin:
        filters = _filters(resources, principal, pattern, operation)
        found = list(dict.fromkeys(one for which in filters for one in admin.describe_acls(which)))
    if as_json:
        print_json([as_json_object(one) for one in found])
    else:
        rows = [
            [one.resource_type, one.resource, one.pattern, one.permission, one.principal, one.host, operation_name(one)]
            for one in found
        ]
        print_table(["RESOURCE", "NAME", "PATTERN", "PERMISSION", "PRINCIPAL", "HOST", "OPERATION"], rows)


@app.command()
def explain(
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    principal: Annotated[str, Option("--principal", metavar="User:NAME", help="The principal.")] = "",
    host: Annotated[str, Option("--host", metavar="ADDRESS", help="The address of the client.")] = "127.0.0.1",
    operation: Operations = None,
    named: NamedResources = OF_NONE,
    as_json: Json = False,
) -> int:
    """
    Show whether a principal may perform an operation, and which rule decides: an ACL, super.users, no matching ACL, or
    allow.everyone.if.no.acl.found. The exit code is 0 if it is allowed, and 1 if it is not.

    Examples:

      moldau acls explain --principal User:ann --operation Read --topic orders --host 10.0.0.7
    """
    from moldau.cli.security.explaining import explained

    resources = Resources.of(named)
    if not principal or not resources or not operation:
        raise UsageError("give --principal User:NAME, --operation NAME, and a resource such as --topic NAME")
    with Admin(reachable(bootstrap_server)) as admin:
        answers = explained(admin, principal, host, operation, resources)
    if as_json:
        print_json([one.as_json_object() for one in answers])
    else:
        for one in answers:
            print(one.sentence())
    return 0 if all(one.decision.allowed for one in answers) else 1


def _needed(
    resources: Resources, operations: Sequence[str] | None, roles: dict[str, bool]
) -> list[tuple[str, str, str]]:
    """The type, name and operation of each right that is to be added."""
    if not roles["producer"] and not roles["consumer"]:
        if roles["idempotent"]:
            raise UsageError("--idempotent goes with --producer")
        if not resources:
            raise UsageError("give a resource: --topic, --group, --transactional-id, --cluster, --user-principal")
        return [(kind, name, operation_on(kind, one)) for kind, name in resources for one in operations or ("all",)]
    if operations:
        raise UsageError("--producer and --consumer stand for operations: leave --operation out")
    if not resources.names("topic"):
        raise UsageError("--producer and --consumer need a --topic")
    if roles["consumer"] and not resources.names("group"):
        raise UsageError("--consumer needs a --group")
    tables = [table for table, asked in ((PRODUCER, roles["producer"]), (CONSUMER, roles["consumer"])) if asked]
    _check_roles_use(resources, tables)
    needed = [
        (kind, name, one)
        for table in tables
        for kind, ofkind in table.items()
        for name in resources.names(kind)
        for one in ofkind
    ]
    if roles["idempotent"]:
        needed.append(("cluster", "kafka-cluster", "idempotent_write"))
    return list(dict.fromkeys(needed))


def _check_roles_use(resources: Resources, tables: Sequence[Mapping[str, Sequence[str]]]) -> None:
    """Raises `UsageError` if a resource is named of whose type the roles need no right."""
    for kind, _ in resources:
        if not any(kind in table for table in tables):
            option = "user-principal" if kind == "user" else kind.replace("_", "-")
            raise UsageError(f"--{option} gets no right by --producer or --consumer: add its ACL with --operation")


def _filters(
    resources: Resources,
    principal: str | None,
    pattern: str,
    operations: Sequence[str] | None,
    permission: str = "any",
    host: str | None = None,
) -> list[AclFilter]:
    named: Iterable[tuple[Any, str | None]] = resources or [("any", None)]
    return [
        AclFilter(kind, name, principal, operation_name(one), _permission(permission), host, _pattern(pattern))
        for kind, name in named
        for one in operations or ("any",)
    ]


def _pattern(text: str) -> PatternType:
    if text not in ("any", "match", "literal", "prefixed"):
        raise UsageError(f"--resource-pattern-type is literal, prefixed, match or any, not {text!r}")
    return text  # type: ignore[return-value]


def _permission(text: str) -> Any:
    if text not in ("any", "allow", "deny"):
        raise UsageError(f"--permission is allow or deny, not {text!r}")
    return text


def _all_done(outcomes: dict[Acl, KafkaError | None]) -> None:
    """Raises the first error."""
    for error in outcomes.values():
        if error is not None:
            raise error
