"""Which segments at the start of a log have had their time. Pure decisions: the log carries them out.

A segment goes only as a whole, the oldest first, and only when all of it is below the high watermark. An empty active
segment stays. A mirror starts where its source does, whatever its own retention is. Time is that of the records: one
stamped 2013 is too old at the first pass (a segment whose records have no time goes by its file's). Source: "Topic
Configs" of Kafka's documentation, retention.ms and retention.bytes.
"""

from collections.abc import Callable, Sequence
from typing import Final

from moldau.config import TopicConfig
from moldau.log.segment import Segment

AHEAD_MS: Final = 3_600_000
"""Clocks of producers may be ahead by as much: the default of `message.timestamp.after.max.ms`."""


def deletable(
    segments: Sequence[Segment], config: TopicConfig, now_ms: int, log_start: int, log_end: int, high_watermark: int
) -> tuple[int, str]:
    """How many of the oldest segments go, and why."""
    ends = [segment.base_offset for segment in segments[1:]] + [log_end]

    def leading(is_due: Callable[[int], bool]) -> int:
        for at, segment in enumerate(segments):
            if ends[at] > high_watermark or not is_due(at) or (segment is segments[-1] and not segment.size):
                return at
        return len(segments)

    count, why = leading(lambda at: at + 1 < len(segments) and ends[at] <= log_start), "below the log's start"
    if not config.deletes or config.mirror_source:
        return count, why
    if config.retention_bytes >= 0:
        left = sum(segment.size for segment in segments) - config.retention_bytes

        def too_much(at: int) -> bool:
            nonlocal left
            left -= segments[at].size
            return left >= 0

        by_size = leading(too_much)
        if by_size > count:
            count, why = by_size, "retention.bytes"
    if config.retention_ms >= 0:
        by_time = leading(lambda at: now_ms - segments[at].largest_timestamp() > config.retention_ms)
        if by_time > count:
            count, why = by_time, "retention.ms"
    return count, why


def held_up_by(kept: Sequence[Segment], config: TopicConfig, now_ms: int) -> Segment | None:
    """The closed segment, the oldest of those that are `kept`, that stays beyond `retention.ms` because one of its
    records is stamped with a time that has not come yet; so do all segments behind it."""
    if not config.deletes or config.mirror_source or config.retention_ms < 0 or len(kept) < 2:
        return None
    return kept[0] if kept[0].largest_timestamp() > now_ms + AHEAD_MS else None
