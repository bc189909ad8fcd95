"""A broker whose loop is held logs the request and its client; every test that stops a broker looks for such a line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.brokers import Broker, LoopHeld
from moldau.protocol import codec
from moldau.protocol.apis import DESCRIBE_CLUSTER
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.end_to_end.holding_broker import ASLEEP, AT_ONCE, LATER, TIMER
from tests.end_to_end.raw import Raw


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    ours = Broker(tmp_path, program=("tests.end_to_end.holding_broker",), may_be_held=False)
    ours.start()
    yield ours
    ours.kill()


def ask(broker: Broker, client_id: str, times: int = 1) -> str:
    """Ask in one connection; returns its address."""
    with Raw(broker.address) as raw:
        for _ in range(times):
            raw.socket.sendall(codec.write_request(DESCRIBE_CLUSTER, 1, 1, client_id, DescribeClusterRequest()))
            raw.receive()
        host, port = raw.socket.getsockname()
        return f"{host}:{port}"


@pytest.mark.parametrize("way", [AT_ONCE, LATER])
def test_a_request_that_holds_the_loop_is_named_with_its_connection(broker: Broker, way: str):
    address = ask(broker, way)
    with pytest.raises(LoopHeld) as said:
        broker.stop()
    line = str(said.value)
    assert f"by DescribeCluster version 1 of client '{way}' from {address};" in line
    assert "ms of processor time" in line


def test_a_timer_that_holds_the_loop_is_named(broker: Broker):
    ask(broker, TIMER, times=2)
    with pytest.raises(LoopHeld, match="by burn_the_loop;"):
        broker.stop()


def test_a_loop_that_sleeps_and_ordinary_requests_are_not_held_against_it(broker: Broker):
    ask(broker, ASLEEP, times=2)
    ask(broker, "ordinary", times=10)
    broker.stop()
