"""Settings of each of three brokers, changed and shown by Kafka's own tool and by ours through any of them."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched
from moldau import Admin
from tests.clients.kafka_tools import CONFIGS, SECONDS_MAX, Tools


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Broker]]:
    """With the ids 1, 2 and 3; the file of the third has little memory for the cleaner."""
    folder = tmp_path_factory.mktemp("settings")
    with contextlib.ExitStack() as ends:
        found = []
        for number in (1, 2, 3):
            (folder / str(number)).mkdir()
            own = {"broker.id": str(number), "zookeeper.connect": f"file:{folder / 'metadata'}"}
            if number == 3:
                own["log.cleaner.dedupe.buffer.size"] = str(3 << 20)
            broker = Broker(folder / str(number), own)
            broker.start()
            ends.callback(broker.stop)
            found.append(broker)
        yield found


def run(*command: str, code: int = 0) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=stretched(SECONDS_MAX),
        env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def ours(through: Broker, *options: str, code: int = 0) -> str:
    return run(sys.executable, "-m", "moldau", "configs", *options, "-b", through.address, code=code)


def test_our_command_changes_and_shows_any_broker_through_any_broker(brokers: list[Broker]) -> None:
    for through in range(3):
        for about in ("1", "2", "3"):
            value = str(1000 + through)
            ours(brokers[through], "alter", "broker", about, "--config", f"log.segment.delete.delay.ms={value}")
            shown = ours(brokers[(through + 1) % 3], "describe", "broker", about)
            assert re.search(rf"log\.segment\.delete\.delay\.ms +{value}\b", shown), shown


def test_a_change_that_a_brokers_own_file_forbids_is_refused_by_that_broker(brokers: list[Broker]) -> None:
    said = ours(brokers[0], "alter", "broker", "3", "--config", "log.cleaner.threads=4", code=1)
    assert "log.cleaner.dedupe.buffer.size must be more than 1048576 for each of log.cleaner.threads" in said
    ours(brokers[0], "alter", "broker", "2", "--config", "log.cleaner.threads=4")
    assert "no broker 9 is up in this cluster" in ours(
        brokers[1], "alter", "broker", "9", "--config", "log.cleaner.threads=4", code=1
    )


def test_a_setting_of_a_broker_takes_effect_on_its_own_topics_only(brokers: list[Broker]) -> None:
    with Admin(brokers[0].address) as admin:
        admin.create_topic("inherits", partitions=3)
        admin.configs.alter("broker", "2", {"log.retention.ms": "12345"})
        of = {
            number: {one.name: one.value for one in _topic_configs(brokers[number - 1])}["retention.ms"]
            for number in (1, 2, 3)
        }
        admin.configs.alter("broker", "2", {"log.retention.ms": None})
    assert (of[2], of[1] == of[3] != "12345") == ("12345", True)


def _topic_configs(through: Broker) -> list[object]:
    with Admin(through.address) as admin:
        return list(admin.configs.describe("topic", "inherits"))


@pytest.mark.check
@pytest.mark.timeout(450)
def test_kafkas_tool_changes_and_shows_any_broker_through_any_broker(brokers: list[Broker], tmp_path: Path) -> None:
    with Tools(tmp_path) as tools:
        check_with_kafkas_tool(brokers, tools)


def check_with_kafkas_tool(brokers: list[Broker], tools: Tools) -> None:
    def kafka(through: Broker, *options: str, code: int = 0) -> str:
        return tools.run(CONFIGS, "--bootstrap-server", through.address, *options, code=code)

    entity = ("--entity-type", "brokers", "--entity-name")
    for through, about, at in ((0, "2", 2), (1, "3", 0), (2, "1", 1)):
        kafka(brokers[through], *entity, about, "--alter", "--add-config", "log.roll.jitter.ms=7")
        shown = kafka(brokers[at], *entity, about, "--describe")
        assert "log.roll.jitter.ms=7 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.roll.jitter.ms=7" in shown
    said = kafka(brokers[0], *entity, "3", "--alter", "--add-config", "log.cleaner.threads=4", code=1)
    assert "must be more than 1048576 for each of log.cleaner.threads" in said
    kafka(brokers[1], "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "log.roll.ms=99999")
    shown = kafka(brokers[2], "--entity-type", "brokers", "--entity-default", "--describe")
    assert "log.roll.ms=99999" in shown
    loggers = ("--entity-type", "broker-loggers", "--entity-name")
    kafka(brokers[0], *loggers, "2", "--alter", "--add-config", "moldau.broker=DEBUG")
    levels = [kafka(brokers[1], *loggers, number, "--describe") for number in ("1", "2")]
    assert ["moldau.broker=DEBUG" in one for one in levels] == [False, True]
