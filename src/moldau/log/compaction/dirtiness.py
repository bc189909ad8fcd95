"""How much of a log is dirty, and whether it is time to clean it. This module only decides; it may open an index to
look up a timestamp.

    | clean: cleaned before | dirty: cleanable        | not yet cleanable                  |
    log start               first dirty offset        end                                log end

The first dirty offset is the checkpoint's, unless the log ends before it or begins after it. Not cleanable are the
active segment, records above the last stable offset, and segments with a record younger than `min.compaction.lag.ms`. A
log is cleaned when more than `min.cleanable.dirty.ratio` of its cleanable bytes are dirty, or when a dirty record is
older than `max.compaction.lag.ms`. Source: KIP-58, KIP-354, "Log Compaction" of Kafka's documentation.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from moldau.config import TopicConfig
from moldau.log.segment import Segment

NO_LAG_MAX: Final = (1 << 63) - 1


class Dirt(NamedTuple):
    """How dirty a log is, and which part of it a cleaning would read."""

    first_dirty_offset: int
    end_offset: int
    """The end of the cleanable part, at a segment's base offset."""
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool
    """A dirty record is older than `max.compaction.lag.ms`."""

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def suffices(self, config: TopicConfig) -> bool:
        """Whether the log is to be cleaned now."""
        if not self.cleanable_bytes:
            return False
        return self.is_overdue or self.ratio > config.min_cleanable_dirty_ratio


def first_dirty(checkpoint: int | None, log_start: int, log_end: int) -> int:
    """The first dirty offset; a checkpoint that does not fit the log is ignored."""
    if checkpoint is None or not log_start <= checkpoint <= log_end:
        return log_start
    return checkpoint


def dirt_of(
    segments: Sequence[Segment], config: TopicConfig, first_dirty_offset: int, stable_offset: int, now_ms: int
) -> Dirt:
    """Look at a log's segments, the active one last. Raises `OSError`."""
    closed = segments[:-1]
    ends = [segment.base_offset for segment in segments[1:]]
    dirty = [at for at, end in enumerate(ends) if end > first_dirty_offset]
    end = min(stable_offset, segments[-1].base_offset)
    if config.min_compaction_lag_ms > 0:
        latest_ms = now_ms - config.min_compaction_lag_ms
        end = min([end, *(closed[at].base_offset for at in dirty if closed[at].largest_timestamp() > latest_ms)])
    cleanable = 0
    while cleanable < len(closed) and ends[cleanable] <= end:
        cleanable += 1
    begin = dirty[0] if dirty else len(closed)
    clean_bytes = sum(segment.size for segment in closed[:begin])
    cleanable_bytes = sum(segment.size for segment in closed[begin:cleanable])
    return Dirt(
        first_dirty_offset,
        segments[cleanable].base_offset,
        clean_bytes,
        cleanable_bytes,
        any(is_overdue(closed[at], config, now_ms) for at in dirty),
    )


def is_overdue(segment: Segment, config: TopicConfig, now_ms: int) -> bool:
    """Whether the first record of a segment is older than `max.compaction.lag.ms`."""
    if config.max_compaction_lag_ms == NO_LAG_MAX or not segment.size:
        return False
    first_ms = segment.header_at(0).max_timestamp
    return 0 < first_ms < now_ms - config.max_compaction_lag_ms
