"""The pytest plugin of the package: the fixtures `moldau_broker`, `moldau_topic` and `moldau_registry`.

pytest imports this module at every start, so it imports nothing of the broker until a fixture is used. Each worker of
pytest-xdist has a session, and with it a broker, of its own.
"""

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from moldau.testing.broker import Broker
    from moldau.testing.registry import RunningRegistry

INI, MARK = "moldau_settings", "moldau"
TOPIC_NAME_MAX = 80
_broker = pytest.StashKey["Broker"]()
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "settings of the broker that moldau_broker starts: one NAME=VALUE in each line, in Kafka's names"
    parser.addini(INI, about, type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    about = "settings of the topic that moldau_topic creates, such as num_partitions=3 or retention_ms=1000"
    config.addinivalue_line("markers", f"{MARK}(**settings): {about}")
    _leave_as_compiled(config)


def _leave_as_compiled(config: pytest.Config) -> None:
    """pytest rewrites the asserts of every module of a package that has a plugin. That takes a second of each run where
    no bytecode is written, and the broker's asserts are not the user's. pytest has no public way to say so."""
    marked = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked -= {"moldau", "pyspark_moldau"}


@pytest.fixture(scope="session")
def moldau_settings(pytestconfig: pytest.Config) -> dict[str, str]:
    """The settings of `moldau_broker`: those of the ini option `moldau_settings`. A conftest.py may define its own."""
    settings = {}
    for line in pytestconfig.getini(INI):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{INI}: {line!r} is not NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings


@pytest.fixture(scope="session")
def moldau_security() -> dict[str, Any]:
    """How `moldau_broker` is protected: `tls`, `users` and `acls` as `Broker` takes them; by default not at all. A
    conftest.py may define its own."""
    return {}


@pytest.fixture(scope="session")
def moldau_broker(
    pytestconfig: pytest.Config, moldau_settings: dict[str, str], moldau_security: dict[str, Any]
) -> "Iterator[Broker]":
    """A broker for all tests of the session: `moldau_broker.bootstrap_servers` is its address. After each test its
    faults are cleared, and it is started again if the test has killed it or moved its clock."""
    from moldau.testing.broker import Broker

    with Broker(moldau_settings, **moldau_security) as broker:
        pytestconfig.stash[_broker] = broker
        yield broker
        del pytestconfig.stash[_broker]


@pytest.fixture(scope="session")
def moldau_registry(moldau_broker: "Broker") -> "Iterator[RunningRegistry]":
    """A schema registry for all tests of the session, which keeps its schemas in `moldau_broker`: `moldau_registry.url`
    is its address. Needs the extra `registry`."""
    from moldau.testing.registry import RunningRegistry

    with RunningRegistry(moldau_broker) as registry:
        yield registry


@pytest.fixture
def moldau_topic(moldau_broker: "Broker", request: pytest.FixtureRequest) -> str:
    """The name of a new topic of `moldau_broker`, called after the test. `@pytest.mark.moldau(num_partitions=3)` gives
    it settings."""
    settings = {}
    for mark in reversed(list(request.node.iter_markers(MARK))):
        settings.update(mark.kwargs)
    partitions = settings.pop("num_partitions", -1)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:TOPIC_NAME_MAX].strip("-")
    return moldau_broker.create_topic(f"{name}-{next(_numbers)}", partitions, **settings)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """The broker as the next test expects it. What failed in its thread is an error of the test that has just run."""
    broker = item.config.stash.get(_broker, None)
    if broker is not None:
        broker.reset()
