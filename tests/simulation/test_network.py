"""The simulated network: bytes arrive late, in order, or not at all."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.network import DIAL_TIMEOUT_S, HIGH_WATER_BYTES, Network, Weather, current_host

PORT = 9092


class End(asyncio.Protocol):
    """One end of a connection, and what happened at it."""

    def __init__(self) -> None:
        self.data = b""
        self.lost: list[Exception | None] = []
        self.full: list[bool] = []
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def pause_writing(self) -> None:
        self.full.append(True)

    def resume_writing(self) -> None:
        self.full.append(False)


class Scene:
    """A host `server` that listens, and whoever dials it from `client`."""

    def __init__(self, network: Network):
        self.network = network
        self.accepted: list[End] = []

    async def listen(self) -> None:
        def accept() -> End:
            self.accepted.append(End())
            return self.accepted[-1]

        server = await asyncio.get_running_loop().create_server(accept, "server", PORT)
        await server.start_serving()

    async def dial(self) -> tuple[End, End]:
        """Both ends."""
        _, ours = await asyncio.get_running_loop().create_connection(End, "server", PORT)
        return ours, self.accepted[-1]


def run(scenario: Callable[[Scene], Awaitable[None]], seed: int = 1, loss: float = 0.2) -> float:
    """How long it took in virtual time."""
    loop = SimulatedLoop(network := Network(random.Random(seed), Weather(delay_ms_max=50, loss=loss)))

    async def live() -> None:
        scene = Scene(network)
        current_host.set("server")
        await scene.listen()
        current_host.set("client")
        await scenario(scene)

    try:
        loop.run_until_complete(loop.create_task(live()))
        return loop.time()
    finally:
        loop.close()


@pytest.mark.parametrize("seed", range(5))
def test_bytes_arrive_in_the_order_they_were_sent_both_ways(seed: int):
    async def scenario(scene: Scene) -> None:
        ours, theirs = await scene.dial()
        words = [b"%d " % number for number in range(200)]
        for word in words:
            ours.transport.write(word)
            theirs.transport.write(word.upper())
            await asyncio.sleep(0.001)
        ours.transport.close()
        await asyncio.sleep(60)
        assert theirs.data == b"".join(words)
        assert theirs.lost == [None]

    run(scenario, seed)


def test_a_partition_holds_everything_back_until_it_heals():
    async def scenario(scene: Scene) -> None:
        ours, theirs = await scene.dial()
        scene.network.partition("client", "server")
        ours.transport.write(b"held")
        theirs.transport.write(b"back")
        await asyncio.sleep(100)
        assert (ours.data, theirs.data) == (b"", b"")
        scene.network.heal()
        await asyncio.sleep(10)
        assert (ours.data, theirs.data) == (b"back", b"held")

    run(scenario)


def test_one_direction_may_be_cut_alone_but_then_nobody_can_dial():
    async def scenario(scene: Scene) -> None:
        ours, theirs = await scene.dial()
        scene.network.partition("server", "client", both_ways=False)
        ours.transport.write(b"there")
        theirs.transport.write(b"back")
        await asyncio.sleep(10)
        assert (ours.data, theirs.data) == (b"", b"there")
        before = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await scene.dial()
        assert asyncio.get_running_loop().time() - before >= DIAL_TIMEOUT_S

    run(scenario)


def test_a_host_that_dies_breaks_its_connections_and_is_told_nothing():
    async def scenario(scene: Scene) -> None:
        ours, theirs = await scene.dial()
        scene.network.reset("server")
        ours.transport.write(b"too late")
        await asyncio.sleep(10)
        assert isinstance(ours.lost[0], ConnectionResetError)
        assert (theirs.lost, theirs.data) == ([], b"")
        with pytest.raises(ConnectionRefusedError):
            await scene.dial()

    run(scenario)


def test_a_writer_is_held_while_its_reader_reads_nothing():
    async def scenario(scene: Scene) -> None:
        ours, theirs = await scene.dial()
        theirs.transport.pause_reading()
        ours.transport.write(bytes(HIGH_WATER_BYTES + 1))
        await asyncio.sleep(10)
        assert (ours.full, theirs.data) == ([True], b"")
        theirs.transport.resume_reading()
        await asyncio.sleep(10)
        assert (ours.full, len(theirs.data)) == ([True, False], HIGH_WATER_BYTES + 1)

    run(scenario)


def test_who_has_closed_is_given_nothing_more():
    async def scenario(scene: Scene) -> None:
        ours, theirs = await scene.dial()
        ours.transport.write(b"on its way")
        theirs.transport.close()
        await asyncio.sleep(10)
        assert theirs.data == b""
        assert ours.lost == [None]

    run(scenario, loss=0)


def test_it_all_takes_no_real_time():
    async def scenario(scene: Scene) -> None:
        await asyncio.sleep(1e6)

    assert run(scenario) >= 1e6
