"""`moldau client-metrics`: list, describe, alter and delete subscriptions to metrics that clients push (KIP-714);
`read` is in `reading`."""

import uuid
from typing import Annotated

from moldau.cli.command_line import Argument, Group, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, Json, reachable
from moldau.cli.output import print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.client.administration.configs import ConfigEntry, Resource
from moldau.errors import ErrorCode, KafkaError
from moldau.names import counted, short_id

app = Group("client-metrics", {"read": "moldau.cli.client_metrics.reading:read"})

Named = Annotated[str, Argument("NAME", help="The name of the subscription.")]
BACK_TO_DEFAULT = "default"
"""As the value of --interval: Kafka's tool has it too."""


@app.command("list")
def list_subscriptions(bootstrap_server: BootstrapServer = BOOTSTRAP, as_json: Json = False) -> None:
    """
    List the subscriptions: for each its metrics, interval and clients.

    Examples:

      moldau client-metrics list
    """
    with Admin(reachable(bootstrap_server)) as admin:
        names = admin.configs.list_resources(Resource.CLIENT_METRICS)
        found = {name: admin.configs.describe(Resource.CLIENT_METRICS, name) for name in names}
    if as_json:
        print_json([_json(name, entries) for name, entries in found.items()])
    else:
        columns = ("interval.ms", "metrics", "match")
        rows = [(name, {one.name: one.value for one in entries}) for name, entries in found.items()]
        print_table(
            ["NAME", *map(str.upper, columns)], [[name, *(values[one] for one in columns)] for name, values in rows]
        )


@app.command()
def describe(name: Named, bootstrap_server: BootstrapServer = BOOTSTRAP, as_json: Json = False) -> None:
    """
    Describe one subscription: its settings, and which of them are defaults.

    Examples:

      moldau client-metrics describe basics
    """
    with Admin(reachable(bootstrap_server)) as admin:
        _check_exists(admin, name)
        entries = admin.configs.describe(Resource.CLIENT_METRICS, name)
    if as_json:
        print_json(_json(name, entries))
    else:
        print_table(["NAME", "VALUE", "SOURCE"], [[one.name, one.value, one.source] for one in entries])


@app.command()
def alter(
    name: Annotated[str, Argument("[NAME]", help="The name of the subscription.")] = "",
    generate_name: Annotated[bool, Option("--generate-name", help="Make a name that no subscription has.")] = False,
    metrics: Annotated[
        str | None,
        Option(
            "--metrics",
            metavar="PREFIXES",
            help='Prefixes of names of metrics, separated by commas; "*" for all, "" for none.',
        ),
    ] = None,
    interval: Annotated[
        str | None,
        Option("--interval", metavar="MS", help="Milliseconds between two pushes, 100 to 3600000, or default."),
    ] = None,
    match: Annotated[
        list[str] | None,
        Option(
            "--match",
            metavar="ATTRIBUTE=EXPRESSION",
            help="Clients that it is for: an RE2 expression for one attribute, or several after commas; repeatable. "
            '"" for all clients.',
        ),
    ] = None,
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """
    Make a subscription, or change its settings; those that are not named stay as they are. Clients push these metrics
    to brokers that have client.metrics.topic set, and the brokers write them to that topic.

    Examples:

      moldau client-metrics alter basics --metrics org.apache.kafka.producer. --interval 60000

      moldau client-metrics alter rdkafka --metrics '*' --match 'client_software_name=.*librdkafka.*'
    """
    if bool(name) == generate_name:
        raise UsageError("give a name or --generate-name")
    changes: dict[str, object] = {} if metrics is None else {"metrics": metrics}
    if interval is not None:
        changes["interval.ms"] = None if interval == BACK_TO_DEFAULT else interval
    if match is not None:
        changes["match"] = ",".join(one for one in match if one)
    if not changes:
        raise UsageError("give --metrics, --interval or --match")
    name = name or short_id(uuid.uuid4())
    with Admin(reachable(bootstrap_server)) as admin:
        admin.configs.alter(Resource.CLIENT_METRICS, name, changes)
    if as_json:
        print_json({"name": name, "changed": changes})
    else:
        print(f"changed {counted(len(changes), 'setting')} of client metrics {name}")


@app.command()
def delete(name: Named, bootstrap_server: BootstrapServer = BOOTSTRAP, as_json: Json = False) -> None:
    """
    Delete a subscription. Its clients stop pushing within one push interval.

    Examples:

      moldau client-metrics delete basics
    """
    with Admin(reachable(bootstrap_server)) as admin:
        _check_exists(admin, name)
        own = [one.name for one in admin.configs.describe(Resource.CLIENT_METRICS, name) if not one.is_default]
        admin.configs.alter(Resource.CLIENT_METRICS, name, dict.fromkeys(own))
    if as_json:
        print_json({"deleted": name})
    else:
        print(f"deleted client metrics {name}")


def _check_exists(admin: Admin, name: str) -> None:
    """A broker describes a subscription that does not exist with defaults, as Kafka does."""
    if name not in admin.configs.list_resources(Resource.CLIENT_METRICS):
        sentence = f"there are no client metrics {name}: `moldau client-metrics list` shows those that exist"
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, sentence)


def _json(name: str, entries: list[ConfigEntry]) -> dict[str, object]:
    values = {one.name: one.value or "" for one in entries}
    return {
        "name": name,
        "interval_ms": int(values["interval.ms"]),
        "metrics": [one for one in values["metrics"].split(",") if one],
        "match": [one for one in values["match"].split(",") if one],
    }
