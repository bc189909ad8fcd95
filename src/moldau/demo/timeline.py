"""When records were sent, acknowledged, and visible in a table: the delay from end to end, and the lag over a run.

Pure. Times are seconds on one monotonic clock. A span is a run of offsets of one partition that were sent together; a
record counts as sent when the first record of its span was. A record is visible when the load that committed it has
returned.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from moldau.names import TopicPartition

POINTS = 61


class Span(NamedTuple):
    """The offsets from `start` to before `end` of a partition."""

    partition: TopicPartition
    start: int
    end: int
    sent: float
    acknowledged: float

    @property
    def records(self) -> int:
        return self.end - self.start


class VisibleOffsets(NamedTuple):
    """A load that is over, and the next offset of each partition that its tables then had."""

    at: float
    offsets: Mapping[TopicPartition, int]


class Moment(NamedTuple):
    """One moment of a run: seconds since its begin, and the records acknowledged and visible until then."""

    seconds: float
    acknowledged: int
    visible: int

    @property
    def records(self) -> int:
        return self.acknowledged - self.visible


@dataclass
class Timeline:
    """What was noted during a run; spans and commits are in the order in which they happened."""

    began: float = 0.0
    spans: list[Span] = field(default_factory=list)
    commits: list[VisibleOffsets] = field(default_factory=list)

    def delays(self) -> list[tuple[float, int]]:
        """Delays in seconds, ascending, each with its number of records. Records that no load has are left out."""
        delays = []
        for span in self.spans:
            start = span.start
            for commit in self.commits:
                upto = min(span.end, commit.offsets.get(span.partition, 0))
                if upto > start:
                    delays.append((commit.at - span.sent, upto - start))
                    start = upto
        return sorted(delays)

    def delay(self, share: float) -> float | None:
        """The delay that this share of the records did not exceed."""
        delays = self.delays()
        if not delays:
            return None
        sums = list(accumulate(records for _, records in delays))
        return delays[bisect_left(sums, share * sums[-1])][0]

    def lags(self, points: int = POINTS) -> list[Moment]:
        """The lag at evenly spaced moments from the begin to the last commit."""
        if not self.commits:
            return []
        spans = sorted(self.spans, key=lambda span: span.acknowledged)
        times, sums = [span.acknowledged for span in spans], [0, *accumulate(span.records for span in spans)]
        visible = [0, *(self._visible(commit) for commit in self.commits)]
        commits = [commit.at for commit in self.commits]
        length = commits[-1] - self.began
        moments = [self.began + length * at / (points - 1) for at in range(points - 1)] + [commits[-1]]
        return [
            Moment(now - self.began, sums[bisect_right(times, now)], visible[bisect_right(commits, now)])
            for now in moments
        ]

    def records_in(self) -> dict[TopicPartition, int]:
        """The number of records of each partition."""
        records: dict[TopicPartition, int] = {}
        for span in self.spans:
            records[span.partition] = records.get(span.partition, 0) + span.records
        return records

    def _visible(self, commit: VisibleOffsets) -> int:
        return sum(max(0, min(span.end, commit.offsets.get(span.partition, 0)) - span.start) for span in self.spans)


def spans_of(places: Sequence[tuple[TopicPartition, int]], sent: float, acknowledged: float) -> list[Span]:
    """The spans of records that one producer sent together, from the partition and offset of each."""
    ends: dict[TopicPartition, tuple[int, int]] = {}
    for partition, offset in places:
        first, last = ends.get(partition, (offset, offset))
        ends[partition] = (min(first, offset), max(last, offset))
    return [Span(tp, first, last + 1, sent, acknowledged) for tp, (first, last) in ends.items()]
