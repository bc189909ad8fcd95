"""How a member of each client is started: a process of its own that reads until its input is closed or it is killed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from harness.apache_kafka import TEMPORARY
from harness.brokers import SOURCE
from harness.quick_jvm import QUICK_JVM
from tests import versions
from tests.churn.plan import Kind
from tests.clients.client import without_ours
from tests.environments import java_class, kafka_jars, node_with, python_with

MEMBERS = Path(__file__).parent / "members"
CONFLUENT, AIOKAFKA, KAFKA_PYTHON, KAFKAJS, JAVA = "confluent", "aiokafka", "kafka-python", "kafkajs", "java"
OURS = "moldau"
JVM = (TEMPORARY, "-Xmx64m", *QUICK_JVM, "-Xshare:auto", "-Dfile.encoding=UTF-8")


class Command(NamedTuple):
    words: list[str | Path]
    environment: Mapping[str, str] = {}


def _java() -> Command:
    return Command(["java", *JVM, "-cp", java_class(MEMBERS / "Member.java", kafka_jars(versions.KAFKA)), "Member"])


def _kafkajs() -> Command:
    node, modules = node_with(versions.KAFKAJS)
    return Command([node, MEMBERS / "kafkajs.mjs"], {"NODE_PATH": str(modules)})


COMMANDS: Mapping[str, Callable[[], Command]] = {
    CONFLUENT: lambda: Command([python_with(versions.CONFLUENT), MEMBERS / "confluent.py"]),
    AIOKAFKA: lambda: Command([python_with(versions.AIOKAFKA), MEMBERS / "aio.py"]),
    KAFKA_PYTHON: lambda: Command([python_with(versions.KAFKA_PYTHON), MEMBERS / "kafka_python.py"]),
    KAFKAJS: _kafkajs,
    JAVA: _java,
    OURS: lambda: Command([sys.executable, MEMBERS / "ours.py"], {"PYTHONPATH": str(SOURCE)}),
}


def start(kind: Kind, asked: Mapping[str, object], errors: IO[str]) -> "subprocess.Popen[bytes]":
    """A member that is on its way into its group."""
    command = COMMANDS[kind.client]()
    given = json.dumps({**asked, "protocol": kind.protocol, "strategy": kind.strategy})
    return subprocess.Popen(
        [*command.words, given],
        stdin=subprocess.PIPE,
        stdout=errors,
        stderr=errors,
        env={**without_ours(os.environ), **command.environment},
    )
