"""What is handed out and processed, while other threads seek, pause and commit."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

import moldau
from harness.patience import stretched
from moldau import Consumer, TopicPartition
from moldau.client.consuming.fetched.handout import Handout

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Moving:
    """A record; whoever looks at its partition while `ahead` is set has another thread take the next record first."""

    ahead: Iterator["Moving"] | None = None
    met: ClassVar[list["Moving"]] = []

    def __init__(self, tp: TopicPartition, offset: int):
        self._tp, self.offset = tp, offset

    @property
    def place(self) -> "Moving":
        return self

    @property
    def tp(self) -> TopicPartition:
        if Moving.ahead is not None:
            ahead, Moving.ahead = Moving.ahead, None
            Moving.met.append(next(ahead))
        return self._tp


def test_a_seek_by_another_thread_loses_no_record_of_a_loop() -> None:
    records: list[Any] = [Moving(tp, offset) for offset in range(3) for tp in (A, B)]
    handout = Handout()
    Moving.met = [next(handout.iterating(records))]
    Moving.ahead = handout.walk
    handout.drop(B)
    while (walk := handout.walk) is not None:
        Moving.met += walk
    assert {one.offset for one in Moving.met if one.tp == A} == {0, 1, 2}


def test_the_last_record_of_a_loop_stays_unprocessed_when_another_partition_is_dropped() -> None:
    records: list[Any] = [Moving(tp, offset) for offset in range(3) for tp in (A, B)]
    handout = Handout()
    next(handout.iterating(records))
    handout.drop(B)
    assert (handout.unprocessed(), handout.undelivered()) == ({A: 0}, {A: 1})
    walk = handout.walk
    assert walk is not None and next(walk).offset == 1
    assert (handout.unprocessed(), handout.undelivered()) == ({A: 1}, {A: 2})
    handout.drop(A)
    assert (handout.unprocessed(), handout.undelivered(), handout.walk) == ({A: 1}, {}, None)


@pytest.mark.parametrize("hands_out", [lambda one: next(iter(one)), lambda one: one.poll(timeout=30)])
def test_a_commit_by_another_thread_covers_no_record_that_is_still_deserialized(
    bootstrap: str, topic: str, group: str, hands_out: Any
) -> None:
    with moldau.Producer(bootstrap) as producer:
        producer.send_many(topic, [b"%d" % number for number in range(10)])
    committed: list[int] = []

    def deserialize(value: bytes) -> bytes:
        if not committed:
            aside.submit(consumer.commit).result(stretched())
            at = consumer.committed([tp]).get(tp)
            committed.append(0 if at is None else at.offset)
        return value

    tp = TopicPartition(topic, 0)
    with (
        ThreadPoolExecutor(1) as aside,
        Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", value_deserializer=deserialize) as consumer,
    ):
        consumer.assign([tp])
        hands_out(consumer)
    assert committed == [0]
