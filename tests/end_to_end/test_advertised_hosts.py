"""The host that clients are told of a listener: never an address that no other machine can dial."""

import asyncio
import socket
from pathlib import Path

from moldau.broker import Broker
from moldau.config import broker_config
from moldau.runtime import Runtime


def told(folder: Path, **settings: str) -> list[str]:
    """The hosts that a broker with four listeners tells its clients."""
    names = {name.replace("_", "."): value for name, value in settings.items()}
    config = {
        "listeners": "A://:0,B://0.0.0.0:0,C://[::]:0,D://localhost:0",
        "listener.security.protocol.map": ",".join(f"{one}:PLAINTEXT" for one in "ABCD"),
        "inter.broker.listener.name": "A",
        "log.dirs": str(folder),
        **names,
    }

    async def started() -> list[str]:
        broker = Broker(broker_config(config)[0], Runtime())
        await broker.start()
        try:
            [own] = broker.cluster.image.brokers.values()
            return [one.host for one in sorted(own.endpoints, key=lambda one: one.name)]
        finally:
            await broker.stop()

    return asyncio.run(started())


def test_a_listener_on_every_interface_tells_the_name_of_its_machine(tmp_path: Path) -> None:
    here = socket.gethostname()
    assert told(tmp_path / "one") == [here, here, here, "localhost"]
    named = "A://a.example:1,B://b.example:2,C://c.example:3,D://d.example:4"
    hosts = ["a.example", "b.example", "c.example", "d.example"]
    assert told(tmp_path / "two", advertised_listeners=named) == hosts
