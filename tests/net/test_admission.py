"""Limits of connections on the simulated network: which are served, which wait and for how long, which are closed."""

import asyncio
import random
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from harness.patience import within
from moldau.net import admission as admission_module
from moldau.net.limits import Limits, ListenerLimits
from moldau.net.server import Server
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.network import Network, Weather

PORTS = {"PLAINTEXT": 9092, "BROKERS": 9093}


class Client:
    """A connection that asks once, when it is made."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer
        self.answered = asyncio.ensure_future(self._ask())
        """Whether it was answered, and when; not if it was closed."""

    async def _ask(self) -> tuple[bool, float]:
        await self.ask()
        try:
            answer = await self.reader.readexactly(5)
        except (asyncio.IncompleteReadError, ConnectionError):
            return False, asyncio.get_running_loop().time()
        assert answer[4:] == b"x"
        return True, asyncio.get_running_loop().time()

    async def ask(self) -> None:
        self.writer.write(struct.pack(">i", 1) + b"x")


class Clients:
    def __init__(self, server: Server):
        self.server = server
        self._dialled: list[Client] = []

    def hang_up(self) -> None:
        for client in self._dialled:
            client.writer.close()
            client.answered.cancel()

    async def dial(self, listener: str = "PLAINTEXT") -> Client:
        client = Client(*await asyncio.open_connection("host", PORTS[listener]))
        self._dialled.append(client)
        await asyncio.sleep(0.001)
        return client

    async def waits(self, client: Client) -> bool:
        await asyncio.sleep(0.5)
        return not client.answered.done()


def played(
    scenario: Callable[[Clients], Awaitable[None]], limits: Limits, ip_rate: Callable[[str], float] | None = None
) -> None:
    """With a server of two listeners. `ip_rate`: of new connections from an address."""
    loop = SimulatedLoop(Network(random.Random(1), Weather(0)))

    async def play() -> None:
        server = Server(lambda peer, listener: lambda frame: [struct.pack(">i", len(frame)) + bytes(frame)], limits)
        server.ip_rate = ip_rate
        for listener, port in PORTS.items():
            await server.start("host", port, listener)
        await server.serve()
        clients = Clients(server)
        await scenario(clients)
        clients.hang_up()
        await server.stop()

    loop.run_until_complete(play())
    loop.close()


def test_a_connection_above_the_maximum_waits_until_another_ends_in_order() -> None:
    async def scenario(clients: Clients) -> None:
        first, second = await clients.dial(), await clients.dial()
        third, fourth = await clients.dial(), await clients.dial()
        assert (await first.answered)[0] and (await second.answered)[0]
        assert await clients.waits(third)
        first.writer.close()
        assert (await third.answered)[0]
        assert await clients.waits(fourth)
        third.writer.close()
        assert (await fourth.answered)[0]

    played(scenario, Limits(max_connections=2))


def test_a_client_that_leaves_while_it_waits_takes_no_place() -> None:
    async def scenario(clients: Clients) -> None:
        first, second, third = [await clients.dial() for _ in range(3)]
        second.writer.close()
        await asyncio.sleep(0.1)
        first.writer.close()
        assert (await third.answered)[0]

    played(scenario, Limits(max_connections=1))


def test_a_listener_of_its_own_maximum_holds_up_no_other() -> None:
    async def scenario(clients: Clients) -> None:
        first, second, other = await clients.dial(), await clients.dial(), await clients.dial("BROKERS")
        assert (await first.answered)[0] and (await other.answered)[0]
        assert await clients.waits(second)

    played(scenario, Limits(of_listeners={"PLAINTEXT": ListenerLimits(max_connections=1)}))


def test_a_broker_is_served_and_the_least_recently_used_connection_of_a_client_closed_for_it() -> None:
    async def scenario(clients: Clients) -> None:
        first, second = await clients.dial(), await clients.dial()
        await asyncio.sleep(1)
        await first.ask()
        assert await first.reader.readexactly(5)
        brokers = [await clients.dial("BROKERS") for _ in range(2)]
        assert (await brokers[0].answered)[0]
        assert await second.reader.read() == b""
        assert (await brokers[1].answered)[0]
        assert await first.reader.read() == b""
        assert (await (await clients.dial("BROKERS")).answered)[0]
        assert await clients.waits(await clients.dial())

    played(scenario, Limits(max_connections=2, protected_listener="BROKERS"))


def test_fewer_connections_close_those_used_least_recently_and_more_let_others_in() -> None:
    async def scenario(clients: Clients) -> None:
        dialled = [await clients.dial() for _ in range(4)]
        clients.server.limit(Limits(max_connections=2))
        await asyncio.sleep(0.1)
        assert [client.reader.at_eof() for client in dialled] == [True, True, False, False]
        waiting = await clients.dial()
        assert await clients.waits(waiting)
        clients.server.limit(Limits(max_connections=3))
        assert (await waiting.answered)[0]

    played(scenario, Limits())


@pytest.mark.parametrize(
    "limits", [Limits(connection_rate=1), Limits(of_listeners={"PLAINTEXT": ListenerLimits(creation_rate=1)})]
)
def test_connections_above_the_rate_wait_for_at_most_a_second_each(limits: Limits) -> None:
    """Ten fit into the window, as in Kafka; each further one is a second late, and so is what is behind it."""

    async def scenario(clients: Clients) -> None:
        dialled = [await clients.dial() for _ in range(13)]
        answered = [await client.answered for client in dialled]
        assert all(served for served, _ in answered)
        assert [round(at) for _, at in answered] == [0] * 10 + [1, 2, 3]

    played(scenario, limits)


def test_an_address_with_too_many_connections_is_closed_at_once() -> None:
    async def scenario(clients: Clients) -> None:
        first = await clients.dial()
        host = next(iter(clients.server.per_host))
        assert (await first.answered)[0]
        refused = await clients.dial()
        served, at = await refused.answered
        assert not served and at < 0.1
        clients.server.limit(Limits(max_connections_per_ip=1, per_ip_overrides={host: 2}))
        assert (await (await clients.dial()).answered)[0]

    played(scenario, Limits(max_connections_per_ip=1))


def test_an_address_with_too_many_new_connections_is_held_for_a_second_and_closed() -> None:
    async def scenario(clients: Clients) -> None:
        dialled = [await clients.dial() for _ in range(12)]
        answered = [await client.answered for client in dialled]
        assert [served for served, _ in answered] == [True] * 10 + [False] * 2
        assert [round(at) for _, at in answered[-2:]] == [1, 1]
        await asyncio.sleep(10)
        assert (await (await clients.dial()).answered)[0]  # what was refused did not count

    played(scenario, Limits(), lambda host: 1.0)


def test_more_than_a_backlog_of_waiting_connections_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_module, "WAITING_MAX", 2)

    async def scenario(clients: Clients) -> None:
        dialled = [await clients.dial() for _ in range(4)]
        assert not (await dialled[-1].answered)[0]
        assert await clients.waits(dialled[2])
        await clients.server.stop()
        assert [(await client.answered)[0] for client in dialled] == [True, False, False, False]

    played(scenario, Limits(max_connections=1))


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_a_client_sent_while_it_waited_is_answered_on_a_real_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario() -> None:
        server = Server(lambda peer, listener: lambda frame: [bytes(frame)], Limits(max_connections=1))
        port = await server.start("127.0.0.1", 0)
        await server.serve()
        with socket.create_connection(("127.0.0.1", port)) as first:
            while not server.connections:
                await asyncio.sleep(0)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for byte in (b"a", b"b"):
                writer.write(struct.pack(">i", 3000) + byte * 3000)
            await asyncio.sleep(0.01)
            first.close()
        assert await within(reader.readexactly(6000)) == b"a" * 3000 + b"b" * 3000
        writer.close()
        await server.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_first_request_of_a_client_that_waited_holds_up_those_behind_it(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario() -> None:
        asked = list[bytes]()
        first_answer = asyncio.get_running_loop().create_future()

        def handle(frame: memoryview) -> Any:
            asked.append(bytes(frame))
            return first_answer if asked == [b"first"] else [bytes(frame)]

        server = Server(lambda peer, listener: handle, Limits(max_connections=1))
        port = await server.start("127.0.0.1", 0)
        await server.serve()
        with socket.create_connection(("127.0.0.1", port)) as served:
            while not server.connections:
                await asyncio.sleep(0)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(struct.pack(">i", 5) + b"first")
            await asyncio.sleep(0.01)
            served.close()
        while not asked:
            await asyncio.sleep(0)
        writer.write(struct.pack(">i", 6) + b"second")
        await asyncio.sleep(0.01)
        asked_before = list(asked)
        first_answer.set_result([b"first"])
        answers = await within(reader.readexactly(11))
        writer.close()
        await server.stop()
        assert (asked_before, answers) == ([b"first"], b"firstsecond")

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())
