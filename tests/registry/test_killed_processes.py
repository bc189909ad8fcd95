"""Two instances as processes of their own, of which the writer is killed between its write and its answer; and the
start of an instance whose topic has many subjects."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.brokers import SOURCE, first_line
from harness.patience import stretched, wait_until
from harness.tiers import seed_or, sized
from moldau import Admin, Producer
from moldau.testing import Broker
from tests.registry.test_instances import ask, check_one_id

pytestmark = pytest.mark.check

QUICK = Path(__file__).with_name("quick_instance.py")
KILLS = sized(0, 3, 200)
TOPIC = "killed"
CUTS = (("EndTxn", "after"), ("EndTxn", "after"), ("EndTxn", "before"), ("Produce", "after"))
"""Where the writer hangs until it is killed: mostly when its change has been committed."""
SUBJECTS = 10_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=100) as made:
        yield made


class Instance:
    """A process; `url` is its address for as long as it lives."""

    def __init__(self, broker: Broker, topic: str = TOPIC):
        command = [sys.executable, QUICK, "-b", broker.address, "--port", "0", "--topic", topic]
        env = {**os.environ, "PYTHONPATH": str(SOURCE)}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
        self.url = first_line(self.process).removeprefix("listening on ").strip()

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.communicate()

    def register(self, subject: str, schema: dict[str, Any]) -> int | None:
        """One request; None if it was refused or cut off."""
        with contextlib.suppress(OSError):
            answer = ask(f"{self.url}/subjects/{subject}/versions", "POST", {"schema": json.dumps(schema)})
            return int(answer["id"]) if "id" in answer else None
        return None


def writer_of(broker: Broker, instances: list[Instance]) -> Instance:
    """The instance that writes, once the group has decided."""
    found: list[Instance] = []

    def decided() -> bool:
        with Admin(broker.address) as admin:
            members = admin.describe_group(f"moldau-registry-{TOPIC}").members
        urls = [one.client_id.removeprefix("moldau-registry ") for one in members if one.partitions]
        found[:] = [one for one in instances if one.url in urls]
        return len(found) == 1

    assert wait_until(decided, 30, 0.02)
    return found[0]


@pytest.mark.timeout(sized(120, 300, 3_000))
def test_the_writer_is_killed_between_write_and_answer_and_one_schema_has_one_id(broker: Broker) -> None:
    chance = random.Random(seed_or(7))
    answered: list[tuple[str, int, int]] = []
    instances = [Instance(broker), Instance(broker)]
    with ThreadPoolExecutor(2) as threads:
        for number in range(KILLS):
            schema = {"type": "fixed", "name": "F", "size": chance.randrange(number + 1) if number % 3 == 2 else number}
            writer = writer_of(broker, instances)
            other = next(one for one in instances if one is not writer)
            api, drop = chance.choice(CUTS)
            with broker.fault(api, drop=drop) as fault:
                asking = [threads.submit(one.register, f"s{number}", schema) for one in instances]
                assert wait_until(lambda fault=fault: fault.hits > 0, 30, 0.001)
                writer.end(signal.SIGKILL)
            answered.extend((f"s{number}", schema["size"], one) for one in (two.result() for two in asking) if one)
            while (last := other.register(f"s{number}", schema)) is None:
                time.sleep(0.02)
            answered.append((f"s{number}", schema["size"], last))
            instances = [other, Instance(broker)]
    seen = [ask(f"{one.url}/subjects") for one in instances]
    assert seen[0] == seen[1] == sorted(f"s{number}" for number in range(KILLS))
    for one in instances:
        one.end(signal.SIGTERM)
        assert one.process.returncode == 0
    assert len(answered) >= KILLS
    check_one_id(broker, TOPIC, answered)


@pytest.mark.long
def test_an_instance_with_ten_thousand_subjects_serves_within_five_seconds(broker: Broker) -> None:
    with Admin(broker.address) as admin:
        admin.create_topic("many", partitions=1, replication_factor=1, configs={"cleanup.policy": "compact"})
    with Producer(broker.address) as producer:
        for number in range(1, SUBJECTS + 1):
            key = {"keytype": "SCHEMA", "subject": f"s{number}", "version": 1, "magic": 1}
            fields = [{"name": f"f{at}", "type": "long"} for at in range(10)]
            schema = json.dumps({"type": "record", "name": f"R{number}", "fields": fields}, separators=(",", ":"))
            value = {"subject": f"s{number}", "version": 1, "id": number, "schema": schema, "deleted": False}
            packed = [json.dumps(one, separators=(",", ":")).encode() for one in (value, key)]
            producer.send("many", *packed)
    began = time.monotonic()
    one = Instance(broker, "many")
    took = time.monotonic() - began
    assert len(ask(f"{one.url}/subjects")) == SUBJECTS
    one.end(signal.SIGTERM)
    assert took <= stretched(5), took
