"""Carries a plan out: begins some partitions at a time, and waits until all are where they should be.

The cluster knows what is under way, so a plan that was left half done goes on when it is carried out again. A partition
that somebody else has moved or whose move was cancelled meanwhile is left alone, and reported.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.cli.cluster.moving.cluster_layout import ClusterLayout, MovePlan
from moldau.cli.cluster.moving.looking import Way, look_at
from moldau.cli.cluster.moving.shown_plan import size_text
from moldau.cli.cluster.moving.throttle import PlanThrottle
from moldau.client.administration.admin import Admin
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition, counted

PAUSE_S = 1.0
GONE = "the cluster does not have it any more"
ASTRAY_S = 5.0
"""How long a partition has to be seen at rest elsewhere: brokers hear of changes one after the other."""


class MovingPace(NamedTuple):
    """How many partitions move at a time, and the most bytes a second that each broker sends, and fetches, for them;
    None for no limit."""

    at_a_time: int
    throttle: int | None = None


@dataclass
class Course:
    """How far a plan is. `copies` has the bytes that each of its partitions copies. `left` says why partitions were
    left alone. `now_s` is the time of a clock that only goes forward."""

    copies: dict[TopicPartition, int]
    began_s: float
    waiting: dict[TopicPartition, None]
    under_way: dict[TopicPartition, int] = field(default_factory=dict)
    """The bytes copied so far."""
    done: set[TopicPartition] = field(default_factory=set)
    left: dict[TopicPartition, str] = field(default_factory=dict)
    astray_since_s: dict[TopicPartition, float] = field(default_factory=dict)
    """Partitions under way that were last seen at rest, and not where they should be."""
    done_before: set[TopicPartition] = field(default_factory=set)
    """Where they should be when this run began: these bytes say nothing about its speed."""

    @property
    def is_over(self) -> bool:
        return not self.waiting and not self.under_way

    @property
    def copied(self) -> int:
        """Bytes that this run has copied, as far as brokers tell."""
        whole = sum(self.copies[tp] for tp in self.done - self.done_before)
        return whole + sum(min(size, self.copies[tp]) for tp, size in self.under_way.items())

    @property
    def to_copy(self) -> int:
        return sum(self.copies[tp] for tp in (*self.waiting, *self.under_way, *(self.done - self.done_before)))

    def seconds_left(self, now_s: float) -> float | None:
        """At the speed so far; None if nothing was copied yet."""
        copied, passed_s = self.copied, now_s - self.began_s
        return (self.to_copy - copied) * passed_s / copied if copied and passed_s > 0 else None

    def line(self, now_s: float) -> str:
        total = len(self.waiting) + len(self.under_way) + len(self.done)
        parts = [f"{len(self.done):,} of {counted(total, 'partition')}"]
        if self.to_copy:
            parts.append(f"{size_text(self.copied)} of {size_text(self.to_copy)}")
        if (left_s := self.seconds_left(now_s)) is not None:
            parts.append(f"about {int(left_s // 60)}:{int(left_s % 60):02d} left")
        return ", ".join(parts)

    def take(self, ways: dict[TopicPartition, Way], now_s: float) -> None:
        """Note what was found of the partitions that wait or are under way."""
        for tp, way in ways.items():
            is_astray = tp in self.under_way and way.exists and not way.is_there and not way.is_under_way
            if not is_astray:
                self.astray_since_s.pop(tp, None)
            if not way.exists:
                self._leave(tp, GONE)
            elif way.is_there:
                self._end(tp)
                self.done.add(tp)
            elif way.is_under_way:
                self.waiting.pop(tp, None)
                self.under_way[tp] = way.copied
            elif is_astray and now_s - self.astray_since_s.setdefault(tp, now_s) >= ASTRAY_S:
                self._leave(tp, "its move was cancelled, or replaced by another one")

    def _leave(self, tp: TopicPartition, why: str) -> None:
        self._end(tp)
        self.left[tp] = why

    def _end(self, tp: TopicPartition) -> None:
        self.waiting.pop(tp, None)
        self.under_way.pop(tp, None)

    def begun(self, outcomes: dict[TopicPartition, KafkaError | None]) -> None:
        for tp, error in outcomes.items():
            if error is None:
                self.waiting.pop(tp, None)
                self.under_way.setdefault(tp, 0)
            else:
                is_gone = error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
                self._leave(tp, GONE if is_gone else str(error))


def carried_out(
    admin: Admin, plan: MovePlan, layout: ClusterLayout, pace: MovingPace, report: Callable[[str], None]
) -> Course:
    """Returns when every partition of the plan is where it should be, or was left alone. `report` takes a line whenever
    something has changed. Preferred replicas of what has moved are asked to lead. Raises `KafkaError`."""
    copies = layout.copies(plan)
    taking_part = {broker for tp in plan for broker in (*plan[tp], *layout.partitions[tp].replicas)}
    throttle = None if pace.throttle is None else PlanThrottle(admin, taking_part, pace.throttle)
    course = Course(copies, time.monotonic(), dict.fromkeys(sorted(plan, key=lambda tp: (copies[tp] == 0, tp))))
    course.take(look_at(admin, plan, plan), course.began_s)
    course.done_before = set(course.done)
    shown = ""
    while True:
        room = pace.at_a_time - len(course.under_way)
        if chosen := [tp for tp, _ in zip(course.waiting, range(room), strict=False)]:
            throttled = throttle if throttle is not None and throttle.is_due(time.monotonic()) else None
            if throttled is not None:
                throttled.apply()
            course.begun(admin.alter_reassignments({tp: plan[tp] for tp in chosen}))
            if throttled is not None:
                throttled.apply()
        line = course.line(time.monotonic())
        if line != shown:
            report(line)
            shown = line
        if course.is_over:
            break
        course.take(look_at(admin, plan, [*course.waiting, *course.under_way]), time.monotonic())
        if not course.is_over and not (course.waiting and len(course.under_way) < pace.at_a_time):
            time.sleep(PAUSE_S)
    _prefer(admin, course.done - course.done_before)
    return course


def _prefer(admin: Admin, partitions: Iterable[TopicPartition]) -> None:
    if wanted := sorted(partitions):
        admin.elect_leaders(wanted)  # one that cannot lead now does when leaders are balanced the next time
