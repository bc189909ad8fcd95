"""Moldau's own clients copy a topic in transactions, as `copying.py` does with confluent-kafka: the same arguments, the
same lines of output and exit codes."""

import json
import os
import random
import sys
import threading
import time
from typing import Any

from moldau import Consumer, Producer, Record, TopicPartition
from moldau.errors import InvalidProducerIdMapping, InvalidTxnState, KafkaError, ProducerFenced

RECORDS_MAX = 20
FENCED = 3


class Copier:
    def __init__(self, bootstrap: str, source: str, copy: str, group: str, asked: dict[str, Any]):
        self.copy = copy
        self.linger_ms = asked["linger_ms"]
        self.batch: list[Record] = []
        member: dict[str, Any] = {"group.protocol": asked["group.protocol"]}
        if asked["group.instance.id"]:
            member["group.instance.id"] = asked["group.instance.id"]
        if asked["group.protocol"] == "classic":
            member |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
        self.consumer = Consumer(
            {
                **member,
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.max.wait.ms": 100,
            }
        )
        own = {name: asked[name] for name in ("transactional.id", "transaction.timeout.ms")}
        self.producer = Producer({**own, "bootstrap.servers": bootstrap, "linger.ms": 0})
        self.producer.init_transactions()
        self.consumer.subscribe([source], on_revoked=self.forget)
        self.say("ready")

    def forget(self, _: list[TopicPartition]) -> None:
        """What was taken from partitions that are given back now must not be copied."""
        self.batch.clear()

    def take(self) -> None:
        """Records of one transaction. A rebalance happens only in here."""
        self.batch.clear()
        until = time.monotonic() + 0.05
        while len(self.batch) < RECORDS_MAX and (not self.batch or time.monotonic() < until):
            records = self.consumer.poll(50, RECORDS_MAX - len(self.batch))
            if not records:
                return
            self.batch += records

    def turn(self) -> None:
        self.take()
        if not self.batch:
            return
        try:
            self.transact()
        except KafkaError as failure:
            print(repr(failure), file=sys.stderr, flush=True)
            if isinstance(failure, ProducerFenced | InvalidTxnState | InvalidProducerIdMapping):
                raise
            self.rewind()
            self.say("aborted")

    def transact(self) -> None:
        with self.producer.transaction() as transaction:
            self.step("began")
            for record in self.batch:
                value = (record.value or b"") + b" copied"
                self.producer.send(self.copy, value, record.key, partition=record.partition)
            self.producer.flush()
            self.step("wrote")
            transaction.send_offsets(self.consumer)
            self.step("offsets")
        self.step("committed")

    def step(self, name: str) -> None:
        self.say(name)
        time.sleep(random.uniform(0, self.linger_ms) / 1000)

    def say(self, line: str) -> None:
        print(line, flush=True)

    def rewind(self) -> None:
        """To where the group is, as nothing of the transaction counts."""
        assigned = self.consumer.assignment()
        committed = self.consumer.committed(assigned)
        for tp in assigned:
            self.consumer.seek(tp, committed[tp].offset if tp in committed else 0)


def main() -> None:
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    *places, asked = sys.argv[1:]
    try:
        copier = Copier(*places, json.loads(asked))
        while True:
            copier.turn()
    except KafkaError as reason:
        print("ends:", repr(reason), file=sys.stderr, flush=True)
        os._exit(FENCED)


main()
