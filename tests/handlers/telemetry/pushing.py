"""A client that pushes metrics, over one connection; and what came into the topic of the broker."""

import uuid
from typing import Any

from harness.patience import until
from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.protocol.apis import API_VERSIONS, GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY
from moldau.protocol.messages.api_versions import ApiVersionsRequest
from moldau.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from moldau.protocol.messages.push_telemetry import PushTelemetryRequest
from moldau.records.rows import Record, iterate
from tests.handlers.living import Living, Wire

TOPIC = "metrics-of-clients"
OFTEN = {"metrics": "*", "interval.ms": "100"}
NOBODY = uuid.UUID(int=0)


class PushingClient:
    """`told` is the last answer to what it should push."""

    def __init__(self, wire: Wire):
        self.wire = wire
        self.told: Any = None

    async def introduce(self) -> list[int]:
        """Say which software it is; returns the keys that the broker offers."""
        request = ApiVersionsRequest(client_software_name="test-client", client_software_version="1.2")
        return [one.api_key for one in (await self.wire.ask(API_VERSIONS, 3, request)).api_keys]

    async def get(self, client: uuid.UUID | None = None) -> Any:
        known = NOBODY if self.told is None else self.told.client_instance_id
        request = GetTelemetrySubscriptionsRequest(client_instance_id=client or known)
        answer = await self.wire.ask(GET_TELEMETRY_SUBSCRIPTIONS, 0, request)
        if not answer.error_code:
            self.told = answer
        return answer

    async def push(self, metrics: bytes, codec: int = 0, *, terminating: bool = False, **other: Any) -> int:
        """Returns the error code."""
        sent = {
            "client_instance_id": self.told.client_instance_id,
            "subscription_id": self.told.subscription_id,
            "compression_type": codec,
            "metrics": metrics,
            "terminating": terminating,
            **other,
        }
        return int((await self.wire.ask(PUSH_TELEMETRY, 0, PushTelemetryRequest(**sent))).error_code)

    def interval_passed(self, alive: Living) -> None:
        """Have the broker believe that the client has waited long enough for its next push."""
        telemetry = alive.broker.telemetry.telemetry
        version, now_ms = telemetry._subscriptions.version, telemetry.now_ms()
        instance = telemetry.instances.find(self.told.client_instance_id, version, now_ms)
        assert instance is not None
        instance.pushed_ms -= self.told.push_interval_ms


async def client_of(alive: Living) -> PushingClient:
    """A client that was told what to push."""
    client = PushingClient(await alive.dial())
    await client.introduce()
    assert (await client.get()).error_code == 0
    return client


async def subscribe(alive: Living, name: str = "all", **settings: str) -> None:
    wanted = {**OFTEN, **{key.replace("_", "."): value for key, value in settings.items()}}
    change = [Alteration(key, OpType.SET, value) for key, value in wanted.items()]
    assert await alive.broker.cluster.configs.alter_client_metrics([(name, change)]) == [None]


def records(alive: Living, topic: str = TOPIC) -> list[Record]:
    """Those of all partitions that this broker hosts."""
    found: list[Record] = []
    for (name, _), replica in sorted(alive.broker.replicas.hosted.items(), key=lambda one: one[0][1]):
        if name == topic:
            found += iterate(replica.log.read_batches(0, 64 << 20))
    return found


async def came(alive: Living, count: int, topic: str = TOPIC) -> list[Record]:
    """The records of the topic, once there are so many."""
    await until(lambda: len(records(alive, topic)) >= count)
    return records(alive, topic)
