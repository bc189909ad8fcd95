"""`pipeline load --every`: one small load after another until it is stopped.

A failure that may pass (the broker restarts, another load was first) is reported and the load tried again, with pauses
that grow to `PAUSE_S_MAX`. Everything else ends the load: lost records, a table that cannot be used, Spark.
"""

import time
from typing import Protocol

from moldau.errors import KafkaError, MoldauError
from moldau.pipeline.loading.load import Loader, LoadFailed
from moldau.pipeline.loading.settings import Loaded
from moldau.pipeline.loading.stopping import Stopping
from moldau.pipeline.tables.committing import Conflict

PAUSE_S_MIN, PAUSE_S_MAX = 1.0, 30.0


class LoadReport(Protocol):
    """Hears what a continuous load does."""

    def committed(self, loaded: Loaded, lag: dict[str, int]) -> None:
        """A load has ended; it may have had nothing to commit. The lag is by topic."""

    def failed(self, failure: MoldauError, pause_s: float) -> None:
        """A load failed, and is tried again after a pause."""


def load_continuously(loader: Loader, every_s: float, stopping: Stopping, report: LoadReport) -> None:
    """Load what is new each `every_s` seconds, at once while more is waiting than a commit takes. Raises `LoadStopped`
    and MoldauError."""
    pause_s, due = PAUSE_S_MIN, time.monotonic()
    while True:
        try:
            planned = loader.plan()
            with stopping.after():
                loaded = loader.run(planned)
                report.committed(loaded, _lag(loader))
        except (KafkaError, LoadFailed, Conflict) as failure:
            if not _may_pass(failure):
                raise
            report.failed(failure, pause_s)
            stopping.wait(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)
            continue
        pause_s = PAUSE_S_MIN
        if not planned.more:
            due = max(due + every_s, time.monotonic())
            stopping.wait(due - time.monotonic())


def _lag(loader: Loader) -> dict[str, int]:
    try:
        return loader.lag()
    except KafkaError:
        return {}  # the commit counts all the same, and the next load says what is wrong


def _may_pass(failure: MoldauError) -> bool:
    if isinstance(failure, KafkaError):
        return failure.retriable
    return not isinstance(failure, LoadFailed) or failure.again
