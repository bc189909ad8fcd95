"""confluent-kafka copies a topic in transactions: `python copying.py BOOTSTRAP IN OUT GROUP JSON`.

JSON has `transactional.id`, `transaction.timeout.ms`, `group.protocol`, `group.instance.id` ("" for none), and
`linger_ms`: how long it stays at each step of a transaction. It prints each step it has come to: `ready`, `began`,
`wrote`, `offsets`, `committed`, `aborted`. It ends with code 3 when it was fenced, with 4 when the library hung, and
with 0 when its input is closed.
"""

import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from transacting import Fenced, insist, run, say

SECONDS = 20
HUNG_SECONDS = 15
RECORDS_MAX = 20


class Copier:
    def __init__(self, bootstrap: str, source: str, copy: str, group: str, asked: dict[str, Any]):
        self.copy = copy
        self.linger_ms = asked["linger_ms"]
        self.batch: list[Message] = []
        self.fatal: list[KafkaError] = []
        member: dict[str, Any] = {"group.protocol": asked["group.protocol"]}
        if asked["group.instance.id"]:
            member["group.instance.id"] = asked["group.instance.id"]
        if asked["group.protocol"] == "classic":
            member |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
            member["partition.assignment.strategy"] = "range"
        reconnect = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 500, "log_level": 3}
        self.consumer = Consumer(
            {
                **reconnect,
                **member,
                "error_cb": self.heard,
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        own = {name: asked[name] for name in ("transactional.id", "transaction.timeout.ms")}
        self.producer = Producer({**reconnect, **own, "linger.ms": 0})
        insist(lambda: self.producer.init_transactions(SECONDS))
        self.consumer.subscribe([source], on_revoke=self.forget, on_lost=self.forget)
        say("ready")

    def heard(self, error: KafkaError) -> None:
        if error.code() == KafkaError._FATAL or error.fatal():
            self.fatal.append(error)

    def forget(self, *_: object) -> None:
        """What was taken from partitions that are given back now must not be copied."""
        self.batch.clear()

    def take(self) -> None:
        """Records of one transaction. A rebalance happens only in here."""
        self.batch.clear()
        until = time.monotonic() + 0.05
        while len(self.batch) < RECORDS_MAX and (not self.batch or time.monotonic() < until):
            message = self.consumer.poll(0.05)
            if self.fatal:
                raise Fenced(str(self.fatal[0]))
            if message is None:
                return
            if error := message.error():
                print(error, file=sys.stderr, flush=True)
                self.heard(error)
            else:
                self.batch.append(message)

    def turn(self) -> None:
        self.take()
        if not self.batch:
            return
        try:
            self.transact()
        except KafkaException as failure:
            error = failure.args[0]
            print(error, file=sys.stderr, flush=True)
            if not error.txn_requires_abort():
                raise Fenced(str(error)) from failure
            insist(lambda: self.producer.abort_transaction(SECONDS))
            self.rewind()
            say("aborted")

    def transact(self) -> None:
        self.producer.begin_transaction()
        self.step("began")
        offsets: dict[tuple[str, int], TopicPartition] = {}
        for message in self.batch:
            topic, number, offset = message.topic(), message.partition(), message.offset()
            value = message.value().decode() + " copied"
            self.producer.produce(self.copy, value, message.key(), partition=number)
            offsets[topic, number] = TopicPartition(topic, number, offset + 1)
        self.producer.flush(SECONDS)
        self.step("wrote")
        metadata = self.consumer.consumer_group_metadata()
        with watched():
            insist(lambda: self.producer.send_offsets_to_transaction(list(offsets.values()), metadata, SECONDS))
        self.step("offsets")
        insist(lambda: self.producer.commit_transaction(SECONDS))
        self.step("committed")

    def step(self, name: str) -> None:
        say(name)
        time.sleep(random.uniform(0, self.linger_ms) / 1000)

    def rewind(self) -> None:
        """To where the group is, as nothing of the transaction counts."""
        for place in insist(lambda: self.consumer.committed(self.consumer.assignment(), SECONDS)):
            self.consumer.seek(TopicPartition(place.topic, place.partition, max(0, place.offset)))


@contextmanager
def watched() -> Iterator[None]:
    """End the process if this takes too long: librdkafka may wait for ever, whatever it was told, for a coordinator
    that went away (its issues 5456 and 5511)."""
    timer = threading.Timer(HUNG_SECONDS, os._exit, [4])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def main() -> None:
    *places, asked = sys.argv[1:]
    copier = Copier(*places, json.loads(asked))
    while True:
        copier.turn()


run(main)
