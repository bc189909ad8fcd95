"""What `moldau doctor` learns of a real ZooKeeper, and of the clocks of the brokers that registered there."""

import asyncio
import json
import time

from harness.zookeeper import ZooKeeper
from moldau.cli.doctor.checks.zookeeper import of_zookeeper
from moldau.cli.doctor.ensemble import zookeeper_facts
from moldau.config import broker_config
from moldau.metadata_store.opening import session_in
from moldau.metadata_store.store import Create
from moldau.runtime import Runtime


def test_servers_a_session_and_the_clocks_of_brokers_are_seen(single: ZooKeeper) -> None:
    properties = {"broker.id": "1", "zookeeper.connect": f"{single.connect}/doctor"}

    async def scenario() -> None:
        session = await session_in(properties["zookeeper.connect"], 6.0, Runtime())
        now_ms = int(time.time() * 1000)
        registered = {number: json.dumps({"timestamp": str(now_ms + 90_000 * (number - 1))}) for number in (1, 2)}
        made = [Create(f"/brokers/ids/{number}", text.encode()) for number, text in registered.items()]
        await session.multi([Create("/brokers"), Create("/brokers/ids"), *made, Create("/brokers/ids/3", b"?")])
        facts, ahead_ms = await zookeeper_facts(broker_config(properties)[0], properties)
        await session.close()
        assert facts is not None and not facts.error, facts
        assert [(one.error, one.mode) for one in facts.servers] == [("", "standalone")]
        [server] = facts.servers
        assert server.version.startswith("3.") and server.latency_ms >= 0 and len(facts.answers_ms) == 10
        assert ahead_ms.keys() == {1, 2} and 89_000 < ahead_ms[2] - ahead_ms[1] < 91_000
        assert [one for one in of_zookeeper(facts) if one.severity == "error"] == []

    asyncio.run(scenario())


def test_a_file_that_brokers_share_is_no_zookeeper() -> None:
    properties = {"broker.id": "1", "zookeeper.connect": "file:/tmp/nothing"}
    assert asyncio.run(zookeeper_facts(broker_config(properties)[0], properties)) == (None, {})
