"""`moldau quotas`: set, remove and list the quotas of users, client ids and IP addresses."""

from typing import Annotated, NamedTuple

from moldau.cli.command_line import Argument, Group, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, pairs, reachable
from moldau.cli.output import print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.client.administration.quotas import QuotaEntity
from moldau.names import counted

app = Group("quotas")


class NamedOwner(NamedTuple):
    """The options that say whose quotas."""

    user: Annotated[str | None, Option(metavar="NAME", help="A user.")] = None
    user_defaults: Annotated[bool, Option(help="Every user without a quota of its own.")] = False
    client_id: Annotated[str | None, Option(metavar="ID", help="A client id.")] = None
    client_defaults: Annotated[bool, Option(help="Every client id without a quota of its own.")] = False
    ip: Annotated[str | None, Option(metavar="ADDRESS", help="An IP address.")] = None
    ip_defaults: Annotated[bool, Option(help="Every IP address without a quota of its own.")] = False

    def parts(self) -> QuotaEntity:
        """The kinds and names that are given; None for the default of a kind."""
        kinds = (
            ("user", self.user, self.user_defaults),
            ("client-id", self.client_id, self.client_defaults),
            ("ip", self.ip, self.ip_defaults),
        )
        for kind, name, is_default in kinds:
            if name is not None and is_default:
                raise UsageError(f"--{kind} and --{kind.removesuffix('-id')}-defaults are both given")
        return tuple((kind, name) for kind, name, is_default in kinds if name is not None or is_default)


OF_ALL = NamedOwner()
Values = Annotated[
    list[str], Argument("QUOTA=VALUE...", help="Quotas and their values, such as producer_byte_rate=1000000.")
]
Names = Annotated[list[str] | None, Argument("[QUOTA...]", help="The quotas to remove; all of them if none is named.")]


@app.command("set")
def set_quotas(
    quotas: Values,
    owner: NamedOwner = OF_ALL,
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
    entity = _entity(owner)
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
    owner: NamedOwner = OF_ALL,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    Remove quotas of a user, a client id, both together, or an IP address.

    Examples:

      moldau quotas remove producer_byte_rate --user ann

      moldau quotas remove --user ann --client-id reports
    """
    entity = _entity(owner)
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
    owner: NamedOwner = OF_ALL,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    List all quotas, or those of a user, client id or IP address. <default> stands for all without one of their own.

    Examples:

      moldau quotas list

      moldau quotas list --user ann --json
    """
    match = dict(owner.parts())
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


def _entity(owner: NamedOwner) -> QuotaEntity:
    parts = owner.parts()
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
