"""aiokafka does what it is told."""

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from jsonlines import serve

SECONDS = 30


class Driver:
    def __init__(self, bootstrap: str):
        self.bootstrap = bootstrap
        self.producers: dict[str | None, AIOKafkaProducer] = {}
        self.transactional: dict[str, AIOKafkaProducer] = {}
        self.consumer: AIOKafkaConsumer | None = None
        self.lazy_admin: AIOKafkaAdminClient | None = None

    async def admin(self) -> AIOKafkaAdminClient:
        if self.lazy_admin is None:
            self.lazy_admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await self.lazy_admin.start()
        return self.lazy_admin

    async def produce(self, topic: str, messages: list[dict[str, Any]], compression: str | None) -> int:
        if compression not in self.producers:
            self.producers[compression] = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap, enable_idempotence=True, compression_type=compression, linger_ms=5
            )
            await self.producers[compression].start()
        return await self._send(self.producers[compression], topic, messages)

    async def _send(self, producer: AIOKafkaProducer, topic: str, messages: list[dict[str, Any]]) -> int:
        sent = [
            await producer.send(
                topic,
                message["value"].encode(),
                message["key"].encode(),
                headers=[(name, value.encode()) for name, value in message["headers"].items()],
            )
            for message in messages
        ]
        await asyncio.wait_for(asyncio.gather(*sent), SECONDS)
        return len(sent)

    async def begin(self, producer: str, transactional_id: str) -> None:
        if producer not in self.transactional:
            made = AIOKafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=transactional_id)
            self.transactional[producer] = made
            await made.start()
        await self.transactional[producer].begin_transaction()

    async def write(self, producer: str, topic: str, messages: list[dict[str, Any]]) -> int:
        return await self._send(self.transactional[producer], topic, messages)

    async def send_offsets(self, producer: str, group: str) -> None:
        places = {partition: await self.consumer.position(partition) for partition in self.consumer.assignment()}
        await self.transactional[producer].send_offsets_to_transaction(places, group)

    async def end(self, producer: str, commits: bool) -> None:
        end = self.transactional[producer]
        await (end.commit_transaction() if commits else end.abort_transaction())

    async def subscribe(self, topic: str, group: str, isolation: str) -> None:
        self.consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=self.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=isolation,
        )
        await self.consumer.start()

    async def take(self, count: int, seconds: float) -> list[dict[str, Any]]:
        taken: list[dict[str, Any]] = []
        until = asyncio.get_running_loop().time() + seconds
        while len(taken) < count and asyncio.get_running_loop().time() < until:
            for records in (await self.consumer.getmany(timeout_ms=200, max_records=count - len(taken))).values():
                taken += [
                    {
                        "key": record.key.decode(),
                        "value": record.value.decode(),
                        "headers": {name: value.decode() for name, value in record.headers},
                        "partition": record.partition,
                        "offset": record.offset,
                    }
                    for record in records
                ]
        return taken

    async def commit(self) -> None:
        await self.consumer.commit()

    async def unsubscribe(self) -> None:
        await self.consumer.stop()

    async def create_topic(self, topic: str, partitions: int) -> None:
        answer = await (await self.admin()).create_topics([NewTopic(topic, partitions, 1)])
        if any(error[1] for error in answer.topic_errors):
            raise RuntimeError(str(answer))

    async def delete_topic(self, topic: str) -> None:
        await (await self.admin()).delete_topics([topic])

    async def configure(self, topic: str, settings: dict[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=settings)
        for answer in await (await self.admin()).alter_configs([resource]):
            if any(error[0] for error in answer.resources):
                raise RuntimeError(str(answer))

    async def topics(self) -> list[str]:
        return list(await (await self.admin()).list_topics())

    async def partitions(self, topic: str) -> int:
        return len((await (await self.admin()).describe_topics([topic]))[0]["partitions"])

    async def groups(self) -> list[str]:
        return [group[0] for group in await (await self.admin()).list_consumer_groups()]

    async def members(self, group: str) -> int:
        answers = await (await self.admin()).describe_consumer_groups([group])
        return sum(len(described[5]) for answer in answers for described in answer.groups)

    async def committed(self, group: str, topic: str) -> int:
        found = await (await self.admin()).list_consumer_group_offsets(group)
        return sum(position.offset for partition, position in found.items() if partition.topic == topic)

    async def end_offsets(self, topic: str) -> int:
        partitions = [TopicPartition(topic, number) for number in range(await self.partitions(topic))]
        return sum((await self.consumer.end_offsets(partitions)).values())

    async def close(self) -> None:
        for producer in (*self.producers.values(), *self.transactional.values()):
            await producer.stop()
        if self.lazy_admin is not None:
            await self.lazy_admin.close()


class Blocking:
    """Each method of the driver, run to its end on one loop; between calls the loop turns on in the background."""

    def __init__(self, driver: Driver):
        self.driver = driver
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(getattr(self.driver, name)(**arguments), self.loop).result()

        return call


serve(Blocking(Driver(sys.argv[1])))
