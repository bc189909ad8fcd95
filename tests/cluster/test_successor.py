"""Where a broker looks for the controller when the store cannot say it."""

import asyncio
from types import SimpleNamespace

import pytest

from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.state.image import BrokerImage, Endpoint, Image
from moldau.cluster.successor import PAUSE_S, SuccessorSearch
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.introduction import Identity
from moldau.protocol.apis import DESCRIBE_CLUSTER, Api
from moldau.simulation.world import World

BROKERS = {
    number: BrokerImage(number, (Endpoint("PLAINTEXT", "PLAINTEXT", f"host{number}", 9092),), epoch=number)
    for number in (1, 2, 3)
}
ME = Identity("c", 2, lambda: -1, lambda: b"")


def looked(locator: ControllerLocator, answers: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> float:
    """Broker 2 looks once, and is answered this by the others; the virtual seconds that took."""

    async def answer(_: SuccessorSearch, broker: BrokerImage) -> int:
        return answers[broker.id]

    async def scenario(_: World) -> float:
        began_s = asyncio.get_running_loop().time()
        await SuccessorSearch(locator, lambda: Image("c", brokers=BROKERS), ME).look()
        return asyncio.get_running_loop().time() - began_s

    monkeypatch.setattr(SuccessorSearch, "_controller_of", answer)
    return World(0).run(scenario)


@pytest.mark.parametrize("answers", [{1: 1, 3: 3}, {1: 3, 3: -1}, {1: -1, 3: 3}])
def test_another_one_than_the_controller_that_refused_is_found(
    answers: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    locator = ControllerLocator()
    locator.found(BROKERS[1])
    assert looked(locator, answers, monkeypatch) == 0
    assert locator.controller == BROKERS[3]


@pytest.mark.parametrize("answers", [{1: 1, 3: 1}, {1: -1, 3: -1}, {1: 2, 3: 2}, {1: 7, 3: 7}])
def test_what_is_no_news_is_asked_again_after_a_pause(answers: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    locator = ControllerLocator()
    locator.found(BROKERS[1])
    assert looked(locator, answers, monkeypatch) == PAUSE_S
    assert locator.controller == BROKERS[1]


def test_what_the_store_says_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    locator = ControllerLocator()
    locator.found(BROKERS[1])
    locator.is_told = True
    assert looked(locator, {1: 3, 3: 3}, monkeypatch) == 0
    locator.found(BROKERS[3])
    assert locator.controller == BROKERS[1]


def test_the_others_are_asked_what_names_the_controller_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata names the broker that answers. They are dialled as brokers dial each other, with TLS and a login."""
    dialled: list[tuple[int, Identity]] = []

    class Answering:
        connection = SimpleNamespace(close=lambda: None)

        def __init__(self, broker_id: int):
            self.broker_id = broker_id

        async def call(self, api: Api, request: object, timeout_ms: int) -> SimpleNamespace:
            return SimpleNamespace(controller_id=3 if api == DESCRIBE_CLUSTER else self.broker_id)

    async def dial(broker: BrokerImage, identity: Identity, timeout_ms: int) -> Answering:
        if broker == BROKERS[3]:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        dialled.append((broker.id, identity))
        return Answering(broker.id)

    monkeypatch.setattr("moldau.cluster.successor.dialled", dial)
    locator = ControllerLocator()
    World(0).run(lambda _: SuccessorSearch(locator, lambda: Image("c", brokers=BROKERS), ME).look())
    assert locator.controller == BROKERS[3]
    assert dialled == [(1, ME)]
