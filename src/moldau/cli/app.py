"""All commands of `moldau` except the fast path of `server start`: a table that says where each of them is.

A module is imported when one of its commands is called: those of `log` import most of the storage engine.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from moldau.cli.command_line import HELP, Group, UsageError, check_name
from moldau.cli.output import note
from moldau.cli.running import run_command

ABOUT = "A commit log that speaks the Apache Kafka protocol."
USAGE = 2
EXAMPLES_OF_A_GROUP = 2
"""The first example of each of its first commands."""


class CommandEntry(NamedTuple):
    """Where a command or a group of commands is, and a line of help about it."""

    module: str
    name: str
    summary: str


PLACES = {
    "server": CommandEntry("moldau.cli.server.commands", "app", "The broker: start, format."),
    "topics": CommandEntry(
        "moldau.cli.topics.commands",
        "app",
        "Topics: list, create, describe, alter, delete, offsets, delete-records.",
    ),
    "produce": CommandEntry(
        "moldau.cli.producing.produce", "produce", "Send each line as a record: from standard input or from files."
    ),
    "consume": CommandEntry("moldau.cli.consuming.consume", "consume", "Print records, each on a line, as they come."),
    "dead-letters": CommandEntry(
        "moldau.cli.dead_letters.commands",
        "app",
        "Records that a program could not process: list, show, replay.",
    ),
    "perf": CommandEntry(
        "moldau.cli.measuring.commands", "app", "Measure rates and latency: produce, consume, latency."
    ),
    "verifiable": CommandEntry(
        "moldau.cli.verifying.commands",
        "app",
        "Clients for test harnesses, which print each record as a line of JSON: produce, consume.",
    ),
    "groups": CommandEntry(
        "moldau.cli.groups.commands", "app", "Consumer groups: list, describe, delete, delete-offsets, reset-offsets."
    ),
    "configs": CommandEntry(
        "moldau.cli.configs", "app", "Settings of topics, brokers, loggers and groups: describe, alter."
    ),
    "client-metrics": CommandEntry(
        "moldau.cli.client_metrics.commands",
        "app",
        "Subscriptions to metrics that clients push: list, describe, alter, delete, read.",
    ),
    "transactions": CommandEntry(
        "moldau.cli.transactions", "app", "Transactions: list, describe, describe-producers, find-hanging, abort."
    ),
    "users": CommandEntry("moldau.cli.security.users", "app", "Users that log in by SCRAM: add, remove, list."),
    "quotas": CommandEntry(
        "moldau.cli.security.quotas", "app", "Quotas of users, client ids and addresses: set, remove, list."
    ),
    "acls": CommandEntry("moldau.cli.security.acls", "app", "Access rights: add, remove, list, explain."),
    "tokens": CommandEntry("moldau.cli.security.tokens", "app", "Delegation tokens: create, renew, expire, list."),
    "certificates": CommandEntry(
        "moldau.cli.security.certificates", "app", "Certificates for development: make an authority, and what it signs."
    ),
    "cluster": CommandEntry(
        "moldau.cli.cluster.commands",
        "app",
        "A cluster of brokers: start, status, adopt, elect-leaders, add-broker, drain-broker, replace-broker, balance, "
        "reassign, log-dirs, unregister, api-versions, features.",
    ),
    "doctor": CommandEntry(
        "moldau.cli.doctor.commands", "doctor", "Look for what is wrong, and say what to do; make a report of it."
    ),
    "top": CommandEntry("moldau.cli.watching.top", "top", "A live view: rates, lag and slow requests."),
    "zookeeper": CommandEntry(
        "moldau.cli.zookeeper", "app", "ZooKeeper: start it from the jars of PySpark, show a node."
    ),
    "schemas": CommandEntry(
        "moldau.cli.schemas.commands", "app", "Schemas in a registry: list, get, register, check, diff."
    ),
    "registry": CommandEntry("moldau.cli.schemas.registry", "app", "The schema registry: start, password."),
    "console": CommandEntry("moldau.cli.console.commands", "console", "The web console: pages about a cluster."),
    "mirror": CommandEntry(
        "moldau.cli.mirroring.commands",
        "app",
        "Mirrors of another cluster's topics, at the same offsets: start, status, failover, promote.",
    ),
    "log": CommandEntry(
        "moldau.cli.log.commands", "app", "The files of a stopped broker: dump, verify, repair, adopt, import."
    ),
    "pipeline": CommandEntry(
        "moldau.cli.pipeline",
        "app",
        "The Spark pipeline: load, audit, demo, compact, vacuum, history, widen, rejected, requeue, convert.",
    ),
    "completion": CommandEntry(
        "moldau.cli.completing", "completion", "A script that completes commands and options in bash, zsh or fish."
    ),
}
FIRST_STEPS = (
    "moldau server start",
    "echo hello | moldau produce events",
    "moldau consume events --from-beginning",
    "moldau doctor",
)


def run_app(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    try:
        return _run_app(arguments)
    except UsageError as wrong:
        note(f"error: {wrong}")
        return USAGE


def _run_app(arguments: Sequence[str]) -> int:
    rest = list(arguments)
    if not rest or rest[0] in HELP:
        about = {name: place.summary for name, place in PLACES.items()}
        return _help("moldau", ABOUT, about, FIRST_STEPS, bool(rest))
    name = rest.pop(0)
    check_name(name, PLACES, "moldau")
    place = PLACES[name]
    target: Group | Callable[..., Any] = getattr(importlib.import_module(place.module), place.name)
    if not isinstance(target, Group):
        return run_command(target, f"moldau {name}", rest)
    if not rest or rest[0] in HELP:
        from moldau.cli.help import first_example, first_sentence

        texts = {command: function.__doc__ or "" for command, function in target.commands.items()}
        summaries = {command: first_sentence(text) for command, text in texts.items()}
        examples = [first_example(text) for text in texts.values()][:EXAMPLES_OF_A_GROUP]
        return _help(f"moldau {name}", place.summary, summaries, examples, bool(rest))
    return run_command(target.named(rest[0], f"moldau {name}"), f"moldau {name} {rest[0]}", rest[1:])


def _help(path: str, about: str, commands: dict[str, str], examples: Sequence[str], asked: bool) -> int:
    """Print the help: it was asked for, or a command is missing."""
    from moldau.cli.help import group_help

    options = [("--version", "Print the version and end.")] if path == "moldau" else []
    print(group_help(path, about, commands, examples, options), file=sys.stdout if asked else sys.stderr)
    return 0 if asked else USAGE
