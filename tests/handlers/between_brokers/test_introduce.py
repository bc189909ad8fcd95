"""Brokers introduce themselves over the simulated network: who belongs to the cluster, and who only says so."""

import asyncio
from dataclasses import replace

import pytest

from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.between_brokers import introduce
from moldau.peers.address import Address
from moldau.peers.introduction import link_to_broker
from moldau.peers.link import Link, connect
from moldau.peers.proof import proof
from moldau.protocol.apis import API_VERSIONS, INTRODUCE
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.introduce import IntroduceRequest, IntroduceResponse
from moldau.requests.access import CLUSTER_ACTION, CLUSTER_NAME, READ_TOPIC, Right
from moldau.requests.dispatch import Dispatch
from moldau.requests.session import Authorizer, Session
from tests.cluster.connected import CLIENTS_PORT, PORT, Brokers, played
from tests.requests.calling import Denying


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test may have had this line written lately."""
    monkeypatch.setattr(introduce.notices, "_written", {})


@pytest.mark.parametrize(
    ("other", "expected", "sentence"),
    [
        ({"cluster_id": "another"}, 1, "this is a broker of cluster .*, not of another"),
        ({}, 2, "this is broker 1, not 2"),
        ({"broker_id": 1}, 1, "two brokers have its id"),
        ({"secret": lambda: b"x"}, 1, "it has not proved that it knows the secret of the cluster"),
        ({"broker_id": 7}, 1, "it says that its broker epoch is .*; the cluster shows no such broker"),
        ({"epoch": lambda: 0}, 1, "it says that its broker epoch is 0; the cluster shows it with epoch"),
        ({"epoch": lambda: 1 << 40}, 1, "it says that its broker epoch is 1099511627776; the cluster shows it with"),
    ],
)
def test_a_broker_that_does_not_belong_here_is_refused_with_a_sentence(
    other: dict[str, object], expected: int, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        with pytest.raises(KafkaError, match=sentence):
            await link_to_broker(Address("host1", PORT), expected, brokers[2].identity._replace(**other), 5000)

    played(scenario)
    assert "was refused" in caplog.text


def test_whoever_is_refused_is_one_line_in_the_log_whatever_it_claims(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1)
        for number in range(2, 40):
            other = brokers[1].identity._replace(broker_id=number, secret=lambda: b"x")
            with pytest.raises(KafkaError):
                await link_to_broker(Address("host1", PORT), 1, other, 5000)

    played(scenario)
    assert caplog.text.count("was refused") == 1


def test_a_broker_whose_registration_comes_is_waited_for_and_not_until_this_broker_acts_by_it() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        stream = brokers.controller.acting.stream
        assert stream is not None
        epoch = stream.image.brokers[2].epoch + 1
        again = brokers[2].identity._replace(epoch=lambda: epoch)
        dialled = asyncio.ensure_future(link_to_broker(Address("host1", PORT), 1, again, 5000))
        await asyncio.sleep(0.5)
        assert not dialled.done()

        async def for_ever(*_: object) -> None:
            await asyncio.Event().wait()

        brokers[1].metadata.subscribe(for_ever)
        registered = {**stream.image.brokers, 2: stream.image.brokers[2]._replace(epoch=epoch)}
        stream.publish(replace(stream.image, brokers=registered))
        assert not (await dialled).closed

    played(scenario)


def test_an_answer_to_a_challenge_holds_once_and_on_its_connection_only() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        me = brokers[2].identity
        request = IntroduceRequest(cluster_id=me.cluster_id, broker_id=2, broker_epoch=me.epoch(), expected_id=1)

        async def asked(link: Link, answer: bytes) -> IntroduceResponse:
            link.versions.add({INTRODUCE.key: (0, 0)})
            return await link.call(INTRODUCE, replace(request, proof=answer))  # type: ignore[no-any-return]

        first, second = [await brokers.link(brokers[1]) for _ in range(2)]
        challenge = (await asked(first, b"")).challenge
        answer = proof(me.secret(), challenge, 2, me.epoch(), 1)
        await asked(second, b"")
        for link, code in (
            (second, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            (first, ErrorCode.NONE),
            (first, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            (second, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        ):
            assert (await asked(link, answer)).error_code == code

    played(scenario)


def test_the_listener_of_clients_has_no_apis_between_brokers() -> None:
    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        with pytest.raises(KafkaError) as cut:
            await link_to_broker(Address("host1", CLIENTS_PORT), 1, brokers[2].identity, 5000)
        assert cut.value.code is ErrorCode.NETWORK_EXCEPTION
        link = await connect(Address("host1", CLIENTS_PORT), "client", 5000)
        assert not (
            await link.call(
                API_VERSIONS, ApiVersionsRequest(client_software_name="client", client_software_version="1")
            )
        ).error_code

    played(scenario)


@pytest.mark.parametrize(
    ("principal", "denied", "is_refused"),
    [
        ("User:ANONYMOUS", (CLUSTER_ACTION, CLUSTER_NAME), False),  # its proof is all that it has
        ("User:broker", (CLUSTER_ACTION, CLUSTER_NAME), True),
        ("User:broker", (READ_TOPIC, "*"), False),
    ],
)
def test_a_principal_needs_the_right_of_a_broker_where_connections_authenticate(
    monkeypatch: pytest.MonkeyPatch, principal: str, denied: tuple[Right, str], is_refused: bool
) -> None:
    authorizers: list[Authorizer | None] = [None]
    monkeypatch.setattr(
        Dispatch,
        "connected",
        lambda self, peer, listener: self.requests_of(
            Session(listener, peer, principal=principal, authorizer=authorizers[0])
        ),
    )

    async def scenario(brokers: Brokers) -> None:
        await brokers.start(1, 2)
        await brokers.until(lambda image: len(image.brokers) == 2)
        authorizers[:] = [Denying(denied)]
        if is_refused:
            with pytest.raises(KafkaError, match="User:broker has no right to CLUSTER_ACTION"):
                await link_to_broker(Address("host1", PORT), 1, brokers[2].identity, 5000)
        else:
            link = await link_to_broker(Address("host1", PORT), 1, brokers[2].identity, 5000)
            link.connection.close()

    played(scenario)
