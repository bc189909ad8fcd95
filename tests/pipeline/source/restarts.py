"""A query as Spark runs it, for tests without Spark: a checkpoint, and the methods of a reader in Spark's order.

Spark writes the end of a micro-batch down (`offsets/N`) before it plans and runs it, and that it is done (`commits/N`)
afterwards. A restarted query first runs the batch that was not committed, from the end of the batch before it, or from
a new initial offset if there was none.
"""

import json
from collections.abc import Callable
from typing import Any

from moldau.pipeline.source.stream import StreamReader

MOMENTS = ("before offsets/0", "after offsets/0", "before commits/0", "after commits/0",
           "after offsets/1", "before commits/1", "after commits/1")  # fmt: skip


class Killed(Exception):
    """The query was killed at the moment that a test asked for."""


class Checkpoint:
    """What Spark keeps of a query, and what a sink that can replace a batch holds of it."""

    def __init__(self) -> None:
        self.offsets: list[str] = []
        self.commits = 0
        self.batches: dict[int, list[str]] = {}

    def copy(self) -> "Checkpoint":
        other = Checkpoint()
        other.offsets, other.commits, other.batches = [*self.offsets], self.commits, dict(self.batches)
        return other

    @property
    def values(self) -> list[str]:
        """All values in the sink, batches in order; those of one batch sorted."""
        return [value for _, batch in sorted(self.batches.items()) for value in batch]

    def run(
        self,
        reader: StreamReader,
        kill: str = "",
        started: Callable[[], None] = lambda: None,
        starts_are_told: bool = True,
    ) -> None:
        """Run until there is nothing new, or raise `Killed` at that moment. `started` is called once the query has its
        initial offset. Spark before 4.2 asks for the end of a batch without telling its start."""
        if len(self.offsets) > self.commits:
            self._run_batch(reader, kill)
        while True:
            begin = self.offsets[-1] if self.offsets else None
            if starts_are_told:
                start = json.loads(begin) if begin else _through_json(reader.initialOffset())
                started()
                end = json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit()))
            else:
                end = json.dumps(reader.latestOffset())
            if end == begin:
                return
            self._at(f"before offsets/{len(self.offsets)}", kill)
            self.offsets.append(end)
            self._run_batch(reader, kill)

    def _run_batch(self, reader: StreamReader, kill: str) -> None:
        number = len(self.offsets) - 1
        self._at(f"after offsets/{number}", kill)
        start = json.loads(self.offsets[number - 1]) if number else _through_json(reader.initialOffset())
        planned = reader.partitions(start, json.loads(self.offsets[number]))
        read = [batch.column("value").to_pylist() for one in planned for batch in reader.read(one)]
        self.batches[number] = sorted(value.decode() for values in read for value in values)
        self._at(f"before commits/{number}", kill)
        self.commits += 1
        self._at(f"after commits/{number}", kill)

    def _at(self, moment: str, kill: str) -> None:
        if moment == kill:
            raise Killed(moment)


def _through_json(tree: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(tree))
    return found
