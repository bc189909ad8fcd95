"""Hosts that neither answer nor refuse: a client waits for none of them while another broker can serve it."""

import asyncio

from moldau.client.producing.producer import AsyncProducer
from moldau.simulation.world import SESSION_S, World
from tests.worlds.replicated import NAMES
from tests.worlds.test_cuts import serving, until, whole_cluster

SEED = 2
"""Without the second dial the first test took 5.0 s, and without asking for the leader the second one 4.2 s."""


async def acknowledged(world: World, bootstrap: str) -> float:
    """The virtual seconds until a new producer has a record acknowledged."""
    began_s = asyncio.get_running_loop().time()
    async with AsyncProducer(bootstrap, acks="all", runtime=world.runtime(world.host("client"))) as producer:
        await (await producer.send("events", b"value", partition=0))
    return asyncio.get_running_loop().time() - began_s


def test_a_new_client_asks_the_next_server_when_the_first_one_is_silent() -> None:
    async def scenario(world: World) -> float:
        await world.start_broker("one")
        world.network.partition("silent", "client")
        return await world.on("client", acknowledged(world, "silent:9092,one:9092"))

    assert World(SEED).run(scenario) < 2


def test_records_go_to_a_new_leader_while_a_connection_to_the_old_one_is_being_opened() -> None:
    async def scenario(world: World) -> float:
        await whole_cluster(world)
        [led] = serving(world)
        first = NAMES[led.leadership.local - 1]
        others = ",".join(f"{name}:9092" for name in NAMES if name != first)
        for name in (*NAMES, "client"):
            if name != first:
                world.network.partition(first, name)
        world.cut_from_zookeeper(first)
        sent = asyncio.ensure_future(world.on("client", acknowledged(world, others)))
        await until(lambda: any(one.leadership.local != led.leadership.local for one in serving(world)), 2 * SESSION_S)
        began_s = world.loop.time()
        await sent
        return world.loop.time() - began_s

    assert World(SEED).run(scenario) < 2
