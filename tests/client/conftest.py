"""One broker for the tests of a module; every test takes topics and groups of its own."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from harness.brokers import Broker
from harness.proxy import Proxy
from moldau import testing

_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    ours = Broker(tmp_path_factory.mktemp("broker"), {"num.partitions": "1"})
    ours.start()
    yield ours
    ours.stop()


@pytest.fixture
def bootstrap(broker: Broker) -> str:
    return broker.address


@pytest.fixture
def fresh() -> Callable[[], str]:
    """A name that nobody has used yet."""
    return lambda: f"name-{next(_numbers)}"


@pytest.fixture
def topic(fresh: Callable[[], str]) -> str:
    return fresh()


@pytest.fixture
def group(fresh: Callable[[], str]) -> str:
    return fresh()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


@pytest.fixture
def proxied(proxy: Proxy) -> Iterator[testing.Broker]:
    """A broker of one test whose clients reach it through `proxy` alone."""
    with testing.Broker({"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        proxy.target = broker.address
        yield broker
