"""`moldau cluster api-versions` and `features`: what each broker supports."""

from typing import Annotated

from moldau.cli.command_line import Option
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.client.administration.cluster import VersionRange
from moldau.protocol.apis import APIS

Broker = Annotated[int | None, Option("--broker-id", min=0, help="Only this broker; all by default.")]


def api_versions(
    bootstrap_server: BootstrapServer = BOOTSTRAP, broker_id: Broker = None, as_json: Json = False
) -> None:
    """
    Print the versions of each API that the brokers support, and the one that Moldau's client uses.

    Examples:

      moldau cluster api-versions

      moldau cluster api-versions --broker-id 2 --json
    """
    with Admin(reachable(bootstrap_server)) as admin:
        brokers = sorted(admin.describe_cluster().brokers) if broker_id is None else [broker_id]
        told = {broker: admin.api_versions(broker) for broker in brokers}
    keys = {api.name: key for key, api in APIS.items()}
    rows = [
        {
            "broker": broker,
            "api": name,
            "key": keys.get(name, int(name) if name.isdecimal() else None),
            "min_version": versions.low,
            "max_version": versions.high,
            "usable": _usable(keys.get(name), versions),
        }
        for broker, apis in told.items()
        for name, versions in apis.items()
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(["BROKER", "API", "KEY", "MIN", "MAX", "USABLE"], [[*row.values()] for row in rows])


def _usable(key: int | None, versions: VersionRange) -> int | None:
    """The highest version that both sides know; None if there is none."""
    if key is None:
        return None
    highest = min(APIS[key].high, versions.high)
    return highest if highest >= max(APIS[key].lowest, versions.low) else None


def features(bootstrap_server: BootstrapServer = BOOTSTRAP, broker_id: Broker = None, as_json: Json = False) -> None:
    """
    Print the features that a broker supports, and their versions in force in the cluster.

    Examples:

      moldau cluster features
    """
    with Admin(reachable(bootstrap_server)) as admin:
        told = admin.describe_features(broker_id)
    rows = [
        {
            "feature": name,
            "min_version": supported.low,
            "max_version": supported.high,
            "finalized": told.finalized[name].high if name in told.finalized else None,
        }
        for name, supported in sorted(told.supported.items())
    ]
    if as_json:
        print_json({"epoch": told.epoch, "features": rows})
    else:
        print_table(["FEATURE", "MIN", "MAX", "FINALIZED"], [[*row.values()] for row in rows])
