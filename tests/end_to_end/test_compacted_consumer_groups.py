"""Members of consumer groups go on at their epochs, with what they had, after compaction, stops and kills."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.brokers import Broker
from moldau.protocol.apis import CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT
from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.end_to_end.raw import Raw
from tests.end_to_end.test_compacted_offsets import OFFSETS, SEGMENT_BYTES, SETTINGS, answered, soon

RACK = "r" * 4000
MEMBERS = ("a", "b", "c")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    ours = Broker(tmp_path, {**SETTINGS, "group.consumer.assignment.interval.ms": "0"})
    ours.start()
    yield ours
    ours.kill()


class Member:
    """It says what it is told, in a rack that has a long name, and another one each time: a record of 4 KB."""

    def __init__(self, name: str):
        self.name = name
        self.epoch = 0
        self.owned: list[Any] = []
        self.said = 0

    def beat(self, raw: Raw) -> None:
        self.said += 1
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.name,
            member_epoch=self.epoch,
            rack_id=f"{RACK}{self.said}",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["read"],
            topic_partitions=self.owned if self.epoch else [],
        )

        def ask() -> int:
            answer = raw.ask(CONSUMER_GROUP_HEARTBEAT, 1, request)
            if answer.error_code == 0:
                self.epoch, self.owned = answer.member_epoch, answer.assignment.topic_partitions
            return int(answer.error_code)

        answered(raw, "g", ask)


def described(raw: Raw) -> Any:
    said: list[Any] = []

    def ask() -> int:
        said.append(raw.ask(CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(group_ids=["g"])).groups[0])
        return int(said[-1].error_code)

    answered(raw, "g", ask)
    return said[-1]


def test_members_are_where_they_were_whatever_became_of_the_broker(broker: Broker) -> None:
    members = [Member(name) for name in MEMBERS]
    with Raw(broker.address) as raw:
        raw.create_topic("read", partitions=6)
    for leave in (broker.kill, broker.stop):
        with Raw(broker.address) as raw:
            for _ in range(2 * SEGMENT_BYTES // len(RACK) // len(members)):
                for member in members:
                    member.beat(raw)
            before = described(raw)
        assert before.group_state == "Stable"
        assert sorted(p for member in members for t in member.owned for p in t.partitions) == list(range(6))
        soon(lambda: broker.log_bytes(OFFSETS) < 1.5 * SEGMENT_BYTES, "the offsets topic was not compacted")
        leave()
        broker.start()
        with Raw(broker.address) as raw:
            after = described(raw)
            assert sorted(after.members, key=lambda m: m.member_id) == sorted(before.members, key=lambda m: m.member_id)
            assert (after.group_epoch, after.assignment_epoch) == (before.group_epoch, before.assignment_epoch)
            epochs = [member.epoch for member in members]
            for member in members:
                member.beat(raw)
            assert [member.epoch for member in members] == epochs
    assert "compacted up to offset" in broker.log()
