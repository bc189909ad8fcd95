"""Facts about the ZooKeeper of a cluster: its servers, a session, and what registrations say of brokers' clocks."""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from moldau.cli.doctor.checks.zookeeper import ServerFacts, ZooKeeperFacts
from moldau.cluster.state.layout import BROKERS
from moldau.config import BrokerConfig
from moldau.errors import MoldauError
from moldau.runtime import Runtime

if TYPE_CHECKING:
    from moldau.metadata_store.zookeeper import ZooKeeperSession

CONNECT_S: Final = 5.0
SESSION_S: Final = 10.0
READS: Final = 10
REPLY_BYTES_MAX: Final = 1 << 16
_LATENCY = re.compile(r"Latency min/avg/max: [\d.]+/([\d.]+)/[\d.]+")


async def zookeeper_facts(
    config: BrokerConfig, properties: Mapping[str, str]
) -> tuple[ZooKeeperFacts | None, dict[int, int]]:
    """Facts about the ZooKeeper in these settings, None if they name none; and by how many milliseconds the clock of
    each broker was before ZooKeeper's when the broker registered."""
    from moldau.metadata_store.opening import session_in
    from moldau.metadata_store.shared_file_session import file_of
    from moldau.metadata_store.zookeeper import ZooKeeperSession
    from moldau.metadata_store.zookeeper_access import split_connect

    connect = config.zookeeper_connect or ""
    if not connect or file_of(connect) is not None:
        return None, {}
    hosts, _ = split_connect(connect)
    servers = await asyncio.gather(
        *(_server(one.strip(), tells=not config.zookeeper_ssl_client_enable) for one in hosts.split(","))
    )
    asked_s = config.zookeeper_session_timeout_ms / 1000
    own = {name: text for name, text in properties.items() if name.startswith("zookeeper.")}
    try:
        session = await session_in(connect, asked_s, Runtime(), SESSION_S, own)
    except ImportError:
        return ZooKeeperFacts(connect, servers, "kazoo is not installed"), {}
    except MoldauError as error:
        return ZooKeeperFacts(connect, servers, str(error)), {}
    assert isinstance(session, ZooKeeperSession)
    try:
        async with asyncio.timeout(SESSION_S):
            answers_ms = [await _read_ms(session) for _ in range(READS)]
            ahead_ms = await _ahead_ms(session)
    except (MoldauError, TimeoutError) as error:
        return ZooKeeperFacts(connect, servers, str(error) or f"no answers within {SESSION_S:g} s"), {}
    finally:
        await session.close()
    return ZooKeeperFacts(connect, servers, "", answers_ms, asked_s, session.timeout_s), ahead_ms


async def _read_ms(session: "ZooKeeperSession") -> float:
    from moldau.metadata_store.store import node_at

    began_s = time.monotonic()
    await session.read(node_at("/"))
    return (time.monotonic() - began_s) * 1000


async def _ahead_ms(session: "ZooKeeperSession") -> dict[int, int]:
    """A registration has the broker's time in it, and ZooKeeper's beside it."""
    from moldau.metadata_store.store import children_of, nodes_at

    names = [name for name in await session.read(children_of(BROKERS)) if name.isdecimal()]
    paths = [f"{BROKERS}/{name}" for name in names]
    nodes, changed_ms = await session.read(nodes_at(paths)), await session.changed_ms(paths)
    ahead_ms = {}
    for name, node, at_ms in zip(names, nodes, changed_ms, strict=True):
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            if node is not None and at_ms is not None:
                ahead_ms[int(name)] = int(json.loads(node.data)["timestamp"]) - at_ms
    return ahead_ms


async def _server(address: str, *, tells: bool) -> ServerFacts:
    """What a server says of itself, by its command `srvr`; only whether it can be connected to unless it `tells`."""
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, "2181"
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, ValueError) as error:
        reason = f"no answer within {CONNECT_S:g} s" if isinstance(error, TimeoutError) else str(error)
        return ServerFacts(address, reason)
    said = ""
    try:
        if tells:
            writer.write(b"srvr")
            async with asyncio.timeout(CONNECT_S):
                said = (await reader.read(REPLY_BYTES_MAX)).decode(errors="replace")
    except (OSError, TimeoutError):
        pass
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    version = re.search(r"Zookeeper version: ([\w.]+)", said)
    mode, latency = re.search(r"Mode: (\w+)", said), _LATENCY.search(said)
    return ServerFacts(
        address,
        "",
        version[1] if version else "",
        mode[1] if mode else "",
        float(latency[1]) if latency else -1.0,
    )
