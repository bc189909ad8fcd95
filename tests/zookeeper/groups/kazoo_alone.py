"""A member of a group that is written with kazoo alone, from the description of Kafka 0.8's nodes: a process,
`python -m tests.zookeeper.groups.kazoo_alone CONNECT GROUP TOPIC SESSION_MS FILE`.

It registers, watches the members and the topic, shares partitions, owns them and keeps their offsets without any code
of ours. Records come from a consumer that knows no group.
"""

import contextlib
import json
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

import moldau
from tests.zookeeper.groups.written import BACKOFF_MS, COMMIT_MS, Notes, now_s


class KazooMember:
    """`may_read` is false from the moment on at which its session may end."""

    def __init__(self, connect: str, group: str, topic: str, session_s: float, notes: Notes):
        self.topic, self.notes = topic, notes
        self.base = f"/consumers/{group}"
        self.id = f"{group}_kazoo-{int(time.time() * 1000)}-{random.getrandbits(32):08x}"
        self.zookeeper = KazooClient(connect, session_s)
        self.zookeeper.add_listener(self._state)
        self.changed = self.may_read = self.registered = False
        self.offsets: dict[int, int] = {}
        self.spell = 0

    def _state(self, state: str) -> None:
        self.may_read = False
        self.changed = True
        if state == KazooState.LOST:
            self.registered = False
            self.offsets = {}

    def _look(self, _: Any) -> None:
        self.changed = True

    def rebalance(self) -> None:
        zookeeper = self.zookeeper
        self.changed = False
        if not self.registered:
            text = {"version": 1, "subscription": {self.topic: 1}, "pattern": "static", "timestamp": "0"}
            zookeeper.create(f"{self.base}/ids/{self.id}", json.dumps(text).encode(), ephemeral=True, makepath=True)
            self.registered = True
        self.commit()
        for partition in self.offsets:
            with contextlib.suppress(NoNodeError):
                zookeeper.delete(f"{self.base}/owners/{self.topic}/{partition}")
        self.offsets = {}
        streams = []
        for member in zookeeper.get_children(f"{self.base}/ids", watch=self._look):
            with contextlib.suppress(NoNodeError):
                subscription = json.loads(zookeeper.get(f"{self.base}/ids/{member}")[0])["subscription"]
                streams += [f"{member}-{number}" for number in range(subscription.get(self.topic, 0))]
        described = json.loads(zookeeper.get(f"/brokers/topics/{self.topic}", watch=self._look)[0])
        partitions, streams = sorted(map(int, described["partitions"])), sorted(streams)
        each, more = divmod(len(partitions), len(streams))
        place = streams.index(f"{self.id}-0")
        start = each * place + min(place, more)
        claimed: dict[int, int] = {}
        try:
            for partition in partitions[start : start + each + (place < more)]:
                path = f"{self.base}/owners/{self.topic}/{partition}"
                zookeeper.create(path, f"{self.id}-0".encode(), ephemeral=True, makepath=True)
                claimed[partition] = 0
        except NodeExistsError:
            for partition in claimed:
                zookeeper.delete(f"{self.base}/owners/{self.topic}/{partition}")
            time.sleep(BACKOFF_MS / 1000)
            self.changed = True
            return
        for partition in claimed:
            with contextlib.suppress(NoNodeError):
                claimed[partition] = int(zookeeper.get(f"{self.base}/offsets/{self.topic}/{partition}")[0])
        self.offsets, self.spell, self.may_read = claimed, self.spell + 1, True

    def commit(self) -> None:
        for partition, offset in self.offsets.items():
            path = f"{self.base}/offsets/{self.topic}/{partition}"
            if offset:
                self.zookeeper.ensure_path(path)
                self.zookeeper.set(path, str(offset).encode())

    def bootstrap(self) -> str:
        ids = self.zookeeper.get_children("/brokers/ids")
        registered = json.loads(self.zookeeper.get(f"/brokers/ids/{ids[0]}")[0])
        return str(registered["endpoints"][0]).partition("://")[2]

    def run(self) -> None:
        self.zookeeper.start(60)
        with moldau.Consumer(self.bootstrap()) as log:
            commit_s = now_s() + COMMIT_MS / 1000
            while True:
                if self.changed or not self.may_read:
                    self.rebalance()
                    log.assign([(self.topic, partition) for partition in self.offsets])
                    for partition, offset in self.offsets.items():
                        log.seek(moldau.TopicPartition(self.topic, partition), offset)
                asked_s = now_s()
                for record in log.poll(100) if self.offsets else [time.sleep(0.1)] * 0:
                    if not self.may_read or self.changed:
                        break
                    self.notes.note(self.spell, record.partition, record.offset, asked_s, now_s())
                    self.offsets[record.partition] = record.offset + 1
                    asked_s = now_s()
                if now_s() >= commit_s:
                    self.commit()
                    commit_s = now_s() + COMMIT_MS / 1000


def main() -> None:
    connect, group, topic, session_ms, file = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    member = KazooMember(connect, group, topic, int(session_ms) / 1000, Notes(Path(file)))
    try:
        while True:
            try:
                member.run()
            except (KazooException, KazooTimeoutError) as failure:  # the connection was lost on the way
                print(repr(failure), file=sys.stderr)
                member.changed, member.may_read = True, False
                time.sleep(0.2)
    finally:
        member.zookeeper.stop()


if __name__ == "__main__":
    main()
