"""`moldau configs`: describe and alter the settings of topics, brokers, loggers of brokers, and groups."""

import enum
from typing import Annotated

from moldau.cli.command_line import Argument, Group, Option, UsageError
from moldau.cli.options import BOOTSTRAP, BootstrapServer, ChangedConfig, DeletedConfig, Json, changes, reachable
from moldau.cli.output import print_json, print_table
from moldau.client.administration.admin import Admin
from moldau.client.administration.configs import DEFAULT, Resource
from moldau.names import counted

app = Group("configs")


class EntityType(enum.StrEnum):
    """Kinds of resources that have settings."""

    TOPIC = "topic"
    BROKER = "broker"
    LOGGER = "logger"
    GROUP = "group"


Of = Annotated[EntityType, Argument("KIND", help="topic, broker, logger (of a broker) or group.")]
Named = Annotated[
    str,
    Argument("[NAME]", help="The topic, the broker's id, or the group; without it, all brokers."),
]


@app.command()
def describe(
    kind: Of,
    name: Named = "",
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    everything: Annotated[bool, Option("--all", help="Also print settings at their defaults.")] = False,
    as_json: Json = False,
) -> None:
    """
    Describe the settings of one topic, broker, logger or group, or of all brokers: their values and where they come
    from. The source "file" is the broker's properties file or its command line.

    Examples:

      moldau configs describe topic events

      moldau configs describe broker 1 --all --json

      moldau configs describe logger 1
    """
    with Admin(reachable(bootstrap_server)) as admin:
        entries = admin.configs.describe(_resource(kind, name), name)
    told = [one for one in entries if everything or one.source != DEFAULT]
    if as_json:
        shown = [
            {
                "name": one.name,
                "value": one.value,
                "source": one.source,
                "read_only": one.is_read_only,
                "sensitive": one.is_sensitive,
            }
            for one in told
        ]
        print_json({"kind": kind.value, "name": name, "configs": shown})
    else:
        print_table(["NAME", "VALUE", "SOURCE"], [[one.name, one.value, one.source] for one in told])


@app.command()
def alter(
    kind: Of,
    name: Named = "",
    bootstrap_server: BootstrapServer = BOOTSTRAP,
    config: ChangedConfig = None,
    delete_config: DeletedConfig = None,
    as_json: Json = False,
) -> None:
    """
    Change settings of one topic, broker, logger or group, or of all brokers, while the broker runs.

    Examples:

      moldau configs alter topic events --config retention.ms=86400000 --delete-config segment.ms

      moldau configs alter broker --config log.retention.ms=604800000

      moldau configs alter group billing --config consumer.session.timeout.ms=60000

      moldau configs alter logger 1 --config moldau.groups=DEBUG
    """
    wanted = changes(config, delete_config)
    if not wanted:
        raise UsageError("give --config NAME=VALUE or --delete-config NAME")
    with Admin(reachable(bootstrap_server)) as admin:
        admin.configs.alter(_resource(kind, name), name, wanted)
    if as_json:
        print_json({"kind": kind.value, "name": name, "changed": wanted})
    else:
        print(f"changed {counted(len(wanted), 'setting')} of {f'{kind} {name}' if name else 'all brokers'}")


def _resource(kind: EntityType, name: str) -> Resource:
    if not name and kind is not EntityType.BROKER:
        raise UsageError(
            f"give the {'broker' if kind is EntityType.LOGGER else kind}'s name: only brokers have common settings"
        )
    return Resource[kind.name]
