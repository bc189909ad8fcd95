"""Requests to the controller while another broker is elected."""

import asyncio
import gc
import socket
from typing import Any

import pytest

from harness.patience import stretched
from moldau.cluster.controller_link import ControllerLink
from moldau.cluster.controller_locator import ControllerLocator
from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.errors import ErrorCode, KafkaError
from moldau.peers.introduction import Identity
from moldau.protocol.apis import ENVELOPE
from moldau.protocol.messages.envelope import EnvelopeRequest
from moldau.runtime import Runtime

LISTENER = "PLAINTEXT"
TIMEOUT_MS = 60_000


def test_a_request_to_a_stopped_controller_fails_when_another_one_is_elected() -> None:
    asyncio.run(_another_is_elected())


async def _another_is_elected() -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as stopped:  # it accepts connections, and answers nothing
        stopped.setblocking(False)
        locator = ControllerLocator()
        locator.controller = BrokerImage(1, (Endpoint(LISTENER, "PLAINTEXT", *stopped.getsockname()),))
        link = ControllerLink(locator, Identity("cluster", 2, lambda: 1, lambda: b""), Runtime())
        request = EnvelopeRequest(request_data=b"", client_host_address=b"")
        asked = asyncio.ensure_future(link.call(ENVELOPE, request, TIMEOUT_MS, lambda reply: reply))
        dialled, _ = await loop.sock_accept(stopped)
        with dialled:
            locator._show(None)
            with pytest.raises(KafkaError) as refused:
                async with asyncio.timeout(stretched()):
                    await asked
    assert refused.value.code is ErrorCode.NOT_CONTROLLER


def test_a_connection_that_fails_while_another_one_is_elected_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    dialling, failing = asyncio.Event(), asyncio.Event()

    async def refused(*_: object) -> None:
        try:
            dialling.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # asyncio.wait_for raises the refusal if both come in one turn
            failing.set()
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "connection refused") from None

    async def elected() -> list[Any]:
        reported: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        locator = ControllerLocator()
        locator.controller = BrokerImage(1, (Endpoint(LISTENER, "PLAINTEXT", "localhost", 9),))
        link = ControllerLink(locator, Identity("cluster", 2, lambda: 1, lambda: b""), Runtime())
        request = EnvelopeRequest(request_data=b"", client_host_address=b"")
        asked = asyncio.ensure_future(link.call(ENVELOPE, request, TIMEOUT_MS, lambda reply: reply))
        await dialling.wait()
        locator._show(None)
        with pytest.raises(KafkaError):
            await asked
        await failing.wait()
        return reported

    monkeypatch.setattr(ControllerLink, "_exchange", refused)
    reported = asyncio.run(elected())
    gc.collect()
    assert reported == []
