"""Pages of the reference that are made from code: commands, clients' settings, APIs and versions, metrics, error codes.

docs/settings.md, the settings of brokers, is made by tools/settings_page.py, since readers of the source want it too.
"""

import dataclasses
import importlib
import os
import re
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

import moldau
from moldau import TopicPartition
from moldau.cli.app import PLACES
from moldau.cli.command_line import Group, parameters_of
from moldau.cli.help import command_help
from moldau.cli.options import with_command_config
from moldau.client.administration.admin import AdminSettings
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.producing.producer_settings import ProducerSettings
from moldau.error_codes import ErrorCode
from moldau.handlers.rights import RIGHTS
from moldau.protocol.apis import APIS, BETWEEN_BROKERS, OURS, Api
from moldau.protocol.schema import NEVER
from moldau.requests.access import Right
from moldau.testing import Broker

Row = tuple[str, ...]
ERRORS = """# Error codes

The error codes are Kafka's. Each is an exception in `moldau.errors`, a subclass of `KafkaError` with its name in camel
case: `UNKNOWN_TOPIC_OR_PARTITION` is `UnknownTopicOrPartition`.

"""

CLIENTS = {"producer": ProducerSettings, "consumer": ConsumerSettings, "admin client": AdminSettings}
CLIENT_SETTINGS = """# Settings of clients

Keyword arguments of `moldau.Producer`, `Consumer` and `Admin`, also in `moldau.aio`, have underscores; a mapping and a
file may have Kafka's names with dots (`bootstrap.servers`). Names of other clients for the same setting are understood
as well. [Kafka's other names](../docs/coming-from.md) are ignored or refused with a sentence.
"""
VERSIONS = """# APIs and versions

The versions that ApiVersions advertises, and the access rights that each API needs: one right of the first column for
the whole request, and those of the second column for the resources that it names. [The protocol](../docs/protocol.md)
explains the ranges, and how clients use them.
"""
METRICS = """# Metrics

All metrics that a broker with `metrics.port` serves, with their labels. [Metrics](../docs/metrics.md) has dashboards,
alerts, and the sources of the names. `metrics.names` chooses the names of Kafka's exporters, those of kminion, or both.
"""


def table(heads: Row, rows: Iterable[Row]) -> str:
    """A table in Markdown; cells have no bars."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines) + "\n"


def commands_page() -> str:
    """The help of every command, as it is printed."""
    os.environ["COLUMNS"] = "100"  # of a terminal, for the help
    pieces = [
        "# Commands",
        "The `--help` of each command. [commands.md](../docs/commands.md) has Kafka's scripts and the common options.",
    ]
    for name, place in PLACES.items():
        found = getattr(importlib.import_module(place.module), place.name)
        pieces.append(f"## moldau {name}")
        if isinstance(found, Group):
            pieces.append(place.summary)
            for one, function in found.commands.items():
                pieces += [f"### moldau {name} {one}", _help(f"moldau {name} {one}", function)]
        else:
            pieces.append(_help(f"moldau {name}", found))
    return "\n\n".join(pieces) + "\n"


def _help(path: str, function: Callable[..., Any]) -> str:
    return _text(command_help(path, function.__doc__ or "", with_command_config(parameters_of(function))))


def _text(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def errors_page() -> str:
    """Every error code with its number, its exception and what it means."""
    rows = [(str(code.value), code.name, "yes" if code.retriable else "no", code.sentence) for code in ErrorCode]
    return ERRORS + table(("code", "name", "may be retried", "meaning"), rows)


def client_settings_page() -> str:
    """The settings that all clients have, then those of single ones."""
    fields = {name: _fields(kind) for name, kind in CLIENTS.items()}
    shared = {name for name in fields["producer"] if all(name in of for of in fields.values())}
    parts = [CLIENT_SETTINGS, "## All clients\n", _settings(f for n, f in fields["producer"].items() if n in shared)]
    for client, own in fields.items():
        rest = [field for name, field in own.items() if name not in shared]
        if rest:
            parts += [f"## {client[0].upper()}{client[1:]}\n", _settings(rest)]
    return "\n".join(parts)


def _fields(kind: type[Any]) -> dict[str, "dataclasses.Field[Any]"]:
    return {one.name: one for one in dataclasses.fields(kind) if not one.metadata.get("internal", True)}


def _settings(fields: Iterable["dataclasses.Field[Any]"]) -> str:
    rows = []
    for field in fields:
        about, aliases = field.metadata["about"], ", ".join(f"`{one}`" for one in field.metadata["aliases"])
        rows.append((f"`{field.name}`", _default(field), f"{about} Also called {aliases}." if aliases else about))
    return table(("name", "default", "meaning"), rows)


def _default(field: "dataclasses.Field[Any]") -> str:
    value = field.default
    if value is None or value == "" or value == ():
        return ""
    if callable(value):
        return f"`{getattr(value, '__name__', type(value).__name__)}`"
    return f"`{value}`"


def versions_page() -> str:
    """Each API: key, name, versions, rights."""
    heads = ("key", "API", "versions", "flexible from", "right for the whole request", "rights for its parts")
    chapters = {
        "": APIS,
        "Between Moldau's programs and brokers": OURS,
        "Between the brokers of a cluster": BETWEEN_BROKERS,
    }
    parts = [VERSIONS]
    for title, apis in chapters.items():
        parts += [f"## {title}\n"] if title else []
        parts.append(table(heads, map(_api, sorted(apis.values(), key=lambda api: api.key))))
    return "\n".join(parts)


def _api(api: Api) -> Row:
    rights = RIGHTS[api]
    whole = "; ".join(_rights(requirement.any_of, " or ") for requirement in rights.whole)
    versions = f"{api.low}" if api.low == api.high else f"{api.low} to {api.high}"
    flexible = "never" if api.flexible == NEVER else str(api.flexible)
    return str(api.key), api.name, versions, flexible, whole, _rights(rights.parts, ", ")


def _rights(rights: Iterable[Right], between: str) -> str:
    words = (f"{right.operation.name} on {right.resource_type.name}".lower() for right in rights)
    return between.join(word.replace("_", " ") for word in words)


def metrics_page() -> str:
    """Every metric of a broker that has had a little of each kind of traffic."""
    found: dict[str, tuple[str, str, set[str]]] = {}
    name = ""
    for line in _scraped().splitlines():
        if about := re.match(r"# HELP (\S+) (.*)", line):
            name = about[1]
            found[name] = ("", about[2], set())
        elif kind := re.match(r"# TYPE (\S+) (.*)", line):
            found[name] = (kind[2], found[name][1], set())
        elif line:
            labels = re.findall(r'([a-z_]+)="', line.partition("{")[2])
            found[name][2].update(label for label in labels if label != "le")
    rows = [
        (f"`{name}`", kind, ", ".join(sorted(labels)), sentence)
        for name, (kind, sentence, labels) in sorted(found.items())
    ]
    parts = [METRICS]
    for title, beginning in FAMILIES.items():
        chapter = [row for row in rows if row[0].startswith(beginning)]
        parts += [f"## {title}\n", table(("name", "type", "labels", "meaning"), chapter)]
    return "\n".join(parts)


FAMILIES = {
    "Names of Kafka's JMX exporter": tuple(
        f"`kafka_{part}_" for part in ("server", "network", "controller", "cluster", "log")
    ),
    "Names of kafka_exporter": ("`kafka_broker", "`kafka_topic", "`kafka_consumergroup"),
    "Moldau's names": ("`moldau_",),
    "The process": ("`process_",),
    "Names of kminion, if `metrics.names` has it": ("`kminion_",),
}


def _scraped() -> str:
    """What Prometheus would be given by a broker with records, a group and a transaction."""
    with Broker(metrics_port=0, metrics_host="127.0.0.1", metrics_names="kafka,kminion") as broker:
        address = broker.bootstrap_servers
        broker.create_topic("orders", 1)
        with moldau.Producer(address, transactional_id="till") as producer, producer.transaction():
            producer.send("orders", b"1")
        with moldau.Consumer(address, group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            consumer.poll(timeout_ms=10_000)
            consumer.commit()
            with urllib.request.urlopen(broker.metrics_url, timeout=60) as answer:
                return str(answer.read().decode())
