"""`moldau quotas`: set, remove and list the quotas of users, client ids and IP addresses."""

from typing import Annotated

from moldau.cli.command_line import Argument, Group, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, pairs, reachable
from moldau.cli.output import print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.client.administration.quotas import QuotaEntity
from moldau.names import counted

app = Group("quotas")

User = Annotated[str | None, Option("--user", metavar="NAME", help="A user.")]
UserDefaults = Annotated[bool, Option("--user-defaults", help="Every user without a quota of its own.")]
Client = Annotated[str | None, Option("--client-id", metavar="ID", help="A client id.")]
ClientDefaults = Annotated[bool, Option("--client-defaults", help="Every client id without a quota of its own.")]
Address = Annotated[str | None, Option("--ip", metavar="ADDRESS", help="An IP address.")]
AddressDefaults = Annotated[bool, Option("--ip-defaults", help="Every IP address without a quota of its own.")]
Values = Annotated[
    list[str], Argument("QUOTA=VALUE...", help="Quotas and their values, such as producer_byte_rate=1000000.")
]
Names = Annotated[list[str] | None, Argument("[QUOTA...]", help="The quotas to remove; all of them if none is named.")]


@app.command("set")
def set_quotas(
    quotas: Values,
    user: User = None,
    user_defaults: UserDefaults = False,
    client_id: Client = None,
    client_defaults: ClientDefaults = False,
    ip: Address = None,
    ip_defaults: AddressDefaults = False,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    Set quotas of a user, a client id, both together, or an IP address: producer_byte_rate and consumer_byte_rate in
    bytes a second, request_percentage, controller_mutation_rate in partitions a second; of addresses
    connection_creation_rate. Each broker applies them to its own traffic, at once.

    Examples:

      moldau quotas set producer_byte_rate=10000000 consumer_byte_rate=20000000 --user ann

      moldau quotas set request_percentage=50 --user-defaults --client-id reports

      moldau quotas set connection_creation_rate=100 --ip-defaults
    """
    entity = _entity((user, user_defaults), (client_id, client_defaults), (ip, ip_defaults))
    wanted: dict[str, float | None] = {name: _number(name, text) for name, text in pairs(quotas, "QUOTA=VALUE").items()}
    with Admin(reachable(bootstrap_server)) as admin:
        _alter(admin, entity, wanted)
    if as_json:
        print_json({**_json(entity), "quotas": wanted})
    else:
        print(f"set {counted(len(wanted), 'quota')} of {_shown(entity)}")


@app.command("remove")
def remove(
    quotas: Names = None,
    user: User = None,
    user_defaults: UserDefaults = False,
    client_id: Client = None,
    client_defaults: ClientDefaults = False,
    ip: Address = None,
    ip_defaults: AddressDefaults = False,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    Remove quotas of a user, a client id, both together, or an IP address.

    Examples:

      moldau quotas remove producer_byte_rate --user ann

      moldau quotas remove --user ann --client-id reports
    """
    entity = _entity((user, user_defaults), (client_id, client_defaults), (ip, ip_defaults))
    with Admin(reachable(bootstrap_server)) as admin:
        described = admin.describe_client_quotas(dict(entity), strict=True).items()
        here = next((values for found, values in described if dict(found) == dict(entity)), {})
        gone = list(quotas or sorted(here))
        missing = [name for name in gone if name not in here]
        if missing or not gone:
            raise UsageError(f"{_shown(entity)} has no quota{' ' + ', '.join(missing) if missing else ''}")
        _alter(admin, entity, dict.fromkeys(gone))
    if as_json:
        print_json({**_json(entity), "removed": gone})
    else:
        print(f"removed {counted(len(gone), 'quota')} of {_shown(entity)}")


@app.command("list")
def list_quotas(
    user: User = None,
    user_defaults: UserDefaults = False,
    client_id: Client = None,
    client_defaults: ClientDefaults = False,
    ip: Address = None,
    ip_defaults: AddressDefaults = False,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    List all quotas, or those of a user, client id or IP address. <default> stands for all without one of their own.

    Examples:

      moldau quotas list

      moldau quotas list --user ann --json
    """
    match = dict(_parts((user, user_defaults), (client_id, client_defaults), (ip, ip_defaults)))
    with Admin(reachable(bootstrap_server)) as admin:
        found = admin.describe_client_quotas(match)
    rows = sorted(
        ((dict(entity), values) for entity, values in found.items()),
        key=lambda row: [(kind in row[0], row[0].get(kind) or "") for kind in ("ip", "user", "client-id")],
    )
    if as_json:
        print_json([{**_json(tuple(entity.items())), "quotas": values} for entity, values in rows])
        return
    print_table(
        ["USER", "CLIENT ID", "IP", "QUOTA", "VALUE"],
        [
            [*(_name(entity, kind) for kind in ("user", "client-id", "ip")), key, f"{value:.15g}"]
            for entity, values in rows
            for key, value in sorted(values.items())
        ],
    )


def _parts(*given: tuple[str | None, bool]) -> QuotaEntity:
    """The parts of an entity: user, client id and address, each as its name and whether its default is meant."""
    parts: list[tuple[str, str | None]] = []
    for kind, option, (name, is_default) in zip(
        ("user", "client-id", "ip"), ("user", "client", "ip"), given, strict=True
    ):
        if name is not None and is_default:
            raise UsageError(f"--{kind} and --{option}-defaults are both given")
        if name is not None or is_default:
            parts.append((kind, name))
    return tuple(parts)


def _entity(*given: tuple[str | None, bool]) -> QuotaEntity:
    parts = _parts(*given)
    if not parts:
        raise UsageError("give a user, a client id or an IP address, or one of their defaults")
    return parts


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"the value of {name} must be a number, not {text!r}") from None


def _alter(admin: Admin, entity: QuotaEntity, wanted: dict[str, float | None]) -> None:
    error = admin.alter_client_quotas({entity: wanted})[entity]
    if error is not None:
        raise error


def _json(entity: QuotaEntity) -> dict[str, str]:
    """A null in JSON would be easily taken for a missing name."""
    return {kind.replace("-", "_"): "<default>" if name is None else name for kind, name in entity}


def _name(entity: dict[str, str | None], kind: str) -> str | None:
    return None if kind not in entity else "<default>" if entity[kind] is None else entity[kind]


def _shown(entity: QuotaEntity) -> str:
    texts = {"user": "user", "client-id": "client id", "ip": "IP address"}
    return ", ".join(f"{texts[kind]} {'<default>' if name is None else name}" for kind, name in entity)
