"""The pytest plugin, in a pytest of its own: one broker a session, a topic a test, settings, and what tests leave."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.commands import run

FRESH = {"PYTHONWARNINGS": "error"}
"""With these a process is not forked from one that has imported the broker (harness/forking.py)."""
HEADER = """
import pytest
from moldau import Admin, Consumer, Producer, TopicPartition
from moldau.testing import Broker
"""


class Project:
    """A folder of somebody's tests."""

    def __init__(self, folder: Path):
        self.folder = folder

    def pytest(
        self,
        test: str,
        *options: str,
        header: str = HEADER,
        conftest: str = "",
        ini: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Run pytest on these tests; returns what it printed, with `exit code N` as its last line."""
        (self.folder / "test_it.py").write_text(header + test)
        (self.folder / "conftest.py").write_text(conftest)
        (self.folder / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers -p no:cacheprovider\n{ini}")
        plugins = "-p", "no:moldau", "-p", "moldau.testing.plugin"
        own = "--basetemp", str(self.folder / ".temporary")  # two that clean up the common folder warn of each other
        warned = (
            "-W",
            "error",
            "-W",
            "ignore:Module already imported so cannot be rewritten",
        )  # in what it is forked from
        done = run("pytest", "-q", *warned, *plugins, *own, *options, ".", environment=environment, folder=self.folder)
        return f"{done.stdout}{done.stderr}\nexit code {done.returncode}"

    def told(self) -> list[str]:
        """The lines that tests appended to the file `told`."""
        return sorted((self.folder / "told").read_text().split())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_record_goes_through_the_brokers_topic(project: Project) -> None:
    printed = project.pytest("""
def test_round_trip(moldau_broker, moldau_topic):
    with Producer(moldau_broker.bootstrap_servers) as producer:
        producer.send(moldau_topic, b"hello")
    with Consumer(moldau_broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([moldau_topic])
        assert next(iter(consumer)).value == b"hello"
""")
    assert "1 passed" in printed


def test_tests_share_the_broker_and_have_topics_of_their_own(project: Project) -> None:
    printed = project.pytest("""
@pytest.mark.parametrize("case", ["a b", "c/d", "e" * 300])
def test_it(moldau_broker, moldau_topic, case):
    with open("told", "a") as told:
        print(moldau_broker.port, moldau_topic, file=told)
""")
    assert "3 passed" in printed
    told = project.told()
    assert len(set(told)) == 4
    assert [name for name in told if name.startswith("test_it-")][:2] == ["test_it-a-b-1", "test_it-c-d-2"]


def test_a_mark_gives_the_topic_its_settings(project: Project) -> None:
    printed = project.pytest("""
pytestmark = pytest.mark.moldau(num_partitions=3, retention_ms=5)

@pytest.mark.moldau(retention_ms=7)
def test_it(moldau_broker, moldau_topic):
    with Admin(moldau_broker.address) as admin:
        assert len(admin.describe_topics([moldau_topic])[moldau_topic].partitions) == 3
        assert {c.name: c.value for c in admin.topic_configs(moldau_topic)}["retention.ms"] == "7"
""")
    assert "1 passed" in printed


def test_the_ini_file_gives_the_broker_its_settings(project: Project) -> None:
    test = """
def test_it(moldau_broker, moldau_topic):
    with Admin(moldau_broker.address) as admin:
        assert len(admin.describe_topics([moldau_topic])[moldau_topic].partitions) == 5
"""
    assert "1 passed" in project.pytest(test, ini="moldau_settings =\n    num.partitions = 5\n    log.roll.hours=2\n")
    assert "did you mean num.partitions" in project.pytest(test, ini="moldau_settings = num.partition=5\n")
    assert "'num.partitions 5' is not NAME=VALUE" in project.pytest(test, ini="moldau_settings = num.partitions 5\n")
    own = "import pytest\n@pytest.fixture(scope='session')\ndef moldau_settings():\n    return {'num.partitions': 5}\n"
    assert "1 passed" in project.pytest(test, conftest=own)


def test_a_fixture_of_ones_own_protects_the_broker(project: Project) -> None:
    own = (
        "import pytest\n@pytest.fixture(scope='session')\n"
        "def moldau_security():\n    return {'users': {'alice': 'secret'}}\n"
    )
    test = """
def test_it(moldau_broker, moldau_topic):
    with Admin(moldau_broker.client_settings("alice")) as admin:
        assert moldau_topic in admin.list_topics()
"""
    assert "1 passed" in project.pytest(test, conftest=own)


def test_each_worker_of_xdist_has_a_broker_of_its_own(project: Project) -> None:
    printed = project.pytest(
        """
import os

@pytest.mark.parametrize("number", range(4))
def test_it(moldau_broker, moldau_topic, number):
    with open("told", "a") as told:
        print(f"{os.environ['PYTEST_XDIST_WORKER']}:{moldau_broker.port}", file=told)
""",
        *("-n", "2"),
    )
    assert "4 passed" in printed
    by_worker = dict(line.split(":") for line in project.told())
    assert len(set(project.told())) == len(by_worker) == len(set(by_worker.values()))


def test_the_next_test_finds_a_running_broker_without_faults(project: Project) -> None:
    printed = project.pytest("""
def test_1(moldau_broker):
    moldau_broker.fault("Metadata", drop="before")

def test_2(moldau_broker):
    with Admin(moldau_broker.address, default_api_timeout_ms=20_000) as admin:
        admin.list_topics()
    moldau_broker.kill()

def test_3(moldau_broker, moldau_topic):
    with Producer(moldau_broker.address) as producer:
        producer.send(moldau_topic, b"x").result()
""")
    assert "3 passed" in printed


def test_the_next_test_finds_a_broker_with_the_machines_time_and_all_records(project: Project) -> None:
    printed = project.pytest("""
def test_1(moldau_broker):
    moldau_broker.create_topic("kept", retention_ms=-1)
    with Producer(moldau_broker.address) as producer:
        producer.send("kept", b"x").result()
    moldau_broker.clock.advance(days=8)

def test_2(moldau_broker, moldau_topic):
    assert not moldau_broker.clock.ahead_s
    with Producer(moldau_broker.address) as producer:
        producer.send(moldau_topic, b"x").result()
    moldau_broker.clock.advance(hours=1)  # the segments that have expired are deleted meanwhile
    with Admin(moldau_broker.address) as admin:
        for topic in ("kept", moldau_topic):
            assert admin.watermarks(topic) == {TopicPartition(topic, 0): (0, 1)}
""")
    assert "2 passed" in printed


def test_a_fault_of_the_broker_is_an_error_of_the_test_that_met_it(project: Project) -> None:
    printed = project.pytest("""
import asyncio

def test_met(moldau_broker, monkeypatch):
    loop = moldau_broker.clock._loop
    loop.call_soon_threadsafe(lambda: 1 / 0)
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()

def test_other(moldau_broker):
    pass
""")
    assert "2 passed, 1 error" in printed and "ERROR test_it.py::test_met" in printed
    assert "BrokerFailed: the broker under test has failed: ZeroDivisionError" in printed


def test_collecting_imports_nothing_of_the_broker(project: Project) -> None:
    printed = project.pytest(
        "def test_it(moldau_broker): pass\n",
        "--collect-only",
        header="",
        environment=FRESH,
        conftest="""
import sys

def pytest_collection_finish():
    print("imported:", *sorted(name for name in sys.modules if name.partition(".")[0] in ("moldau", "asyncio")))
""",
    )
    assert "1 test collected" in printed
    (imported,) = [line for line in printed.splitlines() if line.startswith("imported:")]
    assert "moldau.broker" not in imported and "moldau.client" not in imported


def test_a_unittest_class_has_a_broker(tmp_path: Path) -> None:
    (tmp_path / "test_case.py").write_text("""
import unittest
from moldau import Producer, aio
from moldau.testing import MoldauTestCase


class Sync(MoldauTestCase):
    broker_settings = {"num.partitions": 2}

    def test_topics_are_new(self):
        self.assertNotEqual(self.new_topic(), self.new_topic(partitions=1, retention_ms=5))

    def test_a_fault_ends_with_its_test(self):
        self.broker.fault("Produce", error="TOPIC_AUTHORIZATION_FAILED")
        self.broker.kill()

    def test_a_later_test(self):
        with Producer(self.broker.address) as producer:
            producer.send(self.new_topic(), b"x").result()


class Async(MoldauTestCase, unittest.IsolatedAsyncioTestCase):
    async def test_records_are_sent(self):
        async with aio.Producer(self.broker.address) as producer:
            await producer.send(self.new_topic(), b"x")
""")
    done = run("unittest", "-v", environment=FRESH, folder=tmp_path)
    assert done.returncode == 0 and "Ran 4 tests" in done.stderr, done.stderr
