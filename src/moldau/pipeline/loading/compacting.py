"""Compacts the tables of a load in a thread beside it, one at a time: a compaction changes no row and no offset.

Loads only add files, so that they and a compaction never conflict. A compaction that fails is logged and tried again
after as many more files; the load goes on.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable

from moldau.errors import MoldauError
from moldau.pipeline.tables.committing import LoadedTable
from moldau.pipeline.tables.maintenance import Compacted, compact
from moldau.pipeline.tables.small_files import compaction_target
from moldau.pipeline.tables.storage import Location
from moldau.pipeline.tables.table import Table

logger = logging.getLogger(__name__)


class Compacting:
    """Compacts a table once a partition of it has `small_files_max` small files; 0 for never. `compacted` is called in
    the thread, with the topic and the numbers of files."""

    def __init__(self, small_files_max: int):
        self._small_files_max = small_files_max
        self._looked_at: set[str] = set()
        self._added: Counter[str] = Counter()
        self._thread: threading.Thread | None = None
        self.compacted: Callable[[str, Compacted], None] = lambda topic, done: None

    def added(self, topic: str, table: LoadedTable, files: int) -> None:
        """A commit has added files to the table of a topic: begin a compaction if it is time. Iceberg tables
        are left to other tools."""
        if not isinstance(table, Table):
            return
        self._added[topic] += files
        due = topic not in self._looked_at or self._added[topic] >= self._small_files_max // 2
        if not self._small_files_max or not due or (self._thread and self._thread.is_alive()):
            return
        self._looked_at.add(topic)
        self._added[topic] = 0
        target = compaction_target(table.files(), self._small_files_max)
        if target is not None:
            self._thread = threading.Thread(
                target=self._compact, args=(topic, table.where, target), name="moldau-compaction", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Wait for the running compaction."""
        if self._thread:
            self._thread.join()

    def _compact(self, topic: str, where: Location, target: int) -> None:
        try:
            self.compacted(topic, compact(where, target))
        except MoldauError as error:
            logger.warning("%s was not compacted: %s", topic, error)
