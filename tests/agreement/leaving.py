"""Folders of a broker of ours that was filled: one left by a SIGKILL, one by a recovery and a clean stop after it; and
what the broker served."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.agreement import asking, filling
from tests.agreement.asking import Partition
from tests.agreement.filling import Served
from tests.agreement.standing import Standing

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


@dataclass(frozen=True)
class Both:
    """The files of one broker, twice."""

    killed: Left
    recovered: Left
    """From that, with torn tails besides; filled further, and cleanly stopped."""


def leave(broker: Standing, folder: Path) -> Both:
    """A broker filled and killed, started again and stopped."""
    try:
        killed = leave_killed(broker, folder / "killed")
        return Both(killed, leave_recovered(broker, killed, folder / "recovered"))
    finally:
        broker.close()


def leave_killed(broker: Standing, folder: Path) -> Left:
    broker.start()
    with broker.connect() as raw:
        filling.create(raw)
        filling.fill(raw, broker.t0_ms)
        served = {topic: filling.serve(raw, topic) for topic in (*filling.TOPICS, OFFSETS)}
    broker.kill()
    return Left(broker.copy(folder), served)


def leave_recovered(broker: Standing, killed: Left, folder: Path) -> Left:
    for topic in filling.TOPICS:
        broker.tear(f"{topic}-0", filling.rows(broker.t0_ms)[:-20])
    broker.start()
    with broker.connect() as raw:
        for topic in filling.TOPICS:
            before, after = killed.served[topic], filling.serve(raw, topic)
            assert after.end == before.end
            # a start that moved since its last checkpoint, a minute ago, moves back, as Kafka's does
            assert [one for one in after.records if one.offset >= before.start] == before.records
        filling.fill(raw, broker.t0_ms, 1)
        served = {topic: filling.serve(raw, topic) for topic in (*filling.TOPICS, OFFSETS)}
        partitions = {topic: asking.partition_of(raw, topic, 0) for topic in filling.TOPICS}
    broker.stop()
    return Left(broker.copy(folder), served, partitions)
