"""Folders of a broker of ours that was filled: one left by a SIGKILL, one by a recovery and a clean stop after it; and
what the broker served."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from harness.brokers import Broker
from tests.agreement import asking, filling
from tests.agreement.asking import Partition
from tests.agreement.filling import Served
from tests.end_to_end.raw import Raw

OFFSETS = "__consumer_offsets"
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "log.initial.task.delay.ms": "3600000",
    "log.index.size.max.bytes": "100000",
}


@dataclass(frozen=True)
class Left:
    """Files of a broker that is gone, and what it had served."""

    data: Path
    served: dict[str, Served]
    partitions: dict[str, Partition] = field(default_factory=dict)
    """All that it had said of partition 0 of each topic, if it was asked."""

    def folder(self, topic: str) -> Path:
        return self.data / f"{topic}-0"

    def files(self, *suffixes: str, topic: str = "*") -> list[Path]:
        found = (path for suffix in suffixes for path in self.data.glob(f"{topic}-0/*{suffix}"))
        return sorted(found)


def leave_killed(folder: Path) -> Left:
    """A broker filled and killed."""
    broker = Broker(folder, SETTINGS)
    broker.start()
    try:
        with Raw(broker.address) as raw:
            filling.create(raw)
            filling.fill(raw)
            served = {topic: filling.serve(raw, topic) for topic in (*filling.TOPICS, OFFSETS)}
    finally:
        broker.kill()
    return Left(broker.data, served)


def leave_recovered(killed: Left, folder: Path) -> Left:
    """The same files with torn tails, recovered by a second broker, filled further, cleanly stopped."""
    shutil.copytree(killed.data, folder / "data")
    copy = Left(folder / "data", killed.served)
    for topic in filling.TOPICS:
        with open(copy.files(".log", topic=topic)[-1], "ab") as log:
            log.write(filling.rows()[:-20])
    broker = Broker(folder, SETTINGS)
    broker.start()
    try:
        with Raw(broker.address) as raw:
            for topic in filling.TOPICS:
                before, after = killed.served[topic], filling.serve(raw, topic)
                assert after.end == before.end
                # a start that moved since its last checkpoint, a minute ago, moves back, as Kafka's does
                assert [one for one in after.records if one.offset >= before.start] == before.records
            filling.fill(raw, 1)
            served = {topic: filling.serve(raw, topic) for topic in (*filling.TOPICS, OFFSETS)}
            partitions = {topic: asking.partition_of(raw, topic, 0) for topic in filling.TOPICS}
        broker.stop()
    finally:
        broker.kill()
    return Left(broker.data, served, partitions)
