"""Opening a partition's log: its folder is made if it is missing, and recovered after an unclean stop."""

import uuid
from dataclasses import dataclass
from pathlib import Path

from moldau.config import TopicConfig
from moldau.log import checkpoints
from moldau.log.log import Log
from moldau.log.recovering import recovery
from moldau.log.recovering.progress import Progress
from moldau.log.services import LogServices
from moldau.names import TopicPartition


@dataclass(frozen=True)
class LeftState:
    """How the last stop left a log, as far as its log folder knows."""

    clean: bool
    """The stop was clean: everything was flushed."""
    recovery_point: int = 0
    log_start: int = 0
    closed_at: int = -1
    """Where the log ended when it was closed by a stop that was then cut off; -1 if it was not closed."""
    gaps_are_losses: bool = False
    """The recovery point is known, so no segment behind it was compacted, and a gap there is a loss."""


def open_log(
    folder: Path,
    tp: TopicPartition,
    topic_id: uuid.UUID,
    config: TopicConfig,
    services: LogServices,
    left: LeftState,
    progress: Progress | None = None,
) -> Log:
    """The log in a folder. Blocks, for long after an unclean stop of a large log. Raises `OSError`."""
    disk = services.runtime.disk
    if not disk.exists(folder):
        disk.make_folder(folder)
    if not disk.exists(folder / checkpoints.PARTITION_METADATA):
        checkpoints.write_topic_id(disk, folder, topic_id)
    now_ms = services.runtime.clock.now_ms()
    loading = recovery.Loading(
        folder, config, services.files, now_ms, left.clean, left.recovery_point, left.log_start, progress,
        left.gaps_are_losses, left.closed_at,
    )  # fmt: skip
    return Log(folder, tp, topic_id, config, services, recovery.load(loading))
