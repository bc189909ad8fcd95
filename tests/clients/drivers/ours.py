"""Our own client does what it is told, with either face: `python ours.py sync|aio BOOTSTRAP [GROUP PROTOCOL]`."""

import asyncio
import sys
import threading
import time
from typing import Any

from jsonlines import serve

from moldau import Admin, Consumer, Producer, TopicPartition, aio

SECONDS = 30


class Blocking:
    """A client for asyncio whose methods are run to their end, on a loop that turns on in the background."""

    loop = asyncio.new_event_loop()

    def __init__(self, client: Any):
        self._client = client
        self._run("start")

    def _run(self, name: str, *arguments: Any, **named: Any) -> Any:
        async def call() -> Any:
            outcome = getattr(self._client, name)(*arguments, **named)
            return await outcome if asyncio.iscoroutine(outcome) else outcome

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result()

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: self._run(name, *arguments, **named)


class Driver:
    def __init__(self, face: str, bootstrap: str, group_protocol: str = "classic"):
        self.bootstrap = bootstrap
        self.group_protocol = group_protocol
        self.face = face
        if face == "aio":
            threading.Thread(target=Blocking.loop.run_forever, daemon=True).start()
        self.admin = self._made(Admin, aio.Admin)
        self.producers: dict[str | None, Any] = {}
        self.transactional: dict[str, Any] = {}
        self.consumer: Any = None

    def _made(self, of_sync: Any, of_aio: Any, **settings: Any) -> Any:
        if self.face == "sync":
            return of_sync(self.bootstrap, **settings)

        async def made() -> Any:
            return of_aio(self.bootstrap, **settings)

        return Blocking(asyncio.run_coroutine_threadsafe(made(), Blocking.loop).result())

    def produce(self, topic: str, messages: list[dict[str, Any]], compression: str | None) -> int:
        if compression not in self.producers:
            self.producers[compression] = self._made(Producer, aio.Producer, compression_type=compression or "none")
        return self._send(self.producers[compression], topic, messages)

    def _send(self, producer: Any, topic: str, messages: list[dict[str, Any]]) -> int:
        sent = [producer.send(topic, m["value"], m["key"], headers=m["headers"]) for m in messages]
        for delivery in sent:
            delivery.result(SECONDS)
        return len(sent)

    def begin(self, producer: str, transactional_id: str) -> None:
        if producer not in self.transactional:
            made = self._made(Producer, aio.Producer, transactional_id=transactional_id)
            self.transactional[producer] = made
            made.init_transactions()
        self.transactional[producer].begin_transaction()

    def write(self, producer: str, topic: str, messages: list[dict[str, Any]]) -> int:
        return self._send(self.transactional[producer], topic, messages)

    def send_offsets(self, producer: str, group: str) -> None:
        places = {tp: self.consumer.position(tp) for tp in self.consumer.assignment()}
        self.transactional[producer].send_offsets_to_transaction(places, group)

    def end(self, producer: str, commits: bool) -> None:
        end = self.transactional[producer]
        end.commit_transaction() if commits else end.abort_transaction()

    def subscribe(self, topic: str, group: str, isolation: str) -> None:
        self.consumer = self._made(
            Consumer,
            aio.Consumer,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=isolation,
            group_protocol=self.group_protocol,
        )
        self.consumer.subscribe(topic)

    def take(self, count: int, seconds: float) -> list[dict[str, Any]]:
        taken: list[dict[str, Any]] = []
        until = time.monotonic() + seconds
        while len(taken) < count and time.monotonic() < until:
            taken += [
                {
                    "key": record.key.decode(),
                    "value": record.value.decode(),
                    "headers": {name: value.decode() for name, value in record.headers},
                    "partition": record.partition,
                    "offset": record.offset,
                }
                for record in self.consumer.poll(200, count - len(taken))
            ]
        return taken

    def commit(self) -> None:
        self.consumer.commit()

    def unsubscribe(self) -> None:
        self.consumer.close()

    def create_topic(self, topic: str, partitions: int) -> None:
        self.admin.create_topic(topic, partitions=partitions)

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topic(topic)

    def configure(self, topic: str, settings: dict[str, str]) -> None:
        self.admin.alter_topic_configs(topic, settings)

    def topics(self) -> list[str]:
        return list(self.admin.list_topics())

    def partitions(self, topic: str) -> int:
        return len(self.admin.describe_topics([topic])[topic].partitions)

    def groups(self) -> list[str]:
        return [group.group_id for group in self.admin.list_groups()]

    def members(self, group: str) -> int:
        return len(self.admin.describe_group(group).members)

    def committed(self, group: str, topic: str) -> int:
        return sum(at.offset for tp, at in self.admin.group_offsets(group).items() if tp.topic == topic)

    def end_offsets(self, topic: str) -> int:
        asked = [TopicPartition(topic, number) for number in range(self.partitions(topic))]
        return sum(self.consumer.end_offsets(asked).values())

    def close(self) -> None:
        for client in (*self.producers.values(), *self.transactional.values(), self.admin):
            client.close()


serve(Driver(*sys.argv[1:]))
